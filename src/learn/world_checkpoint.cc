// SPDX-License-Identifier: Apache-2.0
#include "learn/world_checkpoint.h"

#include <vector>

#include "learn/scaling_choice.h"
#include "policy/neural.h"
#include "policy/neural_placement.h"
#include "policy/neural_scaling_preset.h"

namespace rudderfish {

Result<void> CheckIsOfWorld(const nn::SafetensorsFile& file, const TrainingWorld& world) {
  if (world.routes()) return CheckRouting(file);
  if (world.places()) return CheckPlacement(file, world.placement->task);
  if (world.moves()) return CheckTask(file, *world.task);
  if (world.scales_by_preset())
    return CheckScalingPreset(file, world.scaling_preset->task->preset());
  TRY(CheckScaling(file));
  return {};
}

void DescribeWorlds(const TrainingWorlds& worlds, const TrainOptions& options,
                    const Verdicts& verdicts, nn::SafetensorsFile* file) {
  const TrainingWorld& first = worlds.first();
  if (first.places()) {
    DescribePlacement(first.placement->task, file);
    if (const PlacementFacts* facts = worlds.FactsOfAll()) DescribePlacementWorld(*facts, file);
    AddFamiliarity(worlds.SeenByAll(), file);
  } else if (first.routes()) {
    DescribeRouting(options.routing->rule, verdicts.routing, file);
  } else if (first.scales()) {
    DescribeScaling(options.scaling->rows, options.scaling->violations_max, verdicts.scaling, file);
  } else if (first.scales_by_preset()) {
    DescribeScalingPreset(first.scaling_preset->task->preset(), file);
  } else {
    DescribeTask(*first.task, file);
  }
}

Verdicts JudgeWorlds(const TrainingWorlds& worlds, const TrainOptions& options,
                     const std::shared_ptr<nn::CandidateNet>& net, ThreadPool* pool) {
  Verdicts verdicts;
  if (worlds.first().routes()) {
    std::vector<const RoutingWorld*> routings;
    for (const TrainingWorld& world : worlds.originals()) routings.push_back(world.routing);
    verdicts.routing = JudgeRouting(routings, ChoiceWeightsOf(*net), options.routing->rivals,
                                    2 * options.validation_starts, options.seed, pool);
    return verdicts;
  }
  verdicts.scaling = ChooseScaling(*worlds.first().scaling, net,
                                   {.violations_max = options.scaling->violations_max,
                                    .episodes = options.validation_starts,
                                    .seed = options.seed,
                                    .rival = options.scaling->rival},
                                   pool);
  return verdicts;
}

Result<std::string> VerdictOf(const TrainingWorld& world, const std::filesystem::path& checkpoint) {
  return world.routes() ? RoutingVerdictOf(checkpoint) : VerdictOfRun(checkpoint);
}

}  // namespace rudderfish
