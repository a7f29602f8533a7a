// SPDX-License-Identifier: Apache-2.0
#include "evaluation/scaling_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "base/check.h"
#include "evaluation/scaling_difference.h"
#include "sim/scaling_evaluation.h"

namespace rudderfish {
namespace {

constexpr int kSharesPerNine = 20, kNines = 3;

ScalingPolicySummary MeansOf(const ScalingEvaluation& evaluation, int load, int policy) {
  const ScalingEvaluation::Evaluated& of = evaluation.policies[policy];
  ScalingPolicySummary means{.name = of.name,
                             .seeds = of.members,
                             .foresees = of.foresees,
                             .shares_network = of.shares_network};
  int64_t requests = 0, violations = 0, unanswered = 0;
  const double share = 1.0 / (evaluation.episodes * of.members);
  for (int i = 0; i < evaluation.episodes * of.members; ++i) {
    const ScalingFigures& one = evaluation.at(load, policy, i / of.members, i % of.members);
    means.pod_hours += share * one.pod_hours;
    means.core_hours += share * one.core_hours;
    means.node_hours += share * one.node_hours;
    means.energy_wh += share * one.energy_wh;
    means.p95_ms += share * one.p95_ms;
    means.changes += share * one.changes;
    requests += one.requests;
    violations += one.violations;
    unanswered += one.unanswered;
  }
  if (requests > 0)
    means.violation_share = static_cast<double>(violations) / static_cast<double>(requests);
  const ResponseHistogram& responses =
      evaluation.responses[load * static_cast<int>(evaluation.policies.size()) + policy];
  if (responses.count() == 0) return means;
  for (const double share : LatencyShares())
    means.latency_ms.push_back(responses.QuantileS(share, unanswered) * 1000);
  return means;
}

// The cheapest of the others whose violations are no more than the last one's; if none's are, that
// with the fewest. A policy that knows what comes is no baseline. -1 if there is no other.
int BaselineOf(const std::vector<ScalingPolicySummary>& policies) {
  const double most = policies.back().violation_share + kViolationTolerance;
  std::vector<BaselineCandidate> others;
  std::vector<int> positions;
  for (int p = 0; p + 1 < static_cast<int>(policies.size()); ++p) {
    if (policies[p].foresees) continue;
    others.push_back({.beyond = std::max(0.0, policies[p].violation_share - most),
                      .cost = policies[p].core_hours,
                      .shares_network = policies[p].shares_network});
    positions.push_back(p);
  }
  const int best = ChooseBaseline(others);
  return best < 0 ? best : positions[best];
}

// The episode whose difference in core-hours is the median, of the first seeds; without a baseline,
// whose core-hours are.
int MedianEpisode(const ScalingEvaluation& evaluation, int load, int baseline) {
  const int candidate = static_cast<int>(evaluation.policies.size()) - 1;
  std::vector<double> values;
  for (int i = 0; i < evaluation.episodes; ++i) {
    values.push_back(evaluation.at(load, candidate, i).core_hours -
                     (baseline < 0 ? 0 : evaluation.at(load, baseline, i).core_hours));
  }
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return values[a] < values[b]; });
  return order[(order.size() - 1) / 2];
}

ScalingLoadSummary LoadSummaryOf(const ScalingEvaluation& evaluation, int load, double duration_s) {
  ScalingLoadSummary summary{.load = evaluation.loads[load],
                             .episodes = evaluation.episodes,
                             .late_max = evaluation.late_max};
  const int policies = static_cast<int>(evaluation.policies.size());
  for (int p = 0; p < policies; ++p) summary.policies.push_back(MeansOf(evaluation, load, p));
  summary.baseline = BaselineOf(summary.policies);
  summary.episode_shown = MedianEpisode(evaluation, load, summary.baseline);
  for (int p = 0; p < policies && summary.baseline >= 0; ++p) {
    if (p == summary.baseline) continue;
    summary.policies[p].against_baseline = CompareScaling(evaluation, load, p, summary.baseline);
  }
  int64_t requests = 0;
  for (int i = 0; i < evaluation.episodes; ++i) requests += evaluation.at(load, 0, i).requests;
  summary.requests_per_s = static_cast<double>(requests) / (duration_s * evaluation.episodes);
  return summary;
}

void AddTracePart(const Traffic& traffic, ScalingLoadSummary* summary) {
  if (traffic.shape != Traffic::Shape::kReplay) return;
  const TracePart part = PartFor(traffic, EpisodeUse::kEvaluation);
  const auto bins = static_cast<double>(traffic.trace->counts.size());
  summary->trace_from = static_cast<double>(part.first) / bins;
  summary->trace_upto = static_cast<double>(part.last) / bins;
}

void AddGraph(const ServedApplication& application, ScalingSummary* summary) {
  const CallGraph& graph = *application.calls;
  const std::vector<double> demand = application.DemandS(), calls = application.CallsPerRequest(),
                            shares = application.EndpointShares();
  for (WorkloadId w = 0; w < application.workload_count(); ++w) {
    const ServedWorkload& workload = application.workloads[w];
    summary->nodes.push_back({.name = workload.name,
                              .client = !workload.scaled,
                              .calls_per_request = calls[w],
                              .slot_s = demand[w]});
  }
  std::map<std::pair<int, int>, double> edges;
  std::vector<int> depth(graph.calls.size(), 0);
  for (size_t e = 0; e < graph.endpoints.size(); ++e) {
    for (CallId call = graph.endpoints[e].root + 1; call < graph.endpoints[e].end; ++call) {
      const Call& one = graph.calls[call];
      depth[call] = depth[one.caller] + 1;
      int& deepest = summary->nodes[one.workload].depth;
      deepest = std::max(deepest, depth[call]);
      edges[{graph.calls[one.caller].workload, one.workload}] += shares[e];
    }
  }
  for (const auto& [ends, count] : edges)
    summary->edges.push_back({ends.first, ends.second, count});
}

}  // namespace

std::vector<double> LatencyShares() {
  std::vector<double> shares;
  for (int i = 0; i <= kNines * kSharesPerNine; ++i)
    shares.push_back(1 - std::pow(10, -static_cast<double>(i) / kSharesPerNine));
  return shares;
}

bool ScalingLoadSummary::baseline_qualifies() const {
  return policies[baseline].violation_share <=
         policies.back().violation_share + kViolationTolerance;
}

bool ScalingLoadSummary::candidate_alone_keeps_limit() const {
  return !baseline_qualifies() && policies.back().violation_share <= late_max &&
         policies[baseline].violation_share > late_max;
}

Finding ScalingLoadSummary::finding() const {
  if (baseline_qualifies()) return difference().FindingOn(episodes);
  if (!candidate_alone_keeps_limit()) return Finding::kUndecided;
  return FindingOf({}, episodes, difference().violation_share_ci95);
}

bool ScalingSummary::better_everywhere() const {
  return std::all_of(loads.begin(), loads.end(), [](const ScalingLoadSummary& load) {
    return load.baseline < 0 || load.finding() == Finding::kBetter;
  });
}

bool ScalingSummary::draws_power() const {
  const auto draws = [](const ScalingPolicySummary& policy) { return policy.energy_wh > 0; };
  return std::any_of(loads.begin(), loads.end(), [&](const ScalingLoadSummary& load) {
    return std::any_of(load.policies.begin(), load.policies.end(), draws);
  });
}

double ScalingSummary::requests_per_s() const {
  double sum = 0;
  for (const ScalingLoadSummary& load : loads) sum += load.requests_per_s;
  return sum / static_cast<double>(loads.size());
}

ScalingSummary Summarize(const ScalingEvaluation& evaluation, const Scenario& scenario) {
  CHECK(scenario.load != nullptr);
  ScalingSummary summary{
      .scenario = evaluation.scenario, .seed = evaluation.seed, .episodes = evaluation.episodes};
  summary.late_max = evaluation.late_max;
  const ServedApplication application = ApplicationOf(scenario, 0);
  AddGraph(application, &summary);
  summary.qos_low_ms = kNoTargetMs;
  for (const Endpoint& endpoint : application.calls->endpoints) {
    if (endpoint.qos_ms >= kNoTargetMs) continue;  // Its requests do not count.
    summary.qos_low_ms = std::min(summary.qos_low_ms, endpoint.qos_ms);
    summary.qos_high_ms = std::max(summary.qos_high_ms, endpoint.qos_ms);
  }
  const double duration_s = static_cast<double>(scenario.load->duration.count()) / 1e9;
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    summary.loads.push_back(LoadSummaryOf(evaluation, load, duration_s));
    const int position = scenario.load->LoadNamed(evaluation.loads[load]);
    AddTracePart(scenario.load->loads[position].traffic, &summary.loads.back());
  }
  return summary;
}

void RecordTimelines(const Scenario& scenario, const std::vector<int>& loads,
                     const std::vector<NamedScalingPolicy>& policies, ThreadPool* pool,
                     ScalingSummary* summary) {
  CHECK_EQ(loads.size(), summary->loads.size());
  struct Job {
    int load, policy;
  };
  std::vector<Job> jobs;
  for (int load = 0; load < static_cast<int>(loads.size()); ++load) {
    const ScalingLoadSummary& one = summary->loads[load];
    if (one.baseline >= 0) jobs.push_back({load, one.baseline});
    jobs.push_back({load, one.candidate()});
  }
  const auto application = std::make_shared<const ServedApplication>(ApplicationOf(scenario, 0));
  const EpisodeStart start(application);
  std::vector<std::unique_ptr<EventSimulator>> simulators(pool->size());
  pool->ParallelFor(static_cast<int>(jobs.size()), [&](int index, int worker) {
    if (simulators[worker] == nullptr)
      simulators[worker] = std::make_unique<EventSimulator>(application);
    const Job& job = jobs[index];
    ScalingLoadSummary& load = summary->loads[job.load];
    load.policies[job.policy].timeline = RecordScaling(
        *policies[job.policy].members[0], *scenario.load, EpisodeUse::kEvaluation, loads[job.load],
        summary->seed, load.episode_shown, start, simulators[worker].get());
  });
}

std::string ScalingVerdictText(const ScalingLoadSummary& load) {
  if (load.baseline < 0) return {};
  const ScalingDifference& difference = load.difference();
  const std::string &candidate = load.policies.back().name,
                    &baseline = load.policies[load.baseline].name;
  const std::string numbers = fmt::format(
      "core-hours {:+.3f} ({:+.3f} to {:+.3f}), violations {:+.2f} points ({:+.2f} to {:+.2f})",
      difference.core_hours, difference.core_hours_ci95.low, difference.core_hours_ci95.high,
      100 * difference.violation_share, 100 * difference.violation_share_ci95.low,
      100 * difference.violation_share_ci95.high);
  if (load.episodes < kEpisodesForFinding) {
    return fmt::format(
        "No difference between {} and {} can be shown on {}: at least {} are needed: {}", candidate,
        baseline, CountText(load.episodes, "episode"), kEpisodesForFinding, numbers);
  }
  if (!load.baseline_qualifies()) {
    const std::string fewest =
        fmt::format("No other policy has as few violations as {}; {} has the fewest of the others",
                    candidate, baseline);
    if (load.finding() != Finding::kBetter)
      return fmt::format("{}, so that costs are not compared: {}", fewest, numbers);
    return fmt::format("{}. {} is better: it alone keeps violations within {:.3g} %: {}", fewest,
                       candidate, 100 * load.late_max, numbers);
  }
  return fmt::format("{} is {}better than {}: {}", candidate,
                     load.finding() == Finding::kBetter ? "" : "not ", baseline, numbers);
}

std::string HeldOutText(const ScalingLoadSummary& load) {
  if (!load.is_replay()) return {};
  return fmt::format(
      "episodes are from {:.0f} to {:.0f} % of the trace, held out from learning and calibration",
      100 * load.trace_from, 100 * load.trace_upto);
}

double ViolationScale(double share) { return std::log10(1 + share / kViolationTolerance); }

double Hypervolume(const std::vector<ScalingPolicySummary>& of, std::optional<int> without) {
  double dearest = 0, latest = 0;
  std::vector<std::pair<double, double>> points;
  for (size_t p = 0; p < of.size(); ++p) {
    const std::pair<double, double> point{of[p].core_hours, ViolationScale(of[p].violation_share)};
    dearest = std::max(dearest, point.first);
    latest = std::max(latest, point.second);
    if (without != static_cast<int>(p)) points.push_back(point);
  }
  if (dearest <= 0) return 0;
  if (latest <= 0) latest = 1;  // No request is late: cost alone counts.
  dearest *= 1.1;
  latest *= 1.1;
  std::sort(points.begin(), points.end());
  double area = 0, top = latest;
  for (const auto& [cost, late] : points) {
    if (late >= top) continue;
    area += (dearest - cost) * (top - late);
    top = late;
  }
  return area / (dearest * latest);
}

}  // namespace rudderfish
