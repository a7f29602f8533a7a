// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "evaluation/scaling_difference.h"
#include "evaluation/scaling_summary.h"

// A ScalingSummary as JSON, there and back. What `evaluate --task scale -o json` prints.

namespace rudderfish {
namespace {

constexpr double kMostNumber = 1e12;
constexpr int kMostPods = 1'000'000;

// Figures are drawn from these: a thousandth is enough, and reads well.
double Thousandths(double value) { return std::round(value * 1000) / 1000; }

OrderedJson DifferenceJson(const ScalingDifference& d, Finding finding) {
  return {{"core_hours_difference", d.core_hours},
          {"core_hours_ci95", {d.core_hours_ci95.low, d.core_hours_ci95.high}},
          {"violation_share_difference", d.violation_share},
          {"violation_share_ci95", {d.violation_share_ci95.low, d.violation_share_ci95.high}},
          {"better", finding == Finding::kBetter}};
}

// A column a figure: shorter than a row an interval.
OrderedJson TimelineJson(const ScalingPolicySummary& policy, const ScalingSummary& summary) {
  OrderedJson json = {{"policy", policy.name}};
  for (const char* column : {"at_s", "requests_per_s", "p95_ms", "violation_share", "cores"})
    json[column] = OrderedJson::array();
  OrderedJson replicas = OrderedJson::object();
  for (const ScalingMoment& moment : policy.timeline) {
    json["at_s"].push_back(Thousandths(moment.at_s));
    json["requests_per_s"].push_back(Thousandths(moment.requests_per_s));
    json["p95_ms"].push_back(Thousandths(moment.p95_ms));
    json["violation_share"].push_back(moment.late_share);
    json["cores"].push_back(Thousandths(moment.cores));
    for (size_t w = 0; w < summary.nodes.size(); ++w) {
      if (!summary.nodes[w].client) replicas[summary.nodes[w].name].push_back(moment.replicas[w]);
    }
  }
  json["replicas"] = std::move(replicas);
  return json;
}

OrderedJson LoadJson(const ScalingLoadSummary& load, const ScalingSummary& summary) {
  OrderedJson json = {{"load", load.load},
                      {"requests_per_s", load.requests_per_s},
                      {"policies", OrderedJson::array()}};
  if (load.is_replay()) json["held_out_of_trace"] = {load.trace_from, load.trace_upto};
  for (const ScalingPolicySummary& policy : load.policies) {
    OrderedJson one = {{"policy", policy.name},
                       {"seeds", policy.seeds},
                       {"pod_hours", policy.pod_hours},
                       {"core_hours", policy.core_hours},
                       {"node_hours", policy.node_hours},
                       {"energy_wh", policy.energy_wh},
                       {"violation_share", policy.violation_share},
                       {"budget_used", summary.BudgetOf(policy)},
                       {"p95_ms", policy.p95_ms},
                       {"changes", policy.changes}};
    if (policy.against_baseline)
      one["against_baseline"] = DifferenceJson(*policy.against_baseline,
                                               policy.against_baseline->FindingOn(load.episodes));
    if (!policy.latency_ms.empty()) {
      one["latency_ms"] = OrderedJson::array();
      for (const double ms : policy.latency_ms) one["latency_ms"].push_back(Thousandths(ms));
    }
    json["policies"].push_back(std::move(one));
  }
  if (load.baseline >= 0) {
    OrderedJson comparison = {{"candidate", load.policies.back().name},
                              {"baseline", load.policies[load.baseline].name},
                              {"baseline_qualifies", load.baseline_qualifies()}};
    comparison.update(DifferenceJson(load.difference(), load.finding()));
    json["comparison"] = std::move(comparison);
    json["hypervolume"] = {{"all", Hypervolume(load.policies)},
                           {"without_candidate", Hypervolume(load.policies, load.candidate())}};
  }
  json["episode_shown"] = load.episode_shown;
  for (const ScalingPolicySummary& policy : load.policies) {
    if (!policy.timeline.empty()) json["timeline"].push_back(TimelineJson(policy, summary));
  }
  return json;
}

Result<double> NumberAt(const JsonReader& object, std::string_view key, double low = 0) {
  TRY_ASSIGN(const JsonReader value, object.At(key));
  return value.AsDouble(low, kMostNumber);
}

// A percentile; JSON has no infinity: null stands for no answer.
Result<double> PercentileOf(const JsonReader& value) {
  if (value.IsNull()) return std::numeric_limits<double>::infinity();
  return value.AsDouble(0, kMostNumber);
}

Result<double> NumberOr(const JsonReader& object, std::string_view key, double fallback) {
  TRY_ASSIGN(const std::optional<JsonReader> value, object.Find(key));
  return value ? value->AsDouble(0, kMostNumber) : Result<double>(fallback);
}

Result<ConfidenceInterval> IntervalAt(const JsonReader& object, std::string_view key) {
  TRY_ASSIGN(const JsonReader value, object.At(key));
  TRY_ASSIGN(const std::vector<JsonReader> ends, value.Elements());
  if (ends.size() != 2) return value.Expected("two numbers");
  ConfidenceInterval interval;
  TRY_ASSIGN(interval.low, ends[0].AsDouble(-kMostNumber, kMostNumber));
  TRY_ASSIGN(interval.high, ends[1].AsDouble(-kMostNumber, kMostNumber));
  return interval;
}

Result<ScalingDifference> DifferenceOfJson(const JsonReader& object) {
  ScalingDifference d;
  TRY_ASSIGN(d.core_hours, NumberAt(object, "core_hours_difference", -kMostNumber));
  TRY_ASSIGN(d.core_hours_ci95, IntervalAt(object, "core_hours_ci95"));
  TRY_ASSIGN(d.violation_share, NumberAt(object, "violation_share_difference", -kMostNumber));
  TRY_ASSIGN(d.violation_share_ci95, IntervalAt(object, "violation_share_ci95"));
  return d;
}

Result<ScalingPolicySummary> PolicyOf(const JsonReader& object) {
  ScalingPolicySummary policy;
  TRY_ASSIGN(const JsonReader name, object.At("policy"));
  TRY_ASSIGN(policy.name, name.AsString());
  TRY_ASSIGN(const JsonReader seeds, object.At("seeds"));
  TRY_ASSIGN(const int64_t count, seeds.AsInt(1, kMostPods));
  policy.seeds = static_cast<int>(count);
  TRY_ASSIGN(policy.pod_hours, NumberAt(object, "pod_hours"));
  TRY_ASSIGN(policy.core_hours, NumberAt(object, "core_hours"));
  // What earlier versions wrote has neither.
  TRY_ASSIGN(policy.node_hours, NumberOr(object, "node_hours", 0));
  TRY_ASSIGN(policy.energy_wh, NumberOr(object, "energy_wh", 0));
  TRY_ASSIGN(policy.violation_share, NumberAt(object, "violation_share"));
  TRY_ASSIGN(const JsonReader p95, object.At("p95_ms"));
  TRY_ASSIGN(policy.p95_ms, PercentileOf(p95));
  TRY_ASSIGN(policy.changes, NumberAt(object, "changes"));
  TRY_ASSIGN(const std::optional<JsonReader> against, object.Find("against_baseline"));
  if (against) {
    TRY_ASSIGN(policy.against_baseline, DifferenceOfJson(*against));
  }
  TRY_ASSIGN(const std::optional<JsonReader> latency, object.Find("latency_ms"));
  if (!latency) return policy;
  TRY_ASSIGN(const std::vector<JsonReader> values, latency->Elements());
  for (const JsonReader& value : values) {
    TRY_ASSIGN(const double ms, PercentileOf(value));
    policy.latency_ms.push_back(ms);
  }
  if (policy.latency_ms.size() != LatencyShares().size())
    return latency->Expected(std::to_string(LatencyShares().size()) + " latencies");
  return policy;
}

Result<std::vector<double>> ColumnAt(const JsonReader& object, std::string_view key, size_t rows) {
  TRY_ASSIGN(const JsonReader column, object.At(key));
  TRY_ASSIGN(const std::vector<JsonReader> values, column.Elements());
  if (values.size() != rows) return column.Expected(std::to_string(rows) + " numbers, as in at_s");
  std::vector<double> numbers;
  for (const JsonReader& value : values) {
    TRY_ASSIGN(const double number, value.AsDouble(0, kMostNumber));
    numbers.push_back(number);
  }
  return numbers;
}

Result<std::vector<ScalingMoment>> TimelineOf(const JsonReader& object,
                                              const ScalingSummary& summary) {
  TRY_ASSIGN(const JsonReader at, object.At("at_s"));
  TRY_ASSIGN(const std::vector<JsonReader> times, at.Elements());
  std::vector<ScalingMoment> moments(times.size());
  double before = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    TRY_ASSIGN(moments[i].at_s, times[i].AsDouble(0, kMostNumber));
    if (moments[i].at_s <= before) return times[i].Refuse("times must grow");
    before = moments[i].at_s;
    moments[i].replicas.assign(summary.nodes.size(), 0);
  }
  constexpr std::pair<const char*, double ScalingMoment::*> kColumns[] = {
      {"requests_per_s", &ScalingMoment::requests_per_s},
      {"p95_ms", &ScalingMoment::p95_ms},
      {"violation_share", &ScalingMoment::late_share},
      {"cores", &ScalingMoment::cores}};
  for (const auto& [key, member] : kColumns) {
    TRY_ASSIGN(const std::vector<double> column, ColumnAt(object, key, times.size()));
    for (size_t i = 0; i < column.size(); ++i) moments[i].*member = column[i];
  }
  TRY_ASSIGN(const JsonReader replicas, object.At("replicas"));
  for (size_t w = 0; w < summary.nodes.size(); ++w) {
    if (summary.nodes[w].client) continue;
    TRY_ASSIGN(const std::vector<double> column,
               ColumnAt(replicas, summary.nodes[w].name, times.size()));
    for (size_t i = 0; i < column.size(); ++i)
      moments[i].replicas[w] = static_cast<int>(std::min<double>(column[i], kMostPods));
  }
  return moments;
}

Result<int> PositionOf(const JsonReader& object, std::string_view key,
                       const std::vector<ScalingPolicySummary>& policies) {
  TRY_ASSIGN(const JsonReader value, object.At(key));
  TRY_ASSIGN(const std::string name, value.AsString());
  for (size_t p = 0; p < policies.size(); ++p) {
    if (policies[p].name == name) return static_cast<int>(p);
  }
  return value.Expected("one of the policies");
}

Result<ScalingLoadSummary> LoadOf(const JsonReader& object, const ScalingSummary& summary) {
  ScalingLoadSummary load{.episodes = summary.episodes, .late_max = summary.late_max};
  TRY_ASSIGN(const JsonReader name, object.At("load"));
  TRY_ASSIGN(load.load, name.AsString());
  TRY_ASSIGN(load.requests_per_s, NumberAt(object, "requests_per_s"));
  TRY_ASSIGN(const std::optional<JsonReader> held_out, object.Find("held_out_of_trace"));
  if (held_out) {
    TRY_ASSIGN(const std::vector<JsonReader> ends, held_out->Elements());
    if (ends.size() != 2) return held_out->Expected("two shares of a trace");
    TRY_ASSIGN(load.trace_from, ends[0].AsDouble(0, 1));
    TRY_ASSIGN(load.trace_upto, ends[1].AsDouble(load.trace_from, 1));
  }
  TRY_ASSIGN(const JsonReader list, object.At("policies"));
  TRY_ASSIGN(const std::vector<JsonReader> policies, list.Elements());
  if (policies.empty()) return list.Expected("at least one policy");
  for (const JsonReader& one : policies) {
    TRY_ASSIGN(ScalingPolicySummary policy, PolicyOf(one));
    load.policies.push_back(std::move(policy));
  }
  TRY_ASSIGN(const std::optional<JsonReader> comparison, object.Find("comparison"));
  if (comparison) {
    TRY_ASSIGN(load.baseline, PositionOf(*comparison, "baseline", load.policies));
    if (load.baseline == load.candidate()) return comparison->Refuse("a baseline of its own");
    TRY_ASSIGN(load.policies.back().against_baseline, DifferenceOfJson(*comparison));
  }
  TRY_ASSIGN(const JsonReader shown, object.At("episode_shown"));
  TRY_ASSIGN(const int64_t episode, shown.AsInt(0, std::numeric_limits<int>::max()));
  load.episode_shown = static_cast<int>(episode);
  TRY_ASSIGN(const std::optional<JsonReader> timelines, object.Find("timeline"));
  if (!timelines) return load;
  TRY_ASSIGN(const std::vector<JsonReader> each, timelines->Elements());
  for (const JsonReader& one : each) {
    TRY_ASSIGN(const int policy, PositionOf(one, "policy", load.policies));
    TRY_ASSIGN(load.policies[policy].timeline, TimelineOf(one, summary));
  }
  return load;
}

OrderedJson ApplicationJson(const ScalingSummary& summary) {
  OrderedJson json = {{"qos_ms", {summary.qos_low_ms, summary.qos_high_ms}},
                      {"workloads", OrderedJson::array()},
                      {"calls", OrderedJson::array()}};
  for (const ServedNode& node : summary.nodes) {
    json["workloads"].push_back({{"workload", node.name},
                                 {"client", node.client},
                                 {"depth", node.depth},
                                 {"calls_per_request", node.calls_per_request},
                                 {"slot_s_per_request", node.slot_s}});
  }
  for (const ServedEdge& edge : summary.edges) {
    json["calls"].push_back({{"from", summary.nodes[edge.from].name},
                             {"to", summary.nodes[edge.to].name},
                             {"calls_per_request", edge.calls_per_request}});
  }
  return json;
}

Result<int> NodeAt(const JsonReader& object, std::string_view key, const ScalingSummary& summary) {
  TRY_ASSIGN(const JsonReader value, object.At(key));
  TRY_ASSIGN(const std::string name, value.AsString());
  for (size_t w = 0; w < summary.nodes.size(); ++w) {
    if (summary.nodes[w].name == name) return static_cast<int>(w);
  }
  return value.Expected("one of the workloads");
}

Result<void> ReadApplication(const JsonReader& object, ScalingSummary* summary) {
  TRY_ASSIGN(const ConfidenceInterval qos, IntervalAt(object, "qos_ms"));
  summary->qos_low_ms = qos.low;
  summary->qos_high_ms = qos.high;
  TRY_ASSIGN(const JsonReader workloads, object.At("workloads"));
  TRY_ASSIGN(const std::vector<JsonReader> nodes, workloads.Elements());
  for (const JsonReader& one : nodes) {
    ServedNode node;
    TRY_ASSIGN(const JsonReader name, one.At("workload"));
    TRY_ASSIGN(node.name, name.AsString());
    TRY_ASSIGN(const JsonReader client, one.At("client"));
    TRY_ASSIGN(node.client, client.AsBool());
    TRY_ASSIGN(const JsonReader depth, one.At("depth"));
    TRY_ASSIGN(const int64_t deep, depth.AsInt(0, 1000));
    node.depth = static_cast<int>(deep);
    TRY_ASSIGN(node.calls_per_request, NumberAt(one, "calls_per_request"));
    TRY_ASSIGN(node.slot_s, NumberAt(one, "slot_s_per_request"));
    summary->nodes.push_back(std::move(node));
  }
  TRY_ASSIGN(const JsonReader calls, object.At("calls"));
  TRY_ASSIGN(const std::vector<JsonReader> edges, calls.Elements());
  for (const JsonReader& one : edges) {
    ServedEdge edge;
    TRY_ASSIGN(edge.from, NodeAt(one, "from", *summary));
    TRY_ASSIGN(edge.to, NodeAt(one, "to", *summary));
    TRY_ASSIGN(edge.calls_per_request, NumberAt(one, "calls_per_request"));
    summary->edges.push_back(edge);
  }
  return {};
}

}  // namespace

OrderedJson ScalingSummaryJson(const ScalingSummary& summary) {
  OrderedJson json = {{"schema_version", 1},
                      {"task", "scaling"},
                      {"scenario", summary.scenario},
                      {"seed", summary.seed},
                      {"episodes", summary.episodes},
                      {"late_max", summary.late_max},
                      {"application", ApplicationJson(summary)},
                      {"latency_shares", OrderedJson::array()},
                      {"loads", OrderedJson::array()}};
  for (const double share : LatencyShares())
    json["latency_shares"].push_back(std::round(share * 1e6) / 1e6);
  for (const ScalingLoadSummary& load : summary.loads)
    json["loads"].push_back(LoadJson(load, summary));
  return json;
}

std::string ScalingSummaryText(const ScalingSummary& summary) {
  // Names that are no UTF-8 are shown with replacement characters rather than refused.
  return ScalingSummaryJson(summary).dump(1, ' ', false, OrderedJson::error_handler_t::replace) +
         "\n";
}

Result<ScalingSummary> ScalingSummaryOf(const Json& json, std::string_view source_name) {
  const JsonReader root(json, source_name);
  ScalingSummary summary;
  TRY_ASSIGN(const JsonReader scenario, root.At("scenario"));
  TRY_ASSIGN(summary.scenario, scenario.AsString());
  TRY_ASSIGN(const JsonReader seed, root.At("seed"));
  TRY_ASSIGN(const int64_t seed_number, seed.AsInt(0));
  summary.seed = static_cast<uint64_t>(seed_number);
  TRY_ASSIGN(const JsonReader episodes, root.At("episodes"));
  TRY_ASSIGN(const int64_t count, episodes.AsInt(1, std::numeric_limits<int>::max()));
  summary.episodes = static_cast<int>(count);
  TRY_ASSIGN(summary.late_max, NumberOr(root, "late_max", summary.late_max));
  if (!(summary.late_max > 0)) return root.Refuse("late_max must be above 0");
  TRY_ASSIGN(const JsonReader application, root.At("application"));
  TRY(ReadApplication(application, &summary));
  TRY_ASSIGN(const JsonReader loads, root.At("loads"));
  TRY_ASSIGN(const std::vector<JsonReader> each, loads.Elements());
  if (each.empty()) return loads.Expected("at least one load");
  for (const JsonReader& one : each) {
    TRY_ASSIGN(ScalingLoadSummary load, LoadOf(one, summary));
    summary.loads.push_back(std::move(load));
  }
  return summary;
}

}  // namespace rudderfish
