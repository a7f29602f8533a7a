// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "model/layer_targets.h"
#include "model/placement_cursor.h"
#include "policy/greedy.h"
#include "policy/move_order.h"
#include "policy/plan.h"
#include "policy/policy.h"
#include "task/walk.h"

// How a learned policy answers where pods are moved: it walks in the Model (task/walk.h) as it did
// when it learned, and plans the way from here to the best placement of the walk, with one move for
// each pod that is elsewhere there. It follows that plan for as long as every question comes from
// where the plan leads, and walks again from each of these places: a plan from there replaces what
// is left if it wins more by half a millisecond.
//
// A walk may begin with a coordinated step: the pods of some workloads go to one layer each, as
// model/layer_targets.h ranks such targets, one after another by their gains as far as there is
// room. Callers and callees that win only together are found there, past a hill that is many moves
// wide. Where a question does not list all moves, no walk is directed.
//
// The stepper answers one question of a walk: its likeliest alternative, and Answer::scores, which
// are log-probabilities, stop last.

namespace rudderfish {

struct WalkOptions {
  int samples = 0;   // Walks that draw their answers, beside the one that takes the likeliest.
  int directed = 0;  // Walks that begin at the best targets, and then take the likeliest answers.
  bool beside_greedy = false;  // Takes greedy's plan where it costs less than those of all walks.
};

// Walks side by side: each step asks the stepper about all of them as one batch. Allocates nothing
// once it has walked as far.
class Walks {
 public:
  Walks(const Policy& stepper, const WalkOptions& options, uint64_t seed);

  // The plans that the walks from ask.model's placement lead to, appraised; empty ones
  // where a walk finds nothing better. Valid until the next call.
  std::span<const Plan> PlanFrom(const Ask& ask);

 private:
  struct One {
    std::unique_ptr<Evaluator> model;
    std::unique_ptr<Memory> memory;
    ActionSpace space;
    Walk walk;
    bool idle = false;  // There was no target for it.
  };

  void Begin(const Ask& ask);
  int ListTargets(const Ask& ask);
  void Direct(const Ask& ask, std::span<const LayerId> layers, One* one);
  void Step(const Ask& ask);
  int Draw(const std::vector<float>& scores);

  const Policy& stepper_;
  const int directed_;
  std::vector<One> walks_;   // The likeliest, those that are directed, those that draw.
  std::vector<Plan> plans_;  // [walk]
  Rng rng_;
  std::vector<size_t> live_;
  std::vector<Ask> asks_;
  std::vector<Answer> answers_;
  MoveOrder order_;
  LayerTargets targets_;
  PlacementCursor cursor_;
  std::vector<double> step_costs_ms_;  // [moves] of so many
};

class WalkPolicy final : public Policy {
 public:
  WalkPolicy(std::string name, std::shared_ptr<const Policy> stepper, WalkOptions options = {});

  std::string_view name() const override { return name_; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override;

  // Answer::value is what the rest of the plan wins, steps paid, in ms.
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override;

 private:
  std::string name_;
  std::shared_ptr<const Policy> stepper_;
  WalkOptions options_;
};

// That of one trained network. `path`: a checkpoint or a run folder (CheckpointOf).
Result<std::unique_ptr<Policy>> LoadWalkPolicy(const std::filesystem::path& path, const Task& task);

}  // namespace rudderfish
