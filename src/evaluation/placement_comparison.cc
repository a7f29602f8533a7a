// SPDX-License-Identifier: Apache-2.0
#include "evaluation/placement_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "evaluation/comparison.h"

namespace rudderfish {
namespace {

constexpr PlacementMeasure::Better kMore = PlacementMeasure::Better::kMore;

constexpr PlacementMeasure kMeasures[] = {
    {.metric = "objective", .unit = "", .title = "objective", .decimals = 5},
    {.metric = "active_nodes", .unit = "nodes", .title = "active nodes"},
    {.metric = "active_nodes_at_bindings", .unit = "nodes", .title = "active nodes at bindings"},
    {.metric = "chosen_latency", .unit = "ms", .title = "node-user latency", .decimals = 1},
    {.metric = "call_latency", .unit = "ms", .title = "round trip of calls", .decimals = 2},
    {.metric = "utilisation_cpu",
     .unit = "",
     .title = "CPU utilisation",
     .decimals = 3,
     .better = kMore},
    {.metric = "active_utilisation_cpu",
     .unit = "",
     .title = "CPU utilisation of active nodes",
     .decimals = 3,
     .better = kMore},
    {.metric = "imbalance_cpu", .unit = "", .title = "imbalance of CPU", .decimals = 4},
    {.metric = "imbalance_memory", .unit = "", .title = "imbalance of memory", .decimals = 4},
    {.metric = "makespan", .unit = "s", .title = "makespan", .decimals = 1},
    {.metric = "waiting_pods", .unit = "pods", .title = "waiting pods"},
    {.metric = "soft_misses", .unit = "bindings", .title = "above the soft limit", .decimals = 1},
    {.metric = "hard_misses", .unit = "bindings", .title = "above the hard limit", .decimals = 1}};

// Equal placements may be summed in another order.
double WithoutRounding(double value) { return value > -kTie && value < kTie ? 0 : value; }

OrderedJson PlacementPairOf(const PlacementEvaluation& evaluation, const EvaluatedPlacement& other,
                            const PlacementMeasure& measure) {
  const EvaluatedPlacement& candidate = evaluation.policies.back();
  const RunMatrix own = candidate.Runs(measure.metric, evaluation.episodes),
                  base = other.Runs(measure.metric, evaluation.episodes);
  const ConfidenceInterval interval =
      BootstrapPairedDifference(own, base, {.seed = evaluation.seed});
  const double low = WithoutRounding(interval.low), high = WithoutRounding(interval.high);
  OrderedJson better = nullptr;
  if (evaluation.episodes >= kStartsForFinding && (low > 0 || high < 0))
    better = (low > 0) == (measure.better == kMore);
  return {{"metric", measure.metric},
          {"unit", measure.unit},
          {"candidate", candidate.name},
          {"baseline", other.name},
          {"candidate_iqm", InterquartileMean(own.values)},
          {"baseline_iqm", InterquartileMean(base.values)},
          {"candidate_mean", Mean(own.values)},
          {"baseline_mean", Mean(base.values)},
          {"difference", WithoutRounding(PairedDifference(own, base))},
          {"difference_ci95", {low, high}},
          {"episodes", evaluation.episodes},
          {"seeds", candidate.training_seeds},
          {"better", better}};
}

}  // namespace

std::span<const PlacementMeasure> PlacementMeasures() { return kMeasures; }

OrderedJson PlacementPairs(const PlacementEvaluation& evaluation, const PlacementPlace& place) {
  OrderedJson pairs = OrderedJson::array();
  for (size_t p = 0; p + 1 < evaluation.policies.size(); ++p) {
    for (const PlacementMeasure& measure : kMeasures) {
      OrderedJson pair = {
          {"scenario", place.scenario}, {"objective", place.objective}, {"variant", place.variant}};
      pair.update(PlacementPairOf(evaluation, evaluation.policies[p], measure));
      pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

std::string PlacementPairsTable(const OrderedJson& pairs) {
  const auto text = [](const OrderedJson& pair, const char* key) {
    return pair[key].get<std::string>();
  };
  size_t cell_width = 4, width = 8;
  for (const OrderedJson& pair : pairs) {
    cell_width =
        std::max(cell_width, text(pair, "scenario").size() + text(pair, "objective").size() +
                                 text(pair, "variant").size() + 2);
    width = std::max(width, text(pair, "baseline").size());
  }
  std::string table =
      fmt::format("{:<{}}  {:<{}}  {:>8}  {:>9}  {:>20}  {}\n", "CELL", cell_width, "BASELINE",
                  width, "MEAN", "CANDIDATE", "DIFFERENCE 95 %", "BETTER");
  for (const OrderedJson& pair : pairs) {
    if (text(pair, "metric") != kMeasures[0].metric) continue;
    const OrderedJson& better = pair["better"];
    table += fmt::format("{:<{}}  {:<{}}  {:8.5f}  {:9.5f}  {:>20}  {}\n",
                         fmt::format("{}.{}.{}", text(pair, "scenario"), text(pair, "objective"),
                                     text(pair, "variant")),
                         cell_width, text(pair, "baseline"), width,
                         pair["baseline_mean"].get<double>(), pair["candidate_mean"].get<double>(),
                         IntervalText({pair["difference_ci95"][0].get<double>(),
                                       pair["difference_ci95"][1].get<double>()},
                                      5),
                         better.is_null()     ? "undecided"
                         : better.get<bool>() ? "yes"
                                              : "no, worse");
  }
  return pairs.empty() ? table : table + TooFewText(pairs[0]["episodes"].get<int64_t>(), "episode");
}

}  // namespace rudderfish
