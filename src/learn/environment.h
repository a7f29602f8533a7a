// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/graph_batch.h"
#include "base/result.h"
#include "model/placement.h"

// What a learner plays in: questions one after another, each with candidates to choose from, and a
// reward for each choice. Env asks which pod to move (learn/env.h), PlacementEnv where a pending
// one goes (learn/placement_env.h), PresetEnv the same as earlier systems did (preset_env.h),
// ScalingEnv and ScalingPresetEnv how many pods there are (scaling_env.h, scaling_preset_env.h).
//
// An episode is a pure function of (seed, id, episode number) and the choices made: that is all a
// checkpoint needs to keep of an environment (EnvCursor). Nothing allocates in Step once the
// largest episode has been seen.

namespace rudderfish {

struct StepResult {
  double reward = 0;
  bool terminated = false;  // By decision: nothing more can be won.
  bool truncated = false;   // Out of steps: value beyond the end is lost, not absent.
  double discount = 1;      // For the time that passed until the next question; besides Discount().
};

// Where an environment stands.
struct EnvCursor {
  uint64_t episode = 0;
  // Made in the episode so far (of PresetEnv: in its world; of ScalingPresetEnv: under its load); a
  // pod that was placed came from kNone.
  std::vector<Move> moves;
};

// What an episode has come to, in the unit of its objective (ms, or a fraction).
struct EpisodeFigures {
  double initial = 0;
  double final = 0;
  double moves = 0;
};

class Environment {
 public:
  virtual ~Environment() = default;

  // Draws episode `episode`, or the next one. An episode that the world cannot draw is passed over.
  virtual void Reset(uint64_t episode) = 0;
  void Reset() { Reset(cursor().episode + 1); }

  // Takes candidate `choice` of the question, or kStop. REQUIRES: the episode has not ended.
  virtual StepResult Step(int choice) = 0;

  // Of the current question.
  virtual int candidate_count() const = 0;

  // Appends the current question to `batch`.
  virtual void Encode(GraphBatch* batch) = 0;

  // Of every step; Task::Discount.
  virtual double Discount() const = 0;

  virtual EpisodeFigures figures() const = 0;
  virtual const EnvCursor& cursor() const = 0;

  // Draws the cursor's episode and repeats its moves. kCorruption if they cannot be made.
  virtual Result<void> Restore(const EnvCursor& cursor) = 0;
};

}  // namespace rudderfish
