// SPDX-License-Identifier: Apache-2.0
#include "learn/placement_env.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "sim/placement_run.h"

namespace rudderfish {
namespace {

constexpr double kLatestStart = 0.8;  // Of an episode.

}  // namespace

PlacementEnv::PlacementEnv(const PlacementWorld& world, uint64_t seed, uint64_t id, int max_steps)
    : world_(&world),
      seed_(seed),
      id_(id),
      max_steps_(max_steps),
      own_(world.scenario),
      twin_(world.scenario) {}

double PlacementEnv::CostOf(const Lifecycle& lifecycle) const {
  const ClusterTerms terms = lifecycle.totals().Now();
  return world_->task.objective().Cost(terms) * terms.ready_nodes +
         static_cast<double>(lifecycle.waiting_pods());
}

void PlacementEnv::AnswerOwn(NodeId node) {
  own_answers_.Add(own_.state().at);
  own_.Bind(node);
}

// To the next pod that has a choice; false at the end. Others go where they can.
bool PlacementEnv::NextQuestion() {
  while (own_.NextPending()) {
    world_->task.Space(question(), {}, &space_);
    if (space_.count() > 1) return true;
    AnswerOwn(space_.count() == 0 ? kNone : space_.candidates[0].node);
  }
  return false;
}

// Whether the twin waits for an answer to what has been answered here. Of pods that come at once,
// as many are.
bool PlacementEnv::TwinIsBehind() const {
  if (!twin_waits_) return false;
  const SimTime twin_at = twin_.state().at;
  if (own_is_over_ || twin_at < own_.state().at) return true;
  const int own_at_once = own_answers_.at == twin_at ? own_answers_.at_once : 0;
  const int twin_at_once = twin_answers_.at == twin_at ? twin_answers_.at_once : 0;
  return twin_at == own_.state().at && twin_at_once < own_at_once;
}

void PlacementEnv::FollowWithTwin() {
  while (TwinIsBehind()) {
    world_->task.Space({twin_.state(), twin_.totals(), twin_.pending_workload()}, {}, &twin_space_);
    const int best = BestCandidate(twin_space_.candidates, world_->reference);
    twin_answers_.Add(twin_.state().at);
    twin_.Bind(best < 0 ? kNone : twin_space_.candidates[best].node);
    twin_waits_ = twin_.NextPending();
  }
}

// False if the episode is over before.
bool PlacementEnv::PlaceByReference(int64_t questions) {
  for (int64_t i = 0; i < questions; ++i) {
    AnswerOwn(space_.candidates[BestCandidate(space_.candidates, world_->reference)].node);
    if (!NextQuestion()) return false;
  }
  return true;
}

// To the first question of an episode; false if it cannot be drawn or asks nothing.
bool PlacementEnv::Begin(uint64_t seed) {
  if (!own_.Start(seed)) return false;
  own_answers_ = {};
  return NextQuestion();
}

// After so many questions, or fewer where the episode has no more. REQUIRES: it has begun.
void PlacementEnv::StartAt(uint64_t seed, int64_t questions) {
  while (!PlaceByReference(questions)) {
    questions /= 2;
    CHECK(Begin(seed));
  }
}

void PlacementEnv::Reset(uint64_t episode) {
  cursor_.episode = episode;
  cursor_.moves.clear();
  steps_ = 0;
  // A stream of the seed for each environment; those of evaluation are kHeldOutStream's.
  Rng rng(seed_, id_, episode);
  uint64_t seed = 0;
  int attempt = 0;
  do {
    seed = world_->SeedOf(attempt++, &rng);
  } while (!Begin(seed));
  CHECK(twin_.Start(seed).has_value());  // Its own world has.
  twin_answers_ = {};
  own_is_over_ = false;
  const double share = episode == 0 ? kLatestStart * Rng(seed_, id_, ~uint64_t{0}).Uniform() : 0.0;
  StartAt(seed, static_cast<int64_t>(share * static_cast<double>(world_->questions)));
  twin_waits_ = twin_.NextPending();
  FollowWithTwin();
}

StepResult PlacementEnv::Step(int choice) {
  CHECK(choice >= 0 && choice < space_.count());
  const SimTime asked_at = own_.state().at;
  const double own_before = CostOf(own_), twin_before = CostOf(twin_);
  const NodeId node = space_.candidates[choice].node;
  cursor_.moves.push_back({own_.pending_workload(), kNone, node});
  AnswerOwn(node);
  ++steps_;
  const bool goes_on = NextQuestion();
  own_is_over_ = !goes_on;
  FollowWithTwin();
  const double passed_s = std::chrono::duration<double>(own_.state().at - asked_at).count();
  StepResult result{.reward = (own_before - CostOf(own_)) - (twin_before - CostOf(twin_))};
  result.terminated = !goes_on;
  result.truncated = goes_on && steps_ >= max_steps_;
  result.discount = std::exp(-passed_s / world_->horizon_s);
  return result;
}

EpisodeFigures PlacementEnv::figures() const {
  return {.initial = PlacementCost(twin_.metrics(), twin_.state().nodes.size()),
          .final = PlacementCost(own_.metrics(), own_.state().nodes.size()),
          .moves = static_cast<double>(steps_)};
}

Result<void> PlacementEnv::Restore(const EnvCursor& cursor) {
  Reset(cursor.episode);
  const std::vector<Move> moves = cursor.moves;
  for (const Move& move : moves) {
    const auto& list = space_.candidates;
    const auto found = std::find_if(list.begin(), list.end(), [&](const PlacementCandidate& one) {
      return one.node == move.to;
    });
    if (found == list.end() || steps_ + 1 >= max_steps_ ||
        own_.pending_workload() != move.workload ||
        Step(static_cast<int>(found - list.begin())).terminated) {
      return Fail(
          ErrorCode::kCorruption,
          "environment {}, episode {}: placing {} (workload {}, node {}) cannot be repeated", id_,
          cursor.episode, steps_, move.workload, move.to);
    }
  }
  return {};
}

}  // namespace rudderfish
