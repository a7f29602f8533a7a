// SPDX-License-Identifier: Apache-2.0
#include "learn/env_slice.h"

#include "base/check.h"

namespace rudderfish {

void EpisodeTotals::Add(const EpisodeTotals& other) {
  episodes += other.episodes;
  steps += other.steps;
  rewards += other.rewards;
  initial += other.initial;
  final += other.final;
  moves += other.moves;
  truncated += other.truncated;
}

EnvSlice::EnvSlice(std::span<const TrainingWorld> worlds, uint64_t seed, uint64_t first_id,
                   int count, int episode_steps_max)
    : stop(count),
      value(count),
      workspace(std::make_unique<nn::Workspace>(nn::Workspace::Keep::kNothing)) {
  CHECK(!worlds.empty());
  envs.reserve(count);
  for (uint64_t id = first_id; id < first_id + count; ++id) {
    const TrainingWorld& at = worlds[id % worlds.size()];
    envs.push_back(at.MakeEnv(seed, id, episode_steps_max));
    envs.back()->Reset(0);
  }
}

void EnvSlice::EndStep(int i, const StepResult& result) {
  Environment& env = *envs[i];
  ++totals.steps;
  totals.rewards += result.reward;
  if (!result.terminated && !result.truncated) return;
  ++totals.episodes;
  totals.truncated += result.truncated;
  const EpisodeFigures figures = env.figures();
  totals.initial += figures.initial;
  totals.final += figures.final;
  totals.moves += figures.moves;
  env.Reset();
}

Result<void> EnvSlice::Restore(std::span<const EnvCursor> cursors) {
  CHECK_EQ(cursors.size(), envs.size());
  for (size_t i = 0; i < envs.size(); ++i) TRY(envs[i]->Restore(cursors[i]));
  return {};
}

}  // namespace rudderfish
