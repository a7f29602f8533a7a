// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "policy/exact.h"
#include "policy/policy.h"
#include "scenario/start_states.h"
#include "task/task.h"

// Every policy runs from every start to its own end, and what happened is written down: decision by
// decision, so that another program can replay it. What follows from it is comparison.h's business.
//
// An episode is a pure function of (start states, policy, seed), whatever the number of threads;
// only `times` hold the clock. Every decision is checked against the state before it is made: an
// infeasible one is a bug of the policy and ends the process. The objective is the Model's latency
// in ms; smaller is better.

namespace rudderfish {

// A policy under evaluation: several instances are the same recipe trained from several seeds.
struct PolicyGroup {
  std::string name;
  std::vector<std::shared_ptr<const Policy>> training_seeds;  // At least one.
  bool shares_network = false;                                // With the last of the list.
};

struct MadeDecision {
  Migrate move;
  std::string pod, from, to;  // Names.
  double predicted_ms = 0;    // Fall in latency the Model predicts; positive is good.
};

struct EvaluatedEpisode {
  int start = 0;          // Position in Evaluation::starts.
  int training_seed = 0;  // Position in the group.
  Terms initial, final;
  int64_t allowed_actions = 0;  // At the start: allowed (pod, node) pairs, and stop.
  double return_ms = 0;         // Latency won less the task's step costs; discounted by nothing.
  bool stopped = false;         // By decision; otherwise the task's steps ran out.
  std::vector<MadeDecision> decisions;
};

struct EvaluatedPolicy {
  std::string name;
  int training_seeds = 1;
  bool shares_network = false;             // With the candidate.
  std::vector<EvaluatedEpisode> episodes;  // [training seed][start]

  const EvaluatedEpisode& at(int training_seed, int start, int starts) const {
    return episodes[training_seed * starts + start];
  }
};

struct EvaluatedStart {
  int line = 0;  // StartState::line: its id in files and results.
  std::string pattern;
  // Latency plus step costs of the best plan there is, where one was proven to be that.
  std::optional<double> optimum_ms;
};

// Wall time of one decision: from a State to the answer, Task::Space and the features included; and
// of all decisions of an episode, which is what a policy that plans at its first one is judged by.
struct DecisionTimes {
  double p50_us = 0;
  double p99_us = 0;
  double plan_mean_us = 0;
  double plan_p99_us = 0;
};

struct Evaluation {
  std::string scenario;
  uint64_t seed = 0;
  std::string objective = "latency";
  std::string unit = "ms";
  std::vector<EvaluatedStart> starts;
  std::vector<EvaluatedPolicy> policies;
  std::vector<DecisionTimes> times;  // [policy]

  int start_count() const { return static_cast<int>(starts.size()); }
};

using Optimum = std::function<std::optional<double>(const State& start)>;

// Asks policy/exact.h; nothing where it proves nothing within `limits`. `task` outlives it.
Optimum ExactOptimum(const LatencyLaw& law, const Task& task, const ExactLimits& limits = {});

struct EvaluationOptions {
  std::string scenario;  // Its name, for the results.
  uint64_t seed = 1;     // Keys the chance of policies that have any.

  // Called now and then on the calling thread, for Progress::Update.
  std::function<void(double fraction, std::string_view text)> progress;

  // Where it becomes true, no further starts are played: there are then fewer, maybe none.
  const std::atomic<bool>* stop = nullptr;

  // EvaluatedStart::optimum_ms, if wanted: ExactOptimum. Called by several threads at once.
  Optimum optimum;
};

// REQUIRES: at least one start and one policy, with names that differ.
Evaluation Evaluate(const LatencyLaw& law, const Task& task, std::span<const StartState> starts,
                    std::span<const PolicyGroup> policies, const EvaluationOptions& options,
                    ThreadPool* pool);

}  // namespace rudderfish
