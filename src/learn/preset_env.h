// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "learn/environment.h"
#include "learn/placement_env.h"
#include "sim/lifecycle.h"
#include "task/placement.h"
#include "task/placement_preset.h"

// Training to place pods as earlier systems did (task/placement_preset.h): their reward for each
// choice, and their episodes. An episode ends where their rule says so (terminated), or after their
// number of decisions (truncated); the cluster is not touched by that, and the next episode begins
// where this one ended. When a world has no pods left another one begins, which cuts the episode
// off (truncated), too. So a policy that plays badly sees more than empty clusters.
//
// No node is left out for its latency: where a hard limit is exceeded, theirs learn it by the
// reward. Pods that fit nowhere are not asked about, and a world that cannot be drawn, or asks
// about none, is redrawn.
//
// Episode numbers hold the world's in their upper bits; a cursor's placements are all of its world.

namespace rudderfish {

class PresetEnv final : public Environment {
 public:
  // REQUIRES: world.task has a preset.
  PresetEnv(const PlacementWorld& world, uint64_t seed, uint64_t id, int max_steps);

  using Environment::Reset;
  void Reset(uint64_t episode) override;
  StepResult Step(int choice) override;
  int candidate_count() const override { return space_.count(); }
  void Encode(GraphBatch* batch) override { task_.Encode(question(), space_, batch); }
  double Discount() const override { return 1; }
  EpisodeFigures figures() const override;
  const EnvCursor& cursor() const override { return cursor_; }
  Result<void> Restore(const EnvCursor& cursor) override;

  const PlacementSpace& space() const { return space_; }
  const Lifecycle& lifecycle() const { return lifecycle_; }

 private:
  PlacementQuestion question() const {
    return {lifecycle_.state(), lifecycle_.totals(), lifecycle_.pending_workload()};
  }
  double Cost() const;
  bool NextQuestion();
  void StartWorld(uint64_t number);

  const PlacementWorld* world_;
  PlacementTask task_;
  PresetJudge judge_;
  uint64_t seed_, id_;
  int max_steps_;
  Lifecycle lifecycle_;
  PlacementSpace space_;
  bool is_running_ = false;  // A world.
  int steps_ = 0;
  double first_cost_ = 0, last_cost_ = 0;
  EnvCursor cursor_;
};

}  // namespace rudderfish
