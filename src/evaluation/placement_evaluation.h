// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "evaluation/judge.h"
#include "evaluation/statistics.h"
#include "policy/placement_policy.h"
#include "scenario/scenario.h"
#include "sim/lifecycle_metrics.h"
#include "sim/placement_run.h"

// What ways to place pods are worth: each on the same held-out episodes, and the last of them (the
// candidate) against the heuristic that was best on other episodes (TrialSeed), so that the choice
// of the baseline has not seen what it is judged on. One that violates hard limits of latency is no
// baseline where there is another.
//
// An episode is a pure function of (scenario, seed, policy), whatever the number of threads; only
// times of decisions hold the clock. Smaller objectives are better.

namespace rudderfish {

// Several members are one recipe trained from several seeds.
struct PlacementGroup {
  std::string name;
  std::vector<PlacementPolicy> members;
  bool shares_network = false;  // With the last of the list.
};

struct EvaluatedPlacement {
  std::string name;
  int training_seeds = 1;
  bool shares_network = false;             // With the candidate.
  std::vector<LifecycleMetrics> episodes;  // [training seed][episode]
  double trial_cost = 0;                   // PlacementCost on the episodes for choosing.
  double decide_p50_us = 0, decide_p99_us = 0;
  double decide_s = 0;  // All of an episode's decisions, in the mean.

  // What deciding takes, of the makespan.
  double Overhead(int episodes_each) const;

  RunMatrix Objectives(int episodes_each) const;
  // Of one of LifecycleMetrics::Rows. REQUIRES: there is one called so.
  RunMatrix Runs(std::string_view row, int episodes_each) const;
};

struct PlacementEvaluation {
  std::string scenario;
  std::string objective;
  uint64_t seed = 0;
  int nodes = 0;
  int episodes = 0;
  std::vector<EvaluatedPlacement> policies;
  // If it was asked for: none is below in the mean of these episodes (placement_bound.h), and the
  // best that was found without moving pods (placement_foresight.h), if it was in all of them.
  std::optional<double> bound, best_foreseen;

  // With two policies or more.
  int baseline = -1;
  Finding finding = Finding::kUndecided;
  double difference = 0;  // Candidate less baseline, in units of the objective.
  ConfidenceInterval difference_ci;
  int better = 0, equal = 0, worse = 0;  // Episodes, means over training seeds.

  bool is_better() const { return baseline < 0 || finding == Finding::kBetter; }
};

enum class PlacementBound { kNone, kComputed };

struct PlacementEvaluationOptions {
  uint64_t seed = 1;
  int episodes = 20;
  PlacementBound bound = PlacementBound::kNone;
  std::function<void(double fraction, std::string_view text)> progress;  // On this thread.
  // Where it becomes true, no further episode begins: there are then fewer.
  const std::atomic<bool>* stop = nullptr;
};

// Whether the scenario says what those policies look at that were trained by a preset.
Result<void> CheckPresetsSuit(const Scenario& scenario,
                              const std::vector<PlacementGroup>& policies);

// REQUIRES: an objective and arrivals; at least one policy, with names that differ. Fails where a
// bound is asked for and none is known, it is stopped before one episode is complete, or a preset
// looks at what the scenario does not say.
Result<PlacementEvaluation> EvaluatePlacements(std::shared_ptr<const Scenario> scenario,
                                               const std::vector<PlacementGroup>& policies,
                                               const PlacementEvaluationOptions& options,
                                               ThreadPool* pool);

// The verdict in words, one or two sentences. REQUIRES: a baseline.
std::string PlacementVerdict(const PlacementEvaluation& evaluation);

// Aligned text, the verdict last; JSON with schema_version 1; a row an episode.
std::string PlacementTable(const PlacementEvaluation& evaluation);
std::string PlacementJson(const PlacementEvaluation& evaluation);
std::string PlacementCsv(const PlacementEvaluation& evaluation);

}  // namespace rudderfish
