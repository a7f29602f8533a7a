// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/evaluation.h"
#include "tests/support/small_world.h"

// Evaluations for tests: start states drawn from the continuum of small_world.h, and results made
// up by hand where only what is said of them matters.

namespace rudderfish::testing {

// The three call patterns in turn.
inline std::vector<StartState> ContinuumStarts(int count) {
  const std::pair<Pattern, const char*> patterns[] = {{Pattern::kChain, "chain"},
                                                      {Pattern::kSequential, "sequential"},
                                                      {Pattern::kParallel, "parallel"}};
  std::vector<StartState> starts;
  for (int i = 0; i < count; ++i) {
    Rng rng(7, 0, i);
    State state = ContinuumWorld({.pattern = patterns[i % 3].first}, &rng);
    CallGraph named = *state.calls;
    named.name = patterns[i % 3].second;
    state.calls = std::make_shared<const CallGraph>(std::move(named));
    starts.push_back({i, std::move(state)});
  }
  return starts;
}

struct MadeUpPolicy {
  std::string name;
  std::vector<std::vector<double>> final_ms;  // [training seed][start]
};

// All starts begin at 100 ms; start i is on line 10 + i and of pattern "even" or "odd".
inline Evaluation MadeUpEvaluation(const std::vector<MadeUpPolicy>& policies) {
  Evaluation evaluation{.scenario = "made-up", .seed = 1};
  for (size_t i = 0; i < policies[0].final_ms[0].size(); ++i) {
    evaluation.starts.push_back(
        {.line = 10 + static_cast<int>(i), .pattern = i % 2 == 0 ? "even" : "odd"});
  }
  for (const MadeUpPolicy& policy : policies) {
    EvaluatedPolicy run{.name = policy.name,
                        .training_seeds = static_cast<int>(policy.final_ms.size())};
    for (size_t seed = 0; seed < policy.final_ms.size(); ++seed) {
      for (size_t start = 0; start < policy.final_ms[seed].size(); ++start) {
        const double final_ms = policy.final_ms[seed][start];
        EvaluatedEpisode episode{.start = static_cast<int>(start),
                                 .training_seed = static_cast<int>(seed),
                                 .allowed_actions = 5,
                                 .return_ms = 100 - final_ms,
                                 .stopped = true};
        episode.initial.latency_ms = 100;
        episode.final.latency_ms = final_ms;
        if (final_ms != 100) {
          episode.decisions.push_back({.move = {0, 0, 1},
                                       .pod = "db-1",
                                       .from = "cloud-1",
                                       .to = "edge-1",
                                       .predicted_ms = 100 - final_ms});
        }
        run.episodes.push_back(std::move(episode));
      }
    }
    evaluation.policies.push_back(std::move(run));
    evaluation.times.push_back({.p50_us = 1.5, .p99_us = 20});
  }
  return evaluation;
}

}  // namespace rudderfish::testing
