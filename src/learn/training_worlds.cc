// SPDX-License-Identifier: Apache-2.0
#include "learn/training_worlds.h"

#include <algorithm>

#include "base/check.h"
#include "scenario/scaled.h"
#include "task/migration.h"

namespace rudderfish {

Result<TrainingWorlds> TrainingWorlds::Make(
    std::span<const std::shared_ptr<const Scenario>> scenarios, int enlarge_every) {
  CHECK(!scenarios.empty());
  TrainingWorlds made;
  for (const std::shared_ptr<const Scenario>& scenario : scenarios) {
    TRY_ASSIGN(const MigrationOptions options, ParseMigrationOptions(scenario->task));
    TRY_ASSIGN(const LatencyLaw law, LatencyLaw::Named(scenario->law));
    const World& world = *made.worlds_.emplace_back(std::make_unique<World>(scenario));
    const Task& task = *made.tasks_.emplace_back(std::make_unique<MigrationTask>(options));
    if (task.FeatureHash() != made.task().FeatureHash()) {
      return Fail(ErrorCode::kFailedPrecondition,
                  "{} and {} show a network different features (task.features); train them apart",
                  scenarios[0]->name, scenario->name);
    }
    Rng rng(scenario->seed);
    State state;
    TRY(world.Draw(&rng, &state));
    made.originals_.push_back({&world, &task, law});
  }
  // Environments take the list in turn: all scenarios `enlarge_every` times, the last time
  // enlarged.
  for (int i = 0; i < std::max(1, enlarge_every); ++i) {
    for (const TrainingWorld& original : made.originals_) {
      TrainingWorld& entry = made.list_.emplace_back(original);
      const Scenario& scenario = original.world->scenario();
      if (i == 0 || i + 1 < enlarge_every || scenario.node_count() > kEnlargeNodesMax) continue;
      auto twice = std::make_shared<const Scenario>(Scaled(scenario, 2));
      entry.world = made.worlds_.emplace_back(std::make_unique<World>(std::move(twice))).get();
      Rng rng(scenario.seed);
      State state;
      if (!entry.world->Draw(&rng, &state))
        entry = original;  // Too many pods for too few nodes: not twice, then.
    }
  }
  return made;
}

}  // namespace rudderfish
