// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "evaluation/statistics.h"
#include "policy/scaling_policy.h"
#include "scenario/scenario.h"
#include "sim/event_simulator.h"
#include "sim/response_histogram.h"

// What policies of scaling are worth, judged by the event simulator: episodes of the loads of a
// scenario, the same requests for every policy, samples one interval old as those of metrics-server
// are.

namespace rudderfish {

// One episode. Sums over workloads and time.
struct ScalingFigures {
  int64_t requests = 0;
  int64_t violations = 0;  // Later than the endpoint's qos, failed, or late and still open.
  int64_t failures = 0;    // Of those: timed out or refused for good.
  double pod_hours = 0;    // Pods that exist, starting and draining ones too.
  double core_hours = 0;   // What they request.
  int changes = 0;         // Decisions that changed the replicas of a workload.
  double mean_ms = 0, p95_ms = 0, p99_ms = 0;  // Of the requests answered.

  double violation_share() const {
    return requests > 0 ? static_cast<double>(violations) / static_cast<double>(requests) : 0;
  }
};

// Who watches an episode.
class ScalingWatcher {
 public:
  virtual ~ScalingWatcher() = default;

  // At the end of every interval, before it is decided what the next one is to have; the last one
  // may be shorter.
  virtual void SeeInterval(const EventSimulator& simulator) = 0;
};

// One episode. The same seed brings the same requests to every policy. `watcher` may be null.
ScalingFigures RunScaling(const ScalingPolicy& policy, const Load& load,
                          std::shared_ptr<const RateCurve> curve, uint64_t seed,
                          EventSimulator* simulator, ScalingWatcher* watcher = nullptr);

// What comes in episode `episode` of a load, a position in Load::loads.
struct ScalingEpisodeDraw {
  uint64_t seed = 0;  // Of RunScaling.
  std::shared_ptr<const RateCurve> curve;
};
ScalingEpisodeDraw DrawScalingEpisode(const Load& load, int position, uint64_t seed, int episode);

struct NamedScalingPolicy {
  std::string name;
  std::shared_ptr<const ScalingPolicy> policy;
};

struct ScalingEvaluation {
  std::string scenario;
  uint64_t seed = 1;
  int episodes = 0;
  std::vector<std::string> loads, policies;
  std::vector<ScalingFigures> figures;       // [load][policy][episode]
  std::vector<ResponseHistogram> responses;  // [load][policy] Of all episodes.

  const ScalingFigures& at(int load, int policy, int episode) const {
    return figures[(load * static_cast<int>(policies.size()) + policy) * episodes + episode];
  }
};

// Every policy on `episodes` episodes of each of the loads, which are positions in Load::loads.
// Episode i of a load has the seed (seed, i): results depend neither on the number of threads nor
// on the other policies. `progress` may be empty; it hears of the fraction done.
ScalingEvaluation EvaluateScaling(const Scenario& scenario, const std::vector<int>& loads,
                                  const std::vector<NamedScalingPolicy>& policies, int episodes,
                                  uint64_t seed, ThreadPool* pool,
                                  const std::function<void(double)>& progress);

// A policy against a baseline on one load: paired, since both met the same requests.
struct ScalingDifference {
  double core_hours = 0, violation_share = 0;  // Means of policy - baseline.
  ConfidenceInterval core_hours_ci95, violation_share_ci95;

  // Cheaper, and violations at most 0.1 points above; or dearer, or more violations. Neither: it
  // cannot be told.
  bool better() const { return core_hours_ci95.high < 0 && violation_share_ci95.high <= 0.001; }
};

ScalingDifference CompareScaling(const ScalingEvaluation& evaluation, int load, int policy,
                                 int baseline);

}  // namespace rudderfish
