// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/evaluator.h"
#include "sim/world.h"
#include "task/task.h"

// One training environment: a simulated State that answers move and the Model judges. The other
// driver of the same Task and Evaluator is control/controller.h; tests/contract holds that both
// decide alike.
//
// An episode is a pure function of (seed, id, episode number) and the choices made: that is all a
// checkpoint needs to keep of an environment (EnvCursor). Nothing allocates in Step once the
// largest episode has been seen.

namespace rudderfish {

struct StepResult {
  double reward = 0;
  bool terminated = false;  // By decision: nothing more can be won.
  bool truncated = false;   // Out of steps: value beyond the end is lost, not absent.
};

// A world and the task to do in it: what an environment is made of. The parts outlive it.
struct TrainingWorld {
  const World* world = nullptr;
  const Task* task = nullptr;
  LatencyLaw law;
};

// Where an environment stands.
struct EnvCursor {
  uint64_t episode = 0;
  std::vector<Move> moves;  // Made in the episode so far.
};

class Env {
 public:
  // Episodes are cut after `max_steps` decisions. `world` and `task` outlive the environment.
  Env(const World& world, const Task& task, const LatencyLaw& law, uint64_t seed, uint64_t id,
      int max_steps);
  Env(const Env&) = delete;
  Env(Env&&) = default;

  // Draws episode `episode`, or the next one. An episode that the world cannot draw is passed over.
  void Reset(uint64_t episode);
  void Reset() { Reset(cursor_.episode + 1); }

  // Starts from a given state (evaluation, tests).
  void ResetTo(const State& state);

  // Takes candidate `choice` of space(), or kStop. REQUIRES: the episode has not ended.
  StepResult Step(int choice);

  // The current question. Valid until the next Step or Reset.
  ActionSpace& space() { return space_; }
  const ActionSpace& space() const { return space_; }
  Question question() const { return {static_cast<int>(cursor_.moves.size())}; }
  const State& state() const { return state_; }
  Evaluator& model() { return model_; }
  const Task& task() const { return *task_; }

  // Appends the current question to `batch`.
  void Encode(GraphBatch* batch) { task_->Encode(&model_, question(), &space_, batch); }

  const EnvCursor& cursor() const { return cursor_; }

  // Draws the cursor's episode and repeats its moves. kCorruption if they cannot be made.
  Result<void> Restore(const EnvCursor& cursor);

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
