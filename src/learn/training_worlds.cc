// SPDX-License-Identifier: Apache-2.0
#include "learn/training_worlds.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/thread_pool.h"
#include "scenario/scaled.h"
#include "task/migration.h"

namespace rudderfish {

Result<void> TrainingWorlds::AddPlacement(std::shared_ptr<const Scenario> scenario, int threads) {
  ThreadPool pool(threads);
  TRY_ASSIGN(PlacementWorld world, PlacementWorld::Make(std::move(scenario), &pool));
  placements_.push_back(std::make_unique<PlacementWorld>(std::move(world)));
  originals_.push_back({.placement = placements_.back().get()});
  return {};
}

Result<void> TrainingWorlds::AddMigration(std::shared_ptr<const Scenario> scenario) {
  TRY_ASSIGN(const MigrationOptions options, ParseMigrationOptions(scenario->task));
  TRY_ASSIGN(const LatencyLaw law, LatencyLaw::Named(scenario->law));
  const World& world = *worlds_.emplace_back(std::make_unique<World>(scenario));
  const Task& task = *tasks_.emplace_back(std::make_unique<MigrationTask>(options));
  Rng rng(scenario->seed);
  State state;
  TRY(world.Draw(&rng, &state));
  originals_.push_back({.world = &world, .task = &task, .law = law});
  return {};
}

Result<TrainingWorlds> TrainingWorlds::Make(
    std::span<const std::shared_ptr<const Scenario>> scenarios, int enlarge_every, int threads) {
  CHECK(!scenarios.empty());
  TrainingWorlds made;
  for (const std::shared_ptr<const Scenario>& scenario : scenarios) {
    if (scenario->places_pods()) {
      TRY(made.AddPlacement(scenario, threads));
    } else {
      TRY(made.AddMigration(scenario));
    }
    const TrainingWorld& added = made.originals_.back();
    if (added.places() != made.first().places()) {
      return Fail(ErrorCode::kFailedPrecondition,
                  "pods are moved in one of {} and {} and placed in the other; train them apart",
                  scenarios[0]->name, scenario->name);
    }
    if (added.FeatureHash() != made.first().FeatureHash()) {
      return Fail(ErrorCode::kFailedPrecondition,
                  "{} and {} show a network different features (task.features); train them apart",
                  scenarios[0]->name, scenario->name);
    }
    if (added.places() &&
        !(added.placement->task.objective() == made.first().placement->task.objective())) {
      return Fail(ErrorCode::kFailedPrecondition,
                  "{} and {} have different objectives; name one for both by --objective",
                  scenarios[0]->name, scenario->name);
    }
  }
  if (made.first().places()) {
    made.list_ = made.originals_;
    return made;
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
