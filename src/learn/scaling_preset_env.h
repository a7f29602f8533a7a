// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "learn/environment.h"
#include "model/load_laws.h"
#include "model/load_model.h"
#include "model/scaling_limits.h"
#include "scenario/scenario.h"
#include "sim/scaling_run.h"
#include "task/scaling_preset.h"

// Training to scale as an earlier system did (task/scaling_preset.h): the LoadModel under the loads
// of a scenario, a move of one workload an interval, their reward.
//
// What is observed at the end of an interval is what a policy is shown in an evaluation: replicas
// of now, CPU and traffic of the interval before, with the noise of counting. The reward judges
// that, as theirs, with the latency of the interval itself.
//
// An episode is as long as theirs; the application is not touched by its end, and the next one
// begins where it ended (truncated), until the load's own episode is over and another begins.
//
// Episode numbers hold the load's in their upper bits; a cursor's moves are all of its load: of
// `to`, the action.

namespace rudderfish {

// What environments of one scenario share. Immutable.
struct ScalingPresetWorld {
  std::shared_ptr<const Scenario> scenario;
  std::vector<int> loads;  // Positions in Load::loads.
  std::shared_ptr<const ServedApplication> application;
  std::shared_ptr<const LoadLaws> laws;
  std::shared_ptr<const ScalingPresetTask> task;
  std::shared_ptr<const EpisodeStart> start;
  int decisions = 0;  // Of a load's episode.

  // kFailedPrecondition if the scenario has no load, or an episode of it no decision.
  static Result<ScalingPresetWorld> Make(std::shared_ptr<const Scenario> scenario,
                                         std::vector<int> loads, ScalingPreset preset);
};

class ScalingPresetEnv final : public Environment {
 public:
  ScalingPresetEnv(const ScalingPresetWorld& world, uint64_t seed, uint64_t id, int max_steps);

  using Environment::Reset;
  void Reset(uint64_t episode) override;
  // One load, a position in Load::loads, drawn by a seed.
  void ResetTo(int load, uint64_t seed);
  StepResult Step(int choice) override;
  int candidate_count() const override { return world_->task->actions(); }
  void Encode(GraphBatch* batch) override { world_->task->Encode(sight_, batch); }
  double Discount() const override { return 1; }
  // `final`: less the mean of rewards, so that smaller is better.
  EpisodeFigures figures() const override;
  const EnvCursor& cursor() const override { return cursor_; }
  Result<void> Restore(const EnvCursor& cursor) override;

  const ScalingPresetSight& sight() const { return sight_; }
  // Of responses, at the end of the last interval; only where the goal is the distance to the SLO.
  double p95_ms() const { return p95_ms_; }
  const LoadModel& model() const { return model_; }

 private:
  // [workload] On average over an interval.
  struct Sample {
    std::vector<double> calls_per_s, busy_slots;
  };

  void StartLoad(uint64_t number);
  void BeginEpisode();
  bool is_over() const;  // The load's episode.
  void NextInterval();
  void Look();
  double ResponseP95Ms() const;

  const ScalingPresetWorld* world_;
  uint64_t seed_, id_;
  int max_steps_;
  LoadModel model_;
  LimitKeeper limits_;
  GymHpaReward reward_;
  std::vector<double> shares_;                 // [endpoint] Of requests.
  std::vector<int> replicas_, ready_, asked_;  // [workload]
  Sample last_, shown_;                        // Of the last interval, and of the one before.
  RateCurve curve_;
  Rng noise_{0};
  LoadOutcome before_;  // What was counted up to the last interval.
  ScalingPresetSight sight_;
  double latency_ms_ = 0, p95_ms_ = 0;
  bool is_running_ = false;
  int intervals_ = 0;  // Of the load, that have passed.
  int steps_ = 0;      // Of the episode.
  double rewards_ = 0;
  EnvCursor cursor_;
};

}  // namespace rudderfish
