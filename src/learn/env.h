// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "learn/environment.h"
#include "model/evaluator.h"
#include "sim/world.h"
#include "task/task.h"

// One training environment: a simulated State that answers move and the Model judges. The other
// driver of the same Task and Evaluator is control/controller.h; tests/contract holds that both
// decide alike.

namespace rudderfish {

class Env final : public Environment {
 public:
  // Episodes are cut after `max_steps` decisions. `world` and `task` outlive the environment.
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
  Question question() const { return {static_cast<int>(cursor_.moves.size())}; }
  const State& state() const { return state_; }
  Evaluator& model() { return model_; }
  const Task& task() const { return *task_; }

  void Encode(GraphBatch* batch) override { task_->Encode(&model_, question(), &space_, batch); }
  double Discount() const override { return task_->Discount(); }
  EpisodeFigures figures() const override {
    return {.initial = initial_latency_ms_,
            .final = model_.Now().latency_ms,
            .moves = static_cast<double>(cursor_.moves.size())};
  }
  const EnvCursor& cursor() const override { return cursor_; }
  Result<void> Restore(const EnvCursor& cursor) override;

  double initial_latency_ms() const { return initial_latency_ms_; }

 private:
  void Begin();
  void Apply(const Move& move);

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
  double initial_latency_ms_ = 0;
};

}  // namespace rudderfish
