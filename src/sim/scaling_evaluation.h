// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "policy/scaling_policy.h"
#include "scenario/scenario.h"
#include "sim/response_histogram.h"
#include "sim/scaling_run.h"

// Many episodes of policies that scale: every policy on the same episodes of the loads of a
// scenario, the same requests for each. What follows from it is evaluation's business.

namespace rudderfish {

// Several members are one recipe trained from several seeds. What is one object, also of several
// names, runs but once.
struct NamedScalingPolicy {
  std::string name;
  std::vector<std::shared_ptr<const ScalingPolicy>> members;  // At least one.
  bool shares_network = false;                                // With the last of the list.
};

enum class ScalingGround { kRequests, kModel };  // On which episodes run.

struct ScalingEvaluation {
  struct Evaluated {
    std::string name;
    int members = 1;
    bool foresees = false;        // Knows what comes: no baseline.
    int first = 0;                // Of its members, among those of all policies.
    bool shares_network = false;  // With the candidate.
  };

  std::string scenario;
  uint64_t seed = 1;
  int episodes = 0;
  double late_max = 0.01;  // Share of requests: the limit that error budgets are of.
  std::vector<std::string> loads;
  std::vector<Evaluated> policies;
  std::vector<ScalingFigures> figures;       // [load][member of all policies][episode]
  std::vector<ResponseHistogram> responses;  // [load][policy] Of all episodes; empty on the Model.

  const ScalingFigures& at(int load, int policy, int episode, int member = 0) const {
    const int all = policies.back().first + policies.back().members;
    return figures[(load * all + policies[policy].first + member) * episodes + episode];
  }
};

// Every policy on `episodes` episodes of each of the loads, which are positions in Load::loads.
// Episode i of a load has the seed (seed, i): results depend neither on the number of threads nor
// on the other policies. `progress` may be empty; it hears of the fraction done. They begin with
// episode `first_episode`. Where `stop` becomes true, no further episode begins: there are then
// fewer, maybe none.
ScalingEvaluation EvaluateScaling(const Scenario& scenario, EpisodeUse use,
                                  const std::vector<int>& loads,
                                  const std::vector<NamedScalingPolicy>& policies, int episodes,
                                  uint64_t seed, ThreadPool* pool,
                                  const std::function<void(double)>& progress,
                                  ScalingGround ground = ScalingGround::kRequests,
                                  int first_episode = 0, const std::atomic<bool>* stop = nullptr);

// Of one policy, over the episodes of all loads and its members.
struct ScalingSums {
  double core_hours = 0;  // Mean of an episode, summed over loads.
  double violation_share = 0;
  double violation_error = 0;  // Standard error of that, over episodes.
};
ScalingSums SumsOf(const ScalingEvaluation& evaluation, int policy);

// EvaluateScaling's seed for the episodes of a calibration, which no evaluation draws.
uint64_t CalibrationSeed(uint64_t seed);

// What minimum and constant replicas are for: 99 of 100 intervals of a calibration's episodes bring
// no more requests per second.
double PeakPerS(const Scenario& scenario, const std::vector<int>& loads, int episodes,
                uint64_t seed);

}  // namespace rudderfish
