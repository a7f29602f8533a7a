// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/gain_bounds.h"
#include "policy/plan.h"
#include "policy/policy.h"

// One step of look-ahead on the Model: takes the move after which latency is lowest, and stops when
// no move gains more than a step costs. Of moves that are equal but for rounding it takes the first
// in REACH's order of actions: the lowest node to move to, then the lowest pod.
//
// Gains are exact. The gains by kind that every candidate carries say which of them can be the
// best: those within twice the bound of their error of the largest. Where these are many
// (`physical`), each is bounded by itself (model/gain_bounds.h), and they are tried on the
// Evaluator from the most promising on, until none that is left can be as good. Where nothing
// bounds them (Evaluator::NeedsDistributions) all are tried, or of more than 512 the 32 that
// promise most in the mean.

namespace rudderfish {

// The pod that a move takes: the lowest of its workload on its node that is not held, by where
// `pod_nodes` says each pod is; the number of pods if there is none, because the model has gone
// ahead of them.
PodId LowestPod(const State& state, std::span<const NodeId> pod_nodes, const Move& move);

// REACH's order of actions: by node to move to, then by pod.
bool ComesFirst(const State& state, std::span<const NodeId> pod_nodes, const Move& a,
                const Move& b);

inline constexpr double kTieMs = 1e-12;  // Rounding of sums of a few hundred milliseconds.

struct GreedyStep {
  int choice = kStop;
  double gain_ms = 0;  // Of the best move; if none is worth its cost, of the best that was tried.
};

// Memory that choosing needs; keep it to allocate nothing.
struct GreedyScratch {
  // A candidate that may be the best.
  struct Hope {
    int32_t candidate = 0;
    GainRange gain;  // Of one that was tried both ends are the exact gain.
  };
  std::vector<Hope> hopes;
  size_t tried = 0;  // The first of them.
  GainBounds bounds;
};

// `pod_nodes` says where each pod of the model's State is at the model's placement. If `scores` is
// given, it receives the gain of every candidate (exact where tried) and the step cost for stop.
GreedyStep ChooseGreedily(Evaluator* model, const Task& task, const Question& question,
                          const ActionSpace& space, std::span<const NodeId> pod_nodes,
                          GreedyScratch* scratch, std::vector<float>* scores = nullptr);

// Memory that rolling out greedily needs; keep it to allocate nothing.
struct GreedyRollout {
  GreedyScratch choosing;
  ActionSpace space;
  std::vector<NodeId> pod_nodes;
};

// The plan that the greedy policy follows from here, appraised. The model is left as found.
void RollOutGreedily(Evaluator* model, const Task& task, const Question& question,
                     GreedyRollout* scratch, Plan* plan);

class GreedyPolicy final : public Policy {
 public:
  std::string_view name() const override { return "greedy"; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override;
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override;
};

}  // namespace rudderfish
