// SPDX-License-Identifier: Apache-2.0
#include "policy/policy_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "policy/baselines.h"
#include "policy/exact.h"
#include "policy/greedy.h"
#include "policy/kube_default.h"

namespace rudderfish {
namespace {

using Options = std::vector<PolicyOption>;

constexpr double kDayMs = 86'400'000;
constexpr double kMostReplicas = 100'000;
constexpr double kMostRate = 1e9;
constexpr double kMixWeightMax = 1e6;  // Beyond it a sum of scores would say one of them alone.

PolicyOption Integer(std::string_view key, std::string_view fallback, double low, double high,
                     std::string_view help) {
  return {key, PolicyOption::Kind::kInteger, fallback, low, high, help, {}};
}

PolicyOption Number(std::string_view key, std::string_view fallback, double low, double high,
                    std::string_view help) {
  return {key, PolicyOption::Kind::kNumber, fallback, low, high, help, {}};
}

PolicyOption Percent(std::string_view key, std::string_view fallback, double low, double high,
                     std::string_view help) {
  return {key, PolicyOption::Kind::kPercent, fallback, low, high, help, {}};
}

PolicyOption Span(std::string_view key, std::string_view fallback, double low_ms, double high_ms,
                  std::string_view help) {
  return {key, PolicyOption::Kind::kDuration, fallback, low_ms, high_ms, help, {}};
}

PolicyOption Word(std::string_view key, std::vector<std::string_view> words,
                  std::string_view help) {
  return {key, PolicyOption::Kind::kWord, words[0], 0, 0, help, std::move(words)};
}

PolicyOption Run(std::string_view help) {
  return {kRunOption, PolicyOption::Kind::kPath, "", 0, 0, help, {}};
}

PolicyOption Directed() {
  return Integer("directed", "2", 0, 1000,
                 "plans of it that begin by bringing workloads together in a layer");
}

template <class P, auto... kArguments>
Result<std::unique_ptr<Policy>> Simple(const PolicyOptions&, const Task&) {
  return std::make_unique<P>(kArguments...);
}

std::vector<PolicyRow> MoveRows() {
  constexpr TaskKind kMove = TaskKind::kMove;
  return {
      {kMove, "stay", "moves nothing", &Simple<StayPolicy>, {}, ""},
      {kMove, "random", "a random move, or none", &Simple<RandomPolicy>, {}, ""},
      {kMove,
       "kube-default",
       "the node that kube-scheduler's default scores rank highest",
       &Simple<NodeScorePolicy, NodeScoring::kKubeDefault>,
       {},
       ""},
      {kMove,
       "least-allocated",
       "the node with the largest free share of CPU and memory",
       &Simple<NodeScorePolicy, NodeScoring::kLeastAllocated>,
       {},
       ""},
      {kMove,
       "most-allocated",
       "the node with the smallest free share of CPU and memory",
       &Simple<NodeScorePolicy, NodeScoring::kMostAllocated>,
       {},
       ""},
      {kMove, "descheduler",
       "from the most used node to where kube-scheduler's scores rank, while others are idle",
       &MakeDescheduler,
       Options{Percent("low", "20", 0, 100,
                       "nodes whose requests are below it, CPU and memory, are underutilized"),
               Percent("high", "50", 0, 100,
                       "nodes whose requests are above it, CPU or memory, are overutilized")},
       ""},
      {kMove, "greedy", "the single move that reduces latency most", &Simple<GreedyPolicy>, {}, ""},
      {kMove, "lookahead", "a beam search for the best plan of several moves", &MakeLookahead,
       Options{
           Integer("width", "512", 1, 1 << 20, "plans kept at each depth; 64 with run"),
           Integer("patience", "4", 1, 1e6, "depths without a better plan before it ends"),
           Integer("evaluations", "1000000", 1, 1e15,
                   "moves evaluated for a plan; given without width, the search is as wide as they "
                   "allow"),
           Span("time", "", 1e-3, kDayMs,
                "time for a plan; given without width, the search is as wide as it allows"),
           Directed(), Run("a trained policy whose plans stand beside those of the search")},
       ""},
      {kMove, "best-of", "the best of several plans of a trained policy, greedy's plan and staying",
       &MakeBestOf,
       Options{Integer("samples", "16", 0, 100'000, "plans that it samples"), Directed(),
               Run("the trained policy; required")},
       "best-of:run=RUN"},
      {kMove,
       "exact",
       "the optimal plan of small scenarios, by branch and bound",
       &Simple<ExactPolicy>,
       {},
       ""},
  };
}

Options MixedOptions() {
  // In the order of kPlacementScoreNames.
  constexpr std::string_view kHelp[kPlacementScores] = {
      "weight of the objective after placing the pod",
      "weight of kube-scheduler's default scores",
      "weight of the mean free share of CPU and memory",
      "weight of the mean used share of CPU and memory",
      "weight of the mean used share of all resources, devices included",
      "weight of the objective's balance term",
      "weight of the objective's energy term",
      "weight of the objective's utilisation term",
      "weight of the objective's fragmentation term",
      "weight of the objective's cost term",
      "weight of the objective's latency term",
      "weight of the objective's calls term"};
  Options options;
  for (int i = 0; i < kPlacementScores; ++i) {
    options.push_back(
        Number(kPlacementScoreNames[i], "0", -kMixWeightMax, kMixWeightMax, kHelp[i]));
  }
  options.push_back(Run("a trained policy whose log-probabilities the scores are added to"));
  return options;
}

std::vector<PolicyRow> PlaceRows() {
  constexpr TaskKind kPlace = TaskKind::kPlace;
  const Options rule = {Word("limits", {"keep", "ignore"},
                             "whether it keeps hard latency limits; kube-scheduler does not know "
                             "them (simulation only)")};
  return {
      {kPlace, "kube-default", "the node that kube-scheduler's default scores rank highest",
       &MakePlacementRule, rule, ""},
      {kPlace, "least-allocated", "the node with the largest free share of CPU and memory",
       &MakePlacementRule, rule, ""},
      {kPlace, "most-allocated", "the node with the smallest free share of CPU and memory",
       &MakePlacementRule, rule, ""},
      {kPlace, "round-robin", "the nodes in turn", &MakePlacementRule, rule, ""},
      {kPlace, "greedy", "the node with the best objective after placing the pod",
       &MakePlacementRule, rule, ""},
      {kPlace, "lookahead", "a beam search over this pod and the pods waiting behind it",
       &MakeQueueLookahead,
       Options{Integer("width", "16", 1, 4096, "plans kept after each pod"),
               Integer("depth", "8", 1, QueueLookaheadOptions::kDepthMax,
                       "pods it looks at, the first included"),
               Integer("evaluations", "20000", 1, 1e9, "nodes tried for an answer")},
       ""},
      {kPlace, "mixed", "the node with the largest weighted sum of scores", &MakeMixed,
       MixedOptions(), "mixed:greedy=1"},
  };
}

std::vector<PolicyRow> ScaleRows() {
  constexpr TaskKind kScale = TaskKind::kScale;
  // Of autoscalers that change replicas as an HPA does.
  const Options behavior = {
      Word("policies", {"default", "fast", "gentle"},
           "how fast replicas change: as Kubernetes' defaults, up to 10 times as many in 15 s, or "
           "down by one pod a minute"),
      Span("up", "0s", 0, kDayMs, "stabilization window for scaling up"),
      Span("down", "300s", 0, kDayMs, "stabilization window for scaling down"),
      Integer("min", "1", 1, kMostReplicas, "minimum replicas of every workload"),
      Number("min-rate", "0", 0, kMostRate,
             "minimum replicas that serve this many requests per second")};
  Options hpa = {
      Percent("cpu", "80", 1, 1000, "target CPU utilization; unused if only rate is given"),
      Number("rate", "", 0.001, kMostRate, "target calls per second and pod"),
      Number("tolerance", "0.1", 0, 10, "relative change of a metric that it ignores")};
  hpa.insert(hpa.end(), behavior.begin(), behavior.end());
  Options keda = {
      Number("share", "0.7", 0.01, 100, "target call rate, as a share of what a pod can serve")};
  keda.insert(keda.end(), behavior.begin(), behavior.end());
  const Options foresight = {
      Span("horizon", "90s", 1000, kDayMs, "how far it looks ahead"),
      Number("price", "1", 0, 1e9, "core-seconds that a late or failed request costs")};
  Options mpc = foresight;
  mpc.push_back(
      Number("headroom", "0.9", 0, 1, "quantile of forecast errors that it prepares for"));
  mpc.push_back(Span("season", "0s", 0, kDayMs, "period of the load; 0s: none"));
  return {
      {kScale, "hold", "the initial replicas, never changed", &MakeHold, {}, ""},
      {kScale, "hpa", "the HorizontalPodAutoscaler of Kubernetes", &MakeHpa, std::move(hpa), ""},
      {kScale, "keda", "an HPA on the rate of calls, as KEDA configures it", &MakeKeda,
       std::move(keda), ""},
      {kScale, "autopilot",
       "replicas for the peak use in a window, as Google's Autopilot recommends", &MakeAutopilot,
       Options{Number("share", "0.7", 0.01, 100,
                      "target use of a pod, as a share of what it can serve"),
               Span("window", "10min", 1000, kDayMs, "how far back the peak may lie")},
       ""},
      {kScale, "mpc", "model-predictive control: look-ahead on the load model and a forecast",
       &MakeMpc, std::move(mpc), ""},
      {kScale, "clairvoyant", "mpc that knows the future rates; a bound for others",
       &MakeClairvoyant, foresight, ""},
      {kScale, "static", "the fewest constant replicas that keep violations within a limit",
       &MakeStatic,
       Options{Percent("violations", "1%", 0, 100, "maximum percentage of late or failed requests"),
               Number("rate", "0", 0, kMostRate,
                      "requests per second to serve; 0: the peak of the load")},
       ""},
  };
}

Options WithAutoscaler(Options options, std::string_view use = "60") {
  Options below = {
      Percent("use", use, 1, 100, "target use of the ready nodes of a region"),
      Number("tolerance", "0.1", 0, 10, "relative difference to the target that is ignored"),
      Percent("spot", "50", 0, 100, "share of spot nodes, where there are any"),
      Span("down", "5min", 0, 7'140'000, "stabilization window for removing nodes")};
  options.insert(options.end(), below.begin(), below.end());
  return options;
}

std::vector<PolicyRow> RouteRows() {
  constexpr TaskKind kRoute = TaskKind::kRoute;
  const PolicyOption full =
      Percent("full", "80", 1, 100, "use of ready nodes beyond which requests spill over");
  const PolicyOption within =
      Span("within", "100ms", 0, 10'000, "maximum round trip, unless all within it are full");
  const Options split = {
      Number("foreign", "0.1", 0, 1e6, "price of a request served elsewhere"),
      Number("moving", "0.1", 0, 1e6, "price of a request that moves elsewhere"),
      Number("headroom", "0.5", 0, 1, "quantile of forecast errors that it prepares for"),
      Number("late_price", "", 0, 1e6, "price of a late request, other than the objective's"),
      Number("carbon_price", "", 0, 1e6, "dollars a kg of CO2, other than the objective's"),
      Number("provider_price", "0", 0, 1e6,
             "by how much a provider's requests grow dearer while it serves 10 points above its "
             "limit"),
      full};
  Options planned = split;
  planned.push_back(Number("spread", "0.7", 0, 100, "factor on the forecast errors seen so far"));
  planned.push_back(Number("hazard", "4", 0, 1000,
                           "how often an hour spot nodes are taken away while they are scarce"));
  planned.push_back(
      Number("notice", "8", 1, 50, "how many times likelier a notice is while they are scarce"));
  planned.push_back(
      Number("risk", "0", 0, 1e6, "price of a request on spot nodes while they are scarce"));
  planned.push_back(
      Number("pull", "0.1", 0, 1e6, "price of another use or spot share than `use` and `spot`"));
  planned.push_back(Span("hold", "5min", 1000, 3'600'000, "how long a choice holds"));
  return {
      {kRoute, "static", "fixed shares: a part stays home, the rest goes to all regions by size",
       &MakeStaticRoute,
       WithAutoscaler({Percent("home", "100", 0, 100, "share of requests that stays home")}), ""},
      {kRoute, "locality", "the nearest region, with spill-over to the next nearest",
       &MakeRankedRoute, WithAutoscaler({full}), ""},
      {kRoute, "cheapest", "the region with the lowest price of nodes and egress", &MakeRankedRoute,
       WithAutoscaler({full, within}), ""},
      {kRoute, "greenest", "the region with the lowest carbon intensity", &MakeRankedRoute,
       WithAutoscaler({full}), ""},
      {kRoute, "carbon-aware", "the region with the lowest carbon intensity within a round trip",
       &MakeRankedRoute, WithAutoscaler({full, within}), ""},
      {kRoute, "least-latency", "the region with the lowest round trip plus measured wait",
       &MakeRankedRoute, WithAutoscaler({full}), ""},
      {kRoute, "round-robin", "all regions evenly", &MakeStaticRoute, WithAutoscaler({}), ""},
      {kRoute, "power-of-two", "of two regions drawn, the one with the lower latency",
       &MakeProbedRoute, WithAutoscaler({}), ""},
      {kRoute, "prequal",
       "of some regions drawn, the lowest latency, or the fewest requests in flight if all are hot",
       &MakeProbedRoute,
       WithAutoscaler({Number("probes", "3", 1, 16, "regions that a request probes"),
                       Percent("hot", "84", 0, 100,
                               "quantile of requests in flight beyond which a region is hot")}),
       ""},
      {kRoute, "lp", "the split of least cost by the queueing model, solved each interval",
       &MakeSplitRoute, WithAutoscaler(split), ""},
      {kRoute, "mpc",
       "lp, and below it in each region the use and spot share of least predicted cost",
       &MakePlannedRoute, WithAutoscaler(planned, "54"), ""},
      {kRoute, "clairvoyant",
       "mpc that knows the demand to come, though not what happens to nodes; a bound for others",
       &MakePlannedRoute, WithAutoscaler(planned, "54"), ""},
  };
}

}  // namespace

const std::vector<PolicyRow>& PolicyTable() {
  static const auto* table = [] {
    auto* rows = new std::vector<PolicyRow>(MoveRows());
    std::ranges::move(PlaceRows(), std::back_inserter(*rows));
    std::ranges::move(ScaleRows(), std::back_inserter(*rows));
    std::ranges::move(RouteRows(), std::back_inserter(*rows));
    return rows;
  }();
  return *table;
}

const PolicyRow* FindPolicy(TaskKind task, std::string_view name) {
  const auto& table = PolicyTable();
  const auto row = std::find_if(table.begin(), table.end(), [&](const PolicyRow& one) {
    return one.task == task && one.name == name;
  });
  return row == table.end() ? nullptr : &*row;
}

std::vector<std::string_view> PolicyNames() {
  std::vector<std::string_view> names;
  for (const PolicyRow& row : PolicyTable()) {
    if (std::find(names.begin(), names.end(), row.name) == names.end()) names.push_back(row.name);
  }
  return names;
}

std::vector<std::string_view> PolicyNamesOf(TaskKind task) {
  std::vector<std::string_view> names;
  for (const PolicyRow& row : PolicyTable()) {
    if (row.task == task) names.push_back(row.name);
  }
  return names;
}

bool IsPolicyName(std::string_view name) {
  return std::ranges::any_of(PolicyTable(), [&](const PolicyRow& row) { return row.name == name; });
}

std::vector<std::string_view> OptionsOfPolicy(std::string_view name) {
  std::vector<std::string_view> keys;
  for (const PolicyRow& row : PolicyTable()) {
    if (row.name != name) continue;
    for (const PolicyOption& option : row.options) {
      if (std::find(keys.begin(), keys.end(), option.key) == keys.end()) keys.push_back(option.key);
    }
  }
  return keys;
}

}  // namespace rudderfish
