// SPDX-License-Identifier: Apache-2.0
#include "learn/preset_env.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"

namespace rudderfish {
namespace {

constexpr int kEpisodeBits = 32;  // Of an episode's number; above them, its world's.

}  // namespace

PresetEnv::PresetEnv(const PlacementWorld& world, uint64_t seed, uint64_t id, int max_steps)
    : world_(&world),
      task_(world.task.objective(), world.task.preset(), LatencyFilter::kLearned),
      judge_(*world.task.preset()),
      seed_(seed),
      id_(id),
      max_steps_(max_steps),
      lifecycle_(world.scenario) {}

double PresetEnv::Cost() const { return task_.objective().Cost(lifecycle_.totals().Now()); }

// To the next pod that fits somewhere; false where the world has none left.
bool PresetEnv::NextQuestion() {
  while (lifecycle_.NextPending()) {
    task_.Space(question(), {}, &space_);
    if (space_.count() > 0) return true;
    lifecycle_.Bind(kNone);
  }
  return false;
}

void PresetEnv::StartWorld(uint64_t number) {
  Rng rng(seed_, id_, number);
  for (int attempt = 0;; ++attempt) {
    if (lifecycle_.Start(world_->SeedOf(attempt, &rng)) && NextQuestion()) break;
  }
  cursor_.episode = number << kEpisodeBits;
  cursor_.moves.clear();
  is_running_ = true;
}

void PresetEnv::Reset(uint64_t episode) {
  if (!is_running_ || episode != cursor_.episode + 1) StartWorld(episode >> kEpisodeBits);
  cursor_.episode = episode;
  steps_ = 0;
  first_cost_ = last_cost_ = Cost();
}

StepResult PresetEnv::Step(int choice) {
  CHECK(choice >= 0 && choice < space_.count());
  const NodeId node = space_.candidates[static_cast<size_t>(choice)].node;
  const presets::Reward judged = judge_.Judge(question(), space_, node);
  cursor_.moves.push_back({lifecycle_.pending_workload(), kNone, node});
  lifecycle_.Bind(node);
  ++steps_;
  last_cost_ = Cost();
  const bool goes_on = NextQuestion();
  if (!goes_on) StartWorld((cursor_.episode >> kEpisodeBits) + 1);
  return {.reward = judged.reward,
          .terminated = judged.terminated,
          .truncated = !judged.terminated && (!goes_on || steps_ >= max_steps_)};
}

EpisodeFigures PresetEnv::figures() const {
  return {.initial = first_cost_, .final = last_cost_, .moves = static_cast<double>(steps_)};
}

Result<void> PresetEnv::Restore(const EnvCursor& cursor) {
  is_running_ = false;
  const uint64_t number = cursor.episode >> kEpisodeBits;
  Reset(number << kEpisodeBits);
  const std::vector<Move> moves = cursor.moves;
  for (const Move& move : moves) {
    const auto& list = space_.candidates;
    const auto found = std::find_if(list.begin(), list.end(), [&](const PlacementCandidate& one) {
      return one.node == move.to;
    });
    const bool is_there = found != list.end() && lifecycle_.pending_workload() == move.workload;
    StepResult result;
    if (is_there) result = Step(static_cast<int>(found - list.begin()));
    if (!is_there || cursor_.episode >> kEpisodeBits != number) {
      return Fail(ErrorCode::kCorruption,
                  "environment {}, world {}: a placing (workload {}, node {}) cannot be repeated",
                  id_, number, move.workload, move.to);
    }
    if (result.terminated || result.truncated) Reset();
  }
  cursor_.episode = cursor.episode;
  return {};
}

}  // namespace rudderfish
