// SPDX-License-Identifier: Apache-2.0
#include "learn/training_worlds.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/suggest.h"
#include "base/thread_pool.h"
#include "policy/registry.h"
#include "scenario/scaled.h"
#include "task/migration.h"

namespace rudderfish {
namespace {

Result<void> CheckIsOfPreset(PlacementPreset preset,
                             std::span<const std::shared_ptr<const Scenario>> scenarios) {
  const std::string_view name = PlacementPresetName(preset);
  if (scenarios.size() > 1) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{} and {}: by {} one cluster is learned, as its system has one; train them apart",
                scenarios[0]->name, scenarios[1]->name, name);
  }
  if (scenarios[0]->places_pods()) return {};
  return Fail(ErrorCode::kFailedPrecondition, "{}: {} places pods that come and go, and none do",
              scenarios[0]->name, name);
}

}  // namespace

Result<void> TrainingWorlds::AddPlacement(std::shared_ptr<const Scenario> scenario, int threads,
                                          std::optional<PlacementPreset> preset) {
  ThreadPool pool(threads);
  TRY_ASSIGN(PlacementWorld world, PlacementWorld::Make(std::move(scenario), &pool, preset));
  placements_.push_back(std::make_unique<PlacementWorld>(std::move(world)));
  originals_.push_back({.placement = placements_.back().get()});
  return {};
}

const PlacementFacts* TrainingWorlds::FactsOfAll() const {
  if (placements_.empty()) return nullptr;
  const PlacementFacts* first = &placements_[0]->facts;
  for (const auto& placement : placements_) {
    if (!(placement->facts == *first)) return nullptr;
  }
  return first;
}

Familiarity TrainingWorlds::SeenByAll() const {
  Familiarity all;
  for (const auto& placement : placements_) all.Join(placement->seen);
  return all;
}

Result<void> TrainingWorlds::AddScaling(std::shared_ptr<const Scenario> scenario,
                                        const ScalingTraining& scaling, int threads) {
  if (scenario->load == nullptr) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: has no `load`: say what requests come, and how pods serve them",
                scenario->name);
  }
  std::vector<std::string_view> known;
  std::vector<int> loads;
  for (const NamedTraffic& named : scenario->load->loads) known.push_back(named.name);
  for (size_t i = 0; scaling.loads.empty() && i < known.size(); ++i)
    loads.push_back(static_cast<int>(i));
  for (const std::string& name : scaling.loads) {
    const int position = scenario->load->LoadNamed(name);
    if (position == kNone) {
      return Fail(ErrorCode::kNotFound, "{}: no load is called {}; there are {}{}", scenario->name,
                  name, fmt::join(known, ", "), DidYouMean(name, known));
    }
    loads.push_back(position);
  }
  if (scaling.preset) {
    TRY_ASSIGN(ScalingPresetWorld world,
               ScalingPresetWorld::Make(std::move(scenario), std::move(loads), *scaling.preset));
    scaling_presets_.push_back(std::make_unique<ScalingPresetWorld>(std::move(world)));
    originals_.push_back({.scaling_preset = scaling_presets_.back().get()});
    return {};
  }
  ThreadPool pool(threads);
  TRY_ASSIGN(ScalingWorld world, ScalingWorld::Make(std::move(scenario), std::move(loads),
                                                    scaling.violations_max, &pool, scaling.rows));
  scalings_.push_back(std::make_unique<ScalingWorld>(std::move(world)));
  originals_.push_back({.scaling = scalings_.back().get()});
  return {};
}

Result<void> TrainingWorlds::AddRouting(const Scenario& scenario, const RoutingTraining& routing) {
  if (scenario.regions == nullptr)
    return Fail(ErrorCode::kFailedPrecondition, "{}: has no `regions`", scenario.name);
  TRY_ASSIGN(const std::shared_ptr<const RegionWorld> world,
             WithRegions(scenario.regions, routing.regions));
  TRY_ASSIGN(const std::vector<int> variants, VariantsNamed(*world, routing.variants));
  TRY_ASSIGN(const PlannedRouting rule, ReadPlannedRouting(routing.rule));
  if (routing.rivals.empty()) return Invalid("routing.rivals: expected at least one policy");
  for (const std::string& rival : routing.rivals) {
    TRY_ASSIGN(const std::unique_ptr<RoutingPolicy> made, MakeRoutingRule(rival));
    if (made->foresees())
      return Invalid("{}: it knows the demand to come, and can be no rival", rival);
  }
  const ServiceLaws laws = LawsOf(*world);
  for (const int variant : variants) {
    routings_.push_back(std::make_unique<RoutingWorld>(
        RoutingWorld{world, laws, world->variants[variant], rule, routing.tiers}));
    originals_.push_back({.routing = routings_.back().get()});
  }
  return {};
}

Result<void> TrainingWorlds::AddMigration(std::shared_ptr<const Scenario> scenario) {
  TRY(CheckMovesPods(*scenario, scenario->name));
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
    std::span<const std::shared_ptr<const Scenario>> scenarios, int enlarge_every, int threads,
    const std::optional<ScalingTraining>& scaling, std::optional<PlacementPreset> preset,
    const std::optional<RoutingTraining>& routing) {
  CHECK(!scenarios.empty());
  TrainingWorlds made;
  if (scaling && scenarios.size() > 1) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{} and {}: scaling is learned from one scenario; what was learned serves others",
                scenarios[0]->name, scenarios[1]->name);
  }
  if (routing && scenarios.size() > 1) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{} and {}: routing is learned from one scenario; what was learned serves others",
                scenarios[0]->name, scenarios[1]->name);
  }
  if (preset) TRY(CheckIsOfPreset(*preset, scenarios));
  for (const std::shared_ptr<const Scenario>& scenario : scenarios) {
    if (routing) {
      TRY(made.AddRouting(*scenario, *routing));
    } else if (scaling) {
      TRY(made.AddScaling(scenario, *scaling, threads));
    } else if (scenario->places_pods()) {
      TRY(made.AddPlacement(scenario, threads, preset));
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
  if (!made.first().moves()) {
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
