// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "learn/training_world.h"
#include "nn/candidate_net.h"

// How good a network is while it learns: its most likely plan from start states drawn once, from
// streams of the seed that no training episode and no evaluation uses. The best checkpoint of a run
// is chosen by it, so its figures are slightly too good; what a policy is worth,
// evaluation/evaluation.h says. Plans end at the task's own limit of steps.
//
// Where pods are placed, the figure is PlacementCost of whole episodes, at most
// kPlacementEpisodes of each world; by a preset, under its rules, the objective is its mean reward,
// its sign turned. Where applications are scaled it is the cost of an interval as rewards count it
// (learn/scaling_env.h), over episodes of all loads and prices; by a preset, the mean reward of a
// step, its sign turned, over whole episodes of all loads. Where regions are scaled it is the
// objective of whole episodes.
//
// One question of many starts is answered in one pass of the network; the same figures for any
// number of threads.

namespace rudderfish {

struct ValidationFigures {
  double final_ms = 0;      // Mean latency after the plan; of placing, PlacementCost,
  double objective_ms = 0;  // the same with the task's step costs added: smaller is better.
  double mean_return = 0;   // In the task's reward unit.
  double moves = 0;
};

class Validation {
 public:
  // Draws `starts` states of each world. An error if a world cannot be drawn from.
  static Result<Validation> Draw(std::span<const TrainingWorld> worlds, uint64_t seed, int starts);

  std::span<const State> starts() const { return starts_; }

  ValidationFigures Run(const nn::CandidateNet& net, ThreadPool* pool);

  static constexpr int kPlacementEpisodes = 16;

 private:
  static constexpr int kLanes = 16;  // Starts answered together.

  struct Group {  // Up to kLanes starts of one world.
    int world = 0;
    int first = 0;  // Into starts_.
    int count = 0;
  };
  struct Crew {                                           // What one thread works with.
    std::vector<std::vector<std::unique_ptr<Env>>> envs;  // [world][lane]
    GraphBatch questions;
    std::vector<int> active;  // Lanes whose plan goes on.
    std::vector<float> logits, stop, value;
    std::unique_ptr<nn::Workspace> workspace;
  };

  struct PlacementEpisode {
    const PlacementWorld* world = nullptr;
    uint64_t seed = 0;
    std::unique_ptr<Lifecycle> lifecycle;
    ValidationFigures figures;
  };

  struct ScaledEpisode {  // Of one of both kinds of world.
    const ScalingWorld* world = nullptr;
    const ScalingPresetWorld* preset = nullptr;
    ScalingEpisode episode;
    ValidationFigures figures;
  };

  Validation() = default;
  void DrawScalings(const TrainingWorld& world, uint64_t seed, int starts);
  ValidationFigures RunScalings(const nn::CandidateNet& net, ThreadPool* pool);
  ValidationFigures RunRoutings(const nn::CandidateNet& net, ThreadPool* pool) const;
  ValidationFigures RunPlacements(const nn::CandidateNet& net, ThreadPool* pool);
  void RunGroup(const nn::CandidateNet& net, const Group& group, Crew* crew);

  std::vector<TrainingWorld> worlds_;
  std::vector<State> starts_;
  std::vector<PlacementEpisode> placements_;
  std::vector<ScaledEpisode> scalings_;
  std::vector<const RoutingWorld*> routings_;
  int routing_episodes_ = 0;  // Of each of them.
  uint64_t seed_ = 0;
  std::vector<Group> groups_;
  std::vector<ValidationFigures> figures_;  // [start]
  std::vector<Crew> crews_;                 // [thread]
};

}  // namespace rudderfish
