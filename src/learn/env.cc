// SPDX-License-Identifier: Apache-2.0
#include "learn/env.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"
#include "task/migration.h"

namespace rudderfish {
namespace {

constexpr uint64_t kDrawsMax = 1000;  // The caller has already seen the world draw.

}  // namespace

Env::Env(const World& world, const Task& task, const LatencyLaw& law, uint64_t seed, uint64_t id,
         int max_steps)
    : world_(&world), task_(&task), seed_(seed), id_(id), max_steps_(max_steps), model_(law) {
  cursor_.moves.reserve(max_steps);
}

void Env::Reset(uint64_t episode) {
  for (const uint64_t last = episode + kDrawsMax;; ++episode) {
    CHECK_LT(episode, last);
    Rng rng(seed_, id_, episode);
    if (world_->Draw(&rng, &state_)) break;
  }
  cursor_.episode = episode;
  Begin();
}

void Env::ResetTo(const State& state) {
  state_ = state;
  Begin();
}

void Env::Begin() {
  cursor_.moves.clear();
  model_.Reset(state_);
  model_.ImagineMoves();
  walk_.Begin(model_, *task_, {});
  task_->Space(&model_, question(), &space_);
}

StepResult Env::Step(int choice) {
  CHECK_LT(walk_.steps(), max_steps_);
  if (choice == kStop) return {.terminated = true};
  task_->Decode(state_, space_, choice, &decision_);
  double reward_ms = 0;
  for (const Action& action : decision_) {
    const Migrate& migrate = std::get<Migrate>(action);
    const Move move = model_.ToMove(action);
    model_.CommitForGood(move);
    MovePod(migrate.pod, migrate.to, &state_);
    cursor_.moves.push_back(move);
    reward_ms += walk_.Note(model_, move);
  }
  StepResult result{.reward = reward_ms / MigrationOptions::kRewardUnitMs};
  result.terminated = walk_.steps() >= walk_.steps_max();
  result.truncated = !result.terminated && walk_.steps() >= max_steps_;
  // The question after the last step is asked too: its value is what truncation loses.
  if (!result.terminated) task_->Space(&model_, question(), &space_);
  return result;
}

Result<void> Env::Restore(const EnvCursor& cursor) {
  Reset(cursor.episode);
  for (const Move& move : cursor.moves) {
    const auto& list = space_.candidates;
    const auto found = std::find_if(list.begin(), list.end(), [&](const Candidate& candidate) {
      return candidate.move == move;
    });
    if (found == list.end() || walk_.steps() + 1 >= std::min(max_steps_, walk_.steps_max())) {
      return Fail(
          ErrorCode::kCorruption,
          "environment {}, episode {}: move {} (workload {}, node {} to {}) cannot be repeated",
          id_, cursor.episode, walk_.steps(), move.workload, move.from, move.to);
    }
    Step(static_cast<int>(found - list.begin()));
  }
  return {};
}

}  // namespace rudderfish
