// SPDX-License-Identifier: Apache-2.0
#include "evaluation/carbon_front.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/text_table.h"
#include "evaluation/judge.h"

namespace rudderfish {
namespace {

constexpr uint64_t kFrontStream = 0x66726f6e74;  // Of the seed.
constexpr int kFrontResamples = 2000;
constexpr double kBeyondWorst = 0.1;  // Of the range.
constexpr double kGramsPerKg = 1000, kGramsPerTon = 1e6, kKgPerTon = 1000, kMillion = 1e6;

// How often each start counts, and each seed of a policy.
using Weights = std::vector<int>;

std::vector<CostPair> PointsOf(const PolicyFront& front, const Weights& starts,
                               const Weights& seeds) {
  std::vector<CostPair> points;
  for (const FrontPoint& one : front.points) {
    points.push_back(
        {WeightedMean(one.cost, starts, seeds), WeightedMean(one.carbon, starts, seeds)});
  }
  return points;
}

std::vector<CostPair> MeansOf(const PolicyFront& front) {
  const RunMatrix& first = front.points[0].cost;
  return PointsOf(front, Weights(first.starts, 1), Weights(first.seeds, 1));
}

bool IsBeaten(const CostPair& one, const std::vector<CostPair>& others) {
  return std::any_of(others.begin(), others.end(), [&](const CostPair& other) {
    return other.cost <= one.cost && other.carbon <= one.carbon &&
           (other.cost < one.cost || other.carbon < one.carbon);
  });
}

OrderedJson PointJson(const FrontPoint& point, const CostPair& mean,
                      const CostPair& mean_of_least) {
  const double saved = mean_of_least.carbon - mean.carbon;
  OrderedJson paid;
  if (saved > 0)
    paid = (mean.cost - mean_of_least.cost) * point.unit_dollars * kMillion / saved * kGramsPerTon;
  return {{"variant", point.variant},
          {"carbon_per_kg", point.carbon_per_kg},
          {"dollars_per_ton", point.carbon_per_kg * kKgPerTon},
          {"cost", mean.cost},
          {"carbon_g_per_million", mean.carbon},
          {"dollars_per_million", point.dollars_per_million},
          {"late_percent", point.late_percent},
          {"paid_dollars_per_ton", paid}};
}

OrderedJson PairJson(const CostPair& pair) {
  return {{"cost", pair.cost}, {"carbon_g_per_million", pair.carbon}};
}

// The corners of all points.
std::pair<CostPair, CostPair> CornersOf(const std::vector<std::vector<CostPair>>& means) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  CostPair ideal{kInfinite, kInfinite}, worst{-kInfinite, -kInfinite};
  for (const auto& points : means) {
    for (const CostPair& point : points) {
      ideal = {std::min(ideal.cost, point.cost), std::min(ideal.carbon, point.carbon)};
      worst = {std::max(worst.cost, point.cost), std::max(worst.carbon, point.carbon)};
    }
  }
  // Where all points are one, it has some area nevertheless.
  const auto beyond = [](double low, double high) {
    return high + kBeyondWorst * std::max(high - low, 1e-9 * std::max(1.0, high));
  };
  return {ideal, {beyond(ideal.cost, worst.cost), beyond(ideal.carbon, worst.carbon)}};
}

// [policy] Of every resample.
std::vector<std::vector<double>> Resampled(const std::vector<PolicyFront>& fronts, CostPair ideal,
                                           CostPair reference, uint64_t seed) {
  std::vector<std::vector<double>> volumes(fronts.size());
  Weights starts(fronts[0].points[0].cost.starts);
  for (int r = 0; r < kFrontResamples; ++r) {
    Rng rng(seed, kFrontStream, static_cast<uint64_t>(r));
    DrawWeights(&rng, starts);
    for (size_t p = 0; p < fronts.size(); ++p) {
      Weights seeds(fronts[p].points[0].cost.seeds);
      DrawWeights(&rng, seeds);
      volumes[p].push_back(Hypervolume(PointsOf(fronts[p], starts, seeds), ideal, reference));
    }
  }
  return volumes;
}

Result<int> CountAt(const JsonReader& policy, std::string_view key) {
  TRY_ASSIGN(const JsonReader count, policy.At(key));
  TRY_ASSIGN(const int64_t value, count.AsInt(1, 1'000'000));
  return static_cast<int>(value);
}

Result<RunMatrix> MatrixOf(const JsonReader& policy, std::string_view key, int starts, int seeds) {
  RunMatrix runs{.starts = starts, .seeds = seeds};
  TRY_ASSIGN(const JsonReader list, policy.At(key));
  TRY_ASSIGN(const std::vector<JsonReader> values, list.Elements());
  for (const JsonReader& value : values) {
    TRY_ASSIGN(const double number, value.AsDouble());
    runs.values.push_back(number);
  }
  if (runs.values.size() != static_cast<size_t>(starts) * seeds)
    return list.Refuse(fmt::format("expected {} numbers", starts * seeds));
  return runs;
}

}  // namespace

double Hypervolume(std::span<const CostPair> points, CostPair ideal, CostPair reference) {
  CHECK(ideal.cost < reference.cost && ideal.carbon < reference.carbon);
  std::vector<CostPair> sorted(points.begin(), points.end());
  std::sort(sorted.begin(), sorted.end(), [](const CostPair& a, const CostPair& b) {
    return std::pair(a.cost, a.carbon) < std::pair(b.cost, b.carbon);
  });
  double area = 0, carbon = reference.carbon;
  for (const CostPair& point : sorted) {
    if (point.cost >= reference.cost || point.carbon >= carbon) continue;
    area += (reference.cost - point.cost) * (carbon - point.carbon);
    carbon = point.carbon;
  }
  return area / ((reference.cost - ideal.cost) * (reference.carbon - ideal.carbon));
}

OrderedJson FrontPointsJson(const RoutingEvaluation& evaluation, const RegionNetwork& network) {
  OrderedJson policies = OrderedJson::array();
  for (int p = 0; p < static_cast<int>(evaluation.policies.size()); ++p) {
    const int seeds = evaluation.seeds(p);
    OrderedJson cost = OrderedJson::array(), carbon = OrderedJson::array();
    double dollars = 0, late = 0;
    for (int i = 0; i < evaluation.episodes; ++i) {
      for (int seed = 0; seed < seeds; ++seed) {
        const RoutingFigures& one = evaluation.at(0, p, seed, i);
        cost.push_back(one.objective() - one.PerRequest(one.carbon));
        carbon.push_back(kMillion * kGramsPerKg * one.PerRequest(one.carbon_kg));
        dollars += kMillion * one.PerRequest(one.dollars);
        late += 100 * one.late_share();
      }
    }
    const double count = static_cast<double>(evaluation.episodes) * seeds;
    policies.push_back({{"policy", evaluation.policies[p]},
                        {"starts", evaluation.episodes},
                        {"seeds", seeds},
                        {"cost", std::move(cost)},
                        {"carbon", std::move(carbon)},
                        {"dollars_per_million", dollars / count},
                        {"late_percent", late / count}});
  }
  return {{"carbon_per_kg", network.objective.carbon_per_kg},
          {"unit_dollars", network.unit_dollars()},
          {"policies", std::move(policies)}};
}

Result<void> AddFrontPoints(const Json& points, std::string_view source_name,
                            const std::string& variant, std::vector<PolicyFront>* fronts) {
  const JsonReader root(points, source_name);
  TRY_ASSIGN(const JsonReader weight, root.At("carbon_per_kg"));
  TRY_ASSIGN(const double carbon_per_kg, weight.AsDouble());
  TRY_ASSIGN(const JsonReader unit, root.At("unit_dollars"));
  TRY_ASSIGN(const double unit_dollars, unit.AsDouble());
  TRY_ASSIGN(const JsonReader list, root.At("policies"));
  TRY_ASSIGN(const std::vector<JsonReader> policies, list.Elements());
  const bool first = fronts->empty();
  if (!first && policies.size() != fronts->size())
    return list.Refuse(fmt::format("expected {} policies", fronts->size()));
  for (size_t p = 0; p < policies.size(); ++p) {
    const JsonReader& policy = policies[p];
    TRY_ASSIGN(const JsonReader name_of, policy.At("policy"));
    TRY_ASSIGN(const std::string name, name_of.AsString());
    if (first) fronts->push_back({.policy = name, .points = {}});
    PolicyFront& front = (*fronts)[p];
    if (front.policy != name) return name_of.Refuse(fmt::format("expected \"{}\"", front.policy));
    TRY_ASSIGN(const int starts, CountAt(policy, "starts"));
    TRY_ASSIGN(const int seeds, CountAt(policy, "seeds"));
    FrontPoint point{
        .variant = variant, .carbon_per_kg = carbon_per_kg, .unit_dollars = unit_dollars};
    TRY_ASSIGN(point.cost, MatrixOf(policy, "cost", starts, seeds));
    TRY_ASSIGN(point.carbon, MatrixOf(policy, "carbon", starts, seeds));
    TRY_ASSIGN(const JsonReader dollars, policy.At("dollars_per_million"));
    TRY_ASSIGN(point.dollars_per_million, dollars.AsDouble());
    TRY_ASSIGN(const JsonReader late, policy.At("late_percent"));
    TRY_ASSIGN(point.late_percent, late.AsDouble());
    const auto after = std::upper_bound(
        front.points.begin(), front.points.end(), carbon_per_kg,
        [](double value, const FrontPoint& other) { return value < other.carbon_per_kg; });
    front.points.insert(after, std::move(point));
  }
  return {};
}

OrderedJson FrontJson(const std::vector<PolicyFront>& fronts, uint64_t seed) {
  CHECK(!fronts.empty());
  std::vector<std::vector<CostPair>> means;
  for (const PolicyFront& front : fronts) means.push_back(MeansOf(front));
  const auto [ideal, reference] = CornersOf(means);
  const auto volumes = Resampled(fronts, ideal, reference, seed);
  const int episodes = fronts[0].points[0].cost.starts;
  std::vector<CostPair> all;
  for (const auto& points : means) all.insert(all.end(), points.begin(), points.end());
  const double of_candidate = Hypervolume(means.back(), ideal, reference);
  OrderedJson policies = OrderedJson::array();
  for (size_t p = 0; p < fronts.size(); ++p) {
    OrderedJson points = OrderedJson::array();
    for (size_t i = 0; i < fronts[p].points.size(); ++i) {
      points.push_back(PointJson(fronts[p].points[i], means[p][i], means[p][0]));
      points.back()["on_front"] = !IsBeaten(means[p][i], all);
    }
    const double volume = Hypervolume(means[p], ideal, reference);
    const ConfidenceInterval interval = PercentileInterval(volumes[p]);
    OrderedJson policy{{"policy", fronts[p].policy},
                       {"hypervolume", volume},
                       {"hypervolume_ci95", {interval.low, interval.high}}};
    if (p + 1 < fronts.size()) {
      std::vector<double> differences;
      for (size_t r = 0; r < volumes[p].size(); ++r)
        differences.push_back(volumes.back()[r] - volumes[p][r]);
      const ConfidenceInterval difference = PercentileInterval(differences);
      policy["difference"] = of_candidate - volume;
      policy["difference_ci95"] = {difference.low, difference.high};
      OrderedJson better;
      if (episodes >= kEpisodesForFinding && (difference.low > 0 || difference.high < 0))
        better = difference.low > 0;
      policy["better"] = better;
    }
    policy["points"] = std::move(points);
    policies.push_back(std::move(policy));
  }
  return {{"episodes", episodes},
          {"ideal", PairJson(ideal)},
          {"reference", PairJson(reference)},
          {"policies", std::move(policies)}};
}

bool MakesCarbonFronts(const Experiment& experiment) {
  static constexpr std::string_view kCarbonWeight = "regions.objective.carbon_per_kg";
  const auto is_weight = [](const ExperimentVariant& variant) {
    return variant.changes.empty() ||
           (variant.changes.size() == 1 && variant.changes[0].path == kCarbonWeight);
  };
  return experiment.routing && experiment.variants.size() > 1 &&
         std::all_of(experiment.variants.begin(), experiment.variants.end(), is_weight);
}

Result<OrderedJson> CarbonFronts(const Experiment& experiment,
                                 const std::vector<ExperimentCell>& cells,
                                 const std::filesystem::path& folder) {
  OrderedJson all = OrderedJson::array();
  if (!MakesCarbonFronts(experiment)) return all;
  // Cells that differ in their variant alone follow each other.
  const size_t each = experiment.variants.size();
  for (size_t first = 0; first < cells.size(); first += each) {
    std::vector<PolicyFront> fronts;
    for (size_t i = first; i < first + each; ++i) {
      const std::filesystem::path file = folder / cells[i].name / kFrontFile;
      TRY_ASSIGN(const std::string text, ReadFile(file));
      TRY_ASSIGN(const Json points, ParseJson(text, file.string()));
      TRY(AddFrontPoints(points, file.string(), experiment.variants[cells[i].variant].name,
                         &fronts));
    }
    const RoutingExperiment& routing = *experiment.routing;
    OrderedJson front{{"scenario", routing.region_variants[cells[first].region_variant]},
                      {"place", routing.places[cells[first].place].name},
                      {"file", experiment.scenarios[cells[first].scenario].stem().string()}};
    front.update(FrontJson(fronts, experiment.seed));
    all.push_back(std::move(front));
  }
  return all;
}

std::string FrontTable(const OrderedJson& front) {
  using Align = TextTable::Align;
  TextTable table({{"policy"},
                   {"$/t", Align::kRight},
                   {"cost without carbon", Align::kRight},
                   {"g of a million", Align::kRight},
                   {"$ of a million", Align::kRight},
                   {"late %", Align::kRight},
                   {"paid $/t", Align::kRight},
                   {"best"},
                   {"hypervolume 95 %"}});
  for (const OrderedJson& policy : front["policies"]) {
    bool first = true;
    for (const OrderedJson& point : policy["points"]) {
      const OrderedJson &interval = policy["hypervolume_ci95"],
                        &paid = point["paid_dollars_per_ton"];
      table.Row({first ? policy["policy"].get<std::string>() : "",
                 fmt::format("{:.0f}", point["dollars_per_ton"].get<double>()),
                 fmt::format("{:.4f}", point["cost"].get<double>()),
                 fmt::format("{:.2f}", point["carbon_g_per_million"].get<double>()),
                 fmt::format("{:.4f}", point["dollars_per_million"].get<double>()),
                 fmt::format("{:.2f}", point["late_percent"].get<double>()),
                 paid.is_null() ? "-" : fmt::format("{:.0f}", paid.get<double>()),
                 point["on_front"].get<bool>() ? "yes" : "",
                 first ? fmt::format("{:.3f} [{:.3f}, {:.3f}]", policy["hypervolume"].get<double>(),
                                     interval[0].get<double>(), interval[1].get<double>())
                       : ""});
      first = false;
    }
  }
  return table.Text();
}

}  // namespace rudderfish
