// SPDX-License-Identifier: Apache-2.0
#include "learn/training_worlds.h"

#include "base/check.h"
#include "task/migration.h"

namespace rudderfish {

Result<TrainingWorlds> TrainingWorlds::Make(std::span<const std::shared_ptr<const Scenario>> scenarios) {
  CHECK(!scenarios.empty());
  TrainingWorlds made;
  for (const std::shared_ptr<const Scenario>& scenario : scenarios) {
    TRY_ASSIGN(const MigrationOptions options, ParseMigrationOptions(scenario->task));
    TRY_ASSIGN(const LatencyLaw law, LatencyLaw::Named(scenario->law));
    const World& world = *made.worlds_.emplace_back(std::make_unique<World>(scenario));
    const Task& task = *made.tasks_.emplace_back(std::make_unique<MigrationTask>(options));
    if (task.FeatureHash() != made.task().FeatureHash()) {
      return Fail(ErrorCode::kFailedPrecondition,
                  "{} and {} show a network different features (task.features); train them apart", scenarios[0]->name,
                  scenario->name);
    }
    Rng rng(scenario->seed);
    State state;
    TRY(world.Draw(&rng, &state));
    made.list_.push_back({&world, &task, law});
  }
  return made;
}

}  // namespace rudderfish
