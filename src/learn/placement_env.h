// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "base/thread_pool.h"
#include "learn/environment.h"
#include "policy/placement_facts.h"
#include "policy/placement_policy.h"
#include "scenario/scenario.h"
#include "sim/lifecycle.h"
#include "task/placement.h"

// Training to place pods: a world in which they come and go asks where each one goes, and answers
// with the change of the objective.
//
//   cost       objective * ready nodes + pods that wait: in nodes, so that no size is special, and
//              leaving pods out is no way to save
//   reward     fall of the cost until the next question, less the same fall in a twin world, where
//              the reference (simple scores, mixed) places the same pods
//   discount   exp(-time / horizon): with it, falls of the cost add up to what the cost is over
//              time, since the integral of c e^-bt is (c0 + sum of e^-bt dc) / b
//
// The twin does not depend on what is chosen here, so it takes away variance and no gradient (Mao
// et al., "Variance reduction for reinforcement learning in input-driven environments", ICLR 2019):
// pods that come and go change both worlds alike. Questions with one candidate are not asked, and
// an episode that cannot be drawn, or in which nothing is asked, is redrawn.
//
// The first episode of an environment begins somewhere in its middle, the pods before placed by
// the reference, so that a crowd of environments sees all of an episode from the first step on. An
// episode that ends with its world is terminated: both worlds have nothing left to ask.

namespace rudderfish {

// What environments of one scenario share. Immutable.
struct PlacementWorld {
  std::shared_ptr<const Scenario> scenario;
  PlacementTask task;
  PlacementFacts facts;      // Which a live cluster does not tell.
  Familiarity seen;          // Between what the features of its questions lie.
  PlacementMix reference{};  // The best mix found on training seeds.
  std::string heuristic;     // The best of PlacementHeuristics on them.
  double horizon_s = 1;      // Of discounting.
  int64_t questions = 0;     // Of an episode, about.
  // Of the episodes of the scenario that it was tried on; in each of them some pod has a choice.
  std::vector<uint64_t> seeds;

  // How many times the mean interval between questions the horizon is.
  static constexpr double kHorizonQuestions = 150;

  // Tries heuristics and mixes on training seeds of the scenario. The same for any number of
  // threads. kFailedPrecondition if the scenario has no objective, cannot be drawn, or leaves no
  // pod a choice in any of many episodes. With a preset nothing is tried (PresetEnv has no
  // reference), and a scenario that does not say what the preset looks at is refused likewise.
  static Result<PlacementWorld> Make(std::shared_ptr<const Scenario> scenario, ThreadPool* pool,
                                     std::optional<PlacementPreset> preset = {});

  // Seeds of one episode of training, to be tried until one serves: numbers of `rng`, and after
  // many of them one of `seeds`, which does.
  uint64_t SeedOf(int attempt, Rng* rng) const;
  static constexpr int kSeedsOfAnEpisode = 64;
  // The first of them by which an episode can be drawn.
  uint64_t DrawableSeed(Rng rng, Lifecycle* lifecycle) const;
};

class PlacementEnv final : public Environment {
 public:
  PlacementEnv(const PlacementWorld& world, uint64_t seed, uint64_t id, int max_steps);

  using Environment::Reset;
  void Reset(uint64_t episode) override;
  StepResult Step(int choice) override;
  int candidate_count() const override { return space_.count(); }
  void Encode(GraphBatch* batch) override { world_->task.Encode(question(), space_, batch); }
  double Discount() const override { return 1; }
  EpisodeFigures figures() const override;
  const EnvCursor& cursor() const override { return cursor_; }
  Result<void> Restore(const EnvCursor& cursor) override;

  const PlacementSpace& space() const { return space_; }
  const Lifecycle& lifecycle() const { return own_; }

 private:
  PlacementQuestion question() const {
    return {own_.state(), own_.totals(), own_.pending_workload()};
  }
  // How many answers a world has had, and when the last.
  struct Answers {
    SimTime at{-1};
    int at_once = 0;  // At that time.

    void Add(SimTime time) {
      at_once = time == at ? at_once + 1 : 1;
      at = time;
    }
  };

  double CostOf(const Lifecycle& lifecycle) const;
  void AnswerOwn(NodeId node);
  bool NextQuestion();
  bool Begin(uint64_t seed);
  bool TwinIsBehind() const;
  void FollowWithTwin();
  void StartAt(uint64_t seed, int64_t questions);
  bool PlaceByReference(int64_t questions);

  const PlacementWorld* world_;
  uint64_t seed_, id_;
  int max_steps_;
  Lifecycle own_, twin_;
  PlacementSpace space_, twin_space_;
  bool twin_waits_ = false;  // For an answer.
  bool own_is_over_ = false;
  Answers own_answers_, twin_answers_;
  int steps_ = 0;
  EnvCursor cursor_;
};

}  // namespace rudderfish
