// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "learn/environment.h"
#include "model/evaluator.h"
#include "sim/world.h"
#include "task/task.h"
#include "task/walk.h"

// One training environment: walks in the Model (task/walk.h) from simulated States. The policy that
// is learned walks the same way when it is asked for a plan (policy/walks.h).

namespace rudderfish {

class Env final : public Environment {
 public:
  // Episodes are cut after `max_steps` steps. `world` and `task` outlive the environment.
  Env(const World& world, const Task& task, const LatencyLaw& law, uint64_t seed, uint64_t id,
      int max_steps);
  Env(const Env&) = delete;
  Env(Env&&) = default;

  using Environment::Reset;
  void Reset(uint64_t episode) override;

  // Starts from a given state (evaluation, tests).
  void ResetTo(const State& state);

  StepResult Step(int choice) override;
  int candidate_count() const override { return space_.count(); }

  // The current question. Valid until the next Step or Reset.
  ActionSpace& space() { return space_; }
  const ActionSpace& space() const { return space_; }
  Question question() const { return walk_.question(); }
  const Walk& walk() const { return walk_; }
  const State& state() const { return state_; }
  Evaluator& model() { return model_; }
  const Task& task() const { return *task_; }

  void Encode(GraphBatch* batch) override { task_->Encode(&model_, question(), &space_, batch); }
  double Discount() const override { return 1; }
  // Of the plan that the walk has found.
  EpisodeFigures figures() const override {
    return {.initial = walk_.start_ms(),
            .final = walk_.best_latency_ms(),
            .moves = static_cast<double>(walk_.best_displaced())};
  }
  const EnvCursor& cursor() const override { return cursor_; }
  Result<void> Restore(const EnvCursor& cursor) override;

 private:
  void Begin();

  const World* world_;
  const Task* task_;
  uint64_t seed_;
  uint64_t id_;
  int max_steps_;
  State state_;
  Evaluator model_;
  ActionSpace space_;
  Decision decision_;
  EnvCursor cursor_;
  Walk walk_;
};

}  // namespace rudderfish
