// SPDX-License-Identifier: Apache-2.0
#include "evaluation/routing_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "base/yaml_writer.h"
#include "policy/policy_table.h"
#include "policy/registry.h"
#include "sim/routing_evaluation.h"
#include "sim/scaling_evaluation.h"

namespace rudderfish {
namespace {

constexpr std::string_view kRoutingCalibrationFormat = "routing-calibration/v1";
constexpr uint64_t kDrawStream = 0x73657474696e67;  // Of the seed.
constexpr size_t kClimbFrom = 3;                    // Of the best ones drawn.
constexpr int kPassesMax = 6;
constexpr size_t kJudgedAgain = 12, kFinalistsKept = 5;
constexpr double kTighter[] = {1, 0.9, 0.75};  // Of limits, to choose who is judged again.

constexpr std::string_view kLatePrice = "late_price", kCarbonPrice = "carbon_price",
                           kProviderPrice = "provider_price";

// Values of an option, rising. `low_ends`, `high_ends`: where the option itself ends, or its
// effect does.
struct Ladder {
  std::string_view key;
  std::vector<std::string_view> values;
  bool low_ends = false, high_ends = false;
};

const std::vector<Ladder>& Ladders() {
  static const auto* ladders = new std::vector<Ladder>{
      {"use", {"25", "32", "40", "47", "54", "60", "66", "72", "78", "84", "90", "95"}},
      {"tolerance", {"0", "0.03", "0.06", "0.1", "0.15", "0.2", "0.3"}, true},
      {"spot", {"0", "15", "30", "45", "60", "75", "90", "100"}, true, true},
      {"down", {"0s", "1min", "2min", "4min", "7min", "12min", "20min", "40min"}, true},
      {"full", {"40", "50", "60", "68", "76", "84", "90", "95", "100"}, false, true},
      {"foreign", {"0", "0.03", "0.07", "0.15", "0.3", "0.6", "1.2", "2.4", "5", "10"}, true},
      {"moving", {"0", "0.03", "0.07", "0.15", "0.3", "0.6", "1.2", "2.4", "5", "10"}, true},
      {"headroom", {"0", "0.1", "0.3", "0.5", "0.65", "0.8", "0.9", "0.97", "1"}, true, true},
      {"within", {"0ms", "20ms", "40ms", "60ms", "90ms", "130ms", "180ms", "250ms"}, true},
      {"spread", {"0", "0.4", "0.7", "1", "1.5", "2.2", "3.2", "4.5", "6.5"}, true},
      {"hazard", {"0", "0.5", "1", "2", "4", "8", "16", "32", "64"}, true},
      {"notice", {"1", "2", "4", "8", "16", "32", "48"}, true, true},
      {"risk", {"0", "0.05", "0.1", "0.2", "0.4", "0.8", "1.6", "3.2", "6.4"}, true, true},
      {"pull", {"0", "0.03", "0.1", "0.3", "1", "3", "10"}, true, true},
      {"hold", {"1min", "2min", "3min", "5min", "8min", "12min", "20min"}, true},
      {"probes", {"1", "2", "3", "4", "6", "8", "11", "16"}, true, true},
      {"hot", {"0", "20", "40", "60", "70", "77", "84", "90", "95", "100"}, true, true},
      {"home", {"0", "20", "40", "60", "70", "80", "90", "100"}, true, true},
      // Multipliers: only where something is limited.
      {kLatePrice, {"0", "0.5", "1", "2", "4", "8", "16", "32", "64", "128", "256", "512"}, true},
      {kCarbonPrice, {"0", "1", "3", "6", "12", "25", "50", "100", "200", "400"}, true},
      {kProviderPrice, {"0", "0.01", "0.03", "0.1", "0.3", "1", "3", "10"}, true, true}};
  return *ladders;
}

// Whether the option is searched: multipliers are, where they are of a limit.
bool IsSearched(std::string_view key, const RoutingLimits& limits) {
  if (key == kProviderPrice) return limits.provider_percent < RoutingLimits::kNone;
  return limits.any() || (key != kLatePrice && key != kCarbonPrice);
}

using Setting = std::vector<int>;  // [option] A value of its ladder.

class RouteSearch {
 public:
  RouteSearch(const std::shared_ptr<const RegionWorld>& world, std::string_view policy,
              const RoutingCalibrationOptions& options, ThreadPool* pool)
      : world_(world), laws_(LawsOf(*world)), policy_(policy), options_(options), pool_(pool) {
    const PolicyRow* row = FindPolicy(TaskKind::kRoute, policy);
    CHECK(row != nullptr);
    for (const PolicyOption& option : row->options) {
      for (const Ladder& ladder : Ladders()) {
        if (ladder.key != option.key) continue;
        if (IsSearched(ladder.key, world->network->limits)) ladders_.push_back(&ladder);
      }
    }
  }

  std::string TextOf(const Setting& setting) const {
    std::string text(policy_);
    for (size_t i = 0; i < ladders_.size(); ++i) {
      text += fmt::format("{}{}={}", i == 0 ? ':' : ',', ladders_[i]->key,
                          ladders_[i]->values[static_cast<size_t>(setting[i])]);
    }
    return text;
  }

  Setting Draw(Rng* rng) const {
    Setting setting;
    for (const Ladder* ladder : ladders_)
      setting.push_back(static_cast<int>(rng->Below(static_cast<uint32_t>(ladder->values.size()))));
    return setting;
  }

  std::vector<Setting> NeighboursOf(const Setting& setting) const {
    std::vector<Setting> all;
    for (size_t i = 0; i < setting.size(); ++i) {
      for (const int step : {-1, 1}) {
        Setting next = setting;
        next[i] += step;
        if (next[i] >= 0 && next[i] < static_cast<int>(ladders_[i]->values.size()))
          all.push_back(std::move(next));
      }
    }
    return all;
  }

  std::vector<std::string> EdgesOf(const Setting& setting) const {
    std::vector<std::string> edges;
    for (size_t i = 0; i < setting.size(); ++i) {
      const bool low = setting[i] == 0 && !ladders_[i]->low_ends;
      const bool high =
          setting[i] + 1 == static_cast<int>(ladders_[i]->values.size()) && !ladders_[i]->high_ends;
      if (low || high) edges.emplace_back(ladders_[i]->key);
    }
    return edges;
  }

  // False if it was stopped; then none of them counts. What is known is not judged again.
  bool Judge(const std::vector<Setting>& settings, int episodes) {
    std::vector<Setting> fresh;
    auto& known = known_[episodes];
    for (const Setting& one : settings) {
      if (known.find(one) == known.end() &&
          std::find(fresh.begin(), fresh.end(), one) == fresh.end())
        fresh.push_back(one);
    }
    std::vector<std::shared_ptr<const RoutingPolicy>> policies;
    for (const Setting& one : fresh) {
      Result<std::unique_ptr<RoutingPolicy>> made = MakeRoutingRule(TextOf(one));
      CHECK(made.has_value());  // Ladders are ours.
      policies.push_back(std::move(*made));
    }
    const int each = static_cast<int>(options_.variants.size()) * episodes;
    std::vector<CalibratedRoute> judged(fresh.size());
    std::atomic<bool> stopped = false;
    pool_->ParallelFor(static_cast<int>(fresh.size()), [&](int index, int) {
      if (options_.stop != nullptr && options_.stop->load()) stopped = true;
      if (stopped) return;
      CalibratedRoute& one = judged[static_cast<size_t>(index)];
      one.policy = TextOf(fresh[static_cast<size_t>(index)]);
      RegionSimulator simulator(world_, laws_);
      for (int i = 0; i < each; ++i) {
        const RegionVariant& variant = world_->variants[options_.variants[i / episodes]];
        const RoutingFigures figures = RunRouting(
            *policies[static_cast<size_t>(index)],
            {variant, CalibrationSeed(options_.seed) + static_cast<uint64_t>(i % episodes)},
            &simulator);
        one.means.Add(figures, 1.0 / each);
      }
    });
    if (stopped) return false;
    for (size_t i = 0; i < fresh.size(); ++i) known[fresh[i]] = judged[i];
    return true;
  }

  // All that were judged on so many episodes, the best first, as if limits were `tighter` times as
  // high.
  std::vector<std::pair<Setting, CalibratedRoute>> Ranked(int episodes, double tighter = 1) const {
    std::vector<std::pair<Setting, CalibratedRoute>> ranked;
    const auto found = known_.find(episodes);
    if (found != known_.end()) ranked.assign(found->second.begin(), found->second.end());
    RoutingLimits limits = world_->network->limits;
    for (double* limit : {&limits.late_percent, &limits.carbon_kg_per_h, &limits.dollars_per_h,
                          &limits.provider_percent})
      *limit *= tighter;
    const auto rank = [&](const auto& one) {
      return std::pair(BeyondLimits(limits, one.second.means), one.second.means.objective);
    };
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    return ranked;
  }

  int tried() const {
    size_t most = 0;
    for (const auto& [episodes, known] : known_) most = std::max(most, known.size());
    return static_cast<int>(most);
  }

 private:
  std::shared_ptr<const RegionWorld> world_;
  ServiceLaws laws_;
  std::string_view policy_;
  const RoutingCalibrationOptions& options_;
  ThreadPool* pool_;
  std::vector<const Ladder*> ladders_;                       // Of the policy's options.
  std::map<int, std::map<Setting, CalibratedRoute>> known_;  // By episodes.
};

// Random settings, then uphill from the best ones. The number of episodes that counts at the end.
int Search(const RoutingCalibrationOptions& options, RouteSearch* search) {
  const auto tell = [&](double fraction, std::string_view text) {
    if (options.progress) options.progress(fraction, text);
  };
  Rng rng(options.seed, kDrawStream);
  std::vector<Setting> drawn;
  for (int i = 0; i < options.settings; ++i) drawn.push_back(search->Draw(&rng));
  constexpr int kParts = 16;
  for (int part = 0; part < kParts; ++part) {
    tell(0.6 * part / kParts, "settings at random");
    const auto begin = drawn.begin() + static_cast<long>(drawn.size()) * part / kParts;
    const auto end = drawn.begin() + static_cast<long>(drawn.size()) * (part + 1) / kParts;
    if (!search->Judge({begin, end}, options.episodes)) return options.episodes;
  }
  for (int pass = 0; pass < kPassesMax; ++pass) {
    tell(0.6 + 0.25 * pass / kPassesMax, "neighbours of the best");
    const auto ranked = search->Ranked(options.episodes);
    std::vector<Setting> next;
    for (size_t i = 0; i < std::min(kClimbFrom, ranked.size()); ++i) {
      const std::vector<Setting> around = search->NeighboursOf(ranked[i].first);
      next.insert(next.end(), around.begin(), around.end());
    }
    if (!search->Judge(next, options.episodes)) return options.episodes;
    if (search->Ranked(options.episodes)[0].first == ranked[0].first) break;
  }
  // A hundred settings on few episodes: some are best by luck, and keep limits by luck.
  tell(0.85, "the best on more episodes");
  std::vector<Setting> best;
  for (const double tighter : kTighter) {
    const auto ranked = search->Ranked(options.episodes, tighter);
    for (size_t i = 0; i < std::min(kJudgedAgain, ranked.size()); ++i)
      best.push_back(ranked[i].first);
  }
  const int more = kFinalistEpisodes * options.episodes;
  return search->Judge(best, more) ? more : options.episodes;
}

}  // namespace

RoutingCalibration CalibrateRouting(const std::string& scenario,
                                    const std::shared_ptr<const RegionWorld>& world,
                                    std::string_view policy,
                                    const RoutingCalibrationOptions& options, ThreadPool* pool) {
  RouteSearch search(world, policy, options, pool);
  RoutingCalibration calibration{.scenario = scenario, .seed = options.seed};
  for (const Region& region : world->network->regions) calibration.regions.push_back(region.name);
  for (const int variant : options.variants)
    calibration.variants.push_back(world->variants[variant].name);
  calibration.episodes = Search(options, &search);
  calibration.settings = search.tried();
  for (const auto& [setting, judged] : search.Ranked(calibration.episodes)) {
    if (calibration.finalists.empty()) calibration.edges = search.EdgesOf(setting);
    if (calibration.finalists.size() < kFinalistsKept) calibration.finalists.push_back(judged);
  }
  return calibration;
}

std::string RoutingCalibrationYaml(const RoutingCalibration& calibration) {
  const auto list = [](const std::vector<std::string>& texts) {
    return std::vector<YamlScalar>(texts.begin(), texts.end());
  };
  YamlWriter out;
  out.Comment(
      "Settings of a routing policy, best first: those of the smallest mean objective; where there "
      "are\nlimits, "
      "of those that keep them.\nedges: options of the best one at the end of their grid.");
  out.Field("rudderfish", kRoutingCalibrationFormat);
  out.Field("scenario", calibration.scenario);
  out.Field("sha256", calibration.sha256);
  out.FlowList("regions", list(calibration.regions));
  out.FlowList("variants", list(calibration.variants));
  out.Field("settings", calibration.settings);
  out.Field("episodes", calibration.episodes);
  out.Field("seed", calibration.seed);
  out.FlowList("edges", list(calibration.edges));
  out.BeginList("finalists");
  for (const CalibratedRoute& one : calibration.finalists) {
    out.BeginItem();
    out.Field("policy", one.policy);
    out.Field("objective", one.means.objective);
    out.Field("late_share", one.means.late_share);
    out.Field("carbon_kg_per_hour", one.means.carbon_kg_per_h);
    out.Field("dollars_per_hour", one.means.dollars_per_h);
    out.Field("provider_share", one.means.provider_share);
    out.End();
  }
  out.End();
  return out.Take();
}

Result<RoutingCalibration> ParseRoutingCalibration(const YamlNode& root) {
  TRY_ASSIGN(YamlMap map, root.AsMap());
  TRY_ASSIGN(const YamlNode format, map.Required("rudderfish"));
  TRY_ASSIGN(const std::string found, format.AsString());
  if (found != kRoutingCalibrationFormat)
    return format.Expected(fmt::format("\"{}\"", kRoutingCalibrationFormat));
  RoutingCalibration calibration;
  TRY_ASSIGN(calibration.scenario, map.RequiredString("scenario"));
  TRY_ASSIGN(calibration.sha256, map.RequiredString("sha256"));
  TRY_ASSIGN(calibration.regions, map.RequiredStrings("regions"));
  TRY_ASSIGN(calibration.variants, map.RequiredStrings("variants"));
  TRY_ASSIGN(const int64_t settings, map.RequiredInt("settings", 1, 1'000'000));
  TRY_ASSIGN(const int64_t episodes, map.RequiredInt("episodes", 1, 1'000'000));
  TRY_ASSIGN(const int64_t seed, map.RequiredInt("seed", 0, std::numeric_limits<int64_t>::max()));
  calibration.settings = static_cast<int>(settings);
  calibration.episodes = static_cast<int>(episodes);
  calibration.seed = static_cast<uint64_t>(seed);
  TRY_ASSIGN(calibration.edges, map.RequiredStrings("edges"));
  TRY_ASSIGN(const YamlNode list, map.Required("finalists"));
  TRY_ASSIGN(const std::vector<YamlNode> finalists, list.AsList());
  if (finalists.empty()) return list.Expected("at least one setting");
  for (const YamlNode& node : finalists) {
    constexpr double kMost = std::numeric_limits<double>::max();
    TRY_ASSIGN(YamlMap fields, node.AsMap());
    CalibratedRoute one;
    TRY_ASSIGN(const YamlNode policy, fields.Required("policy"));
    TRY_ASSIGN(one.policy, policy.AsString());
    const Result<std::unique_ptr<RoutingPolicy>> known = MakeRoutingRule(one.policy);
    if (!known) return policy.Refuse(known.error().message);
    TRY_ASSIGN(one.means.objective, fields.RequiredDouble("objective", 0, kMost));
    TRY_ASSIGN(one.means.late_share, fields.RequiredDouble("late_share", 0, 1));
    TRY_ASSIGN(one.means.carbon_kg_per_h, fields.RequiredDouble("carbon_kg_per_hour", 0, kMost));
    TRY_ASSIGN(one.means.dollars_per_h, fields.RequiredDouble("dollars_per_hour", 0, kMost));
    TRY_ASSIGN(one.means.provider_share, fields.OptionalDouble("provider_share", 0, 1, 1));
    TRY(fields.Finish());
    calibration.finalists.push_back(std::move(one));
  }
  TRY(map.Finish());
  return calibration;
}

}  // namespace rudderfish
