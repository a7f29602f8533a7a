// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/thread_pool.h"
#include "learn/train_options.h"
#include "learn/training_worlds.h"
#include "nn/candidate_net.h"
#include "nn/safetensors.h"
#include "policy/neural_routing.h"
#include "policy/neural_scaling.h"

// What a checkpoint says of the worlds it was trained in, and whether what was learned in them is
// to decide at all.

namespace rudderfish {

// Of scaling and of regions, once training is over; none of other tasks.
struct Verdicts {
  std::optional<ScalingVerdict> scaling;
  std::optional<RoutingVerdict> routing;
};

// Whether networks of such a world are compared with rules at the end.
inline bool IsJudged(const TrainingWorld& world) { return world.scales() || world.routes(); }

// kFailedPrecondition, by the name of what differs, for a checkpoint of another task or features.
Result<void> CheckIsOfWorld(const nn::SafetensorsFile& file, const TrainingWorld& world);

void DescribeWorlds(const TrainingWorlds& worlds, const TrainOptions& options,
                    const Verdicts& verdicts, nn::SafetensorsFile* file);

// REQUIRES: IsJudged. Of scaling it also finds the price at which the network does best.
Verdicts JudgeWorlds(const TrainingWorlds& worlds, const TrainOptions& options,
                     const std::shared_ptr<nn::CandidateNet>& net, ThreadPool* pool);

// What a checkpoint says of its comparison, in a line; "" before. REQUIRES: IsJudged.
Result<std::string> VerdictOf(const TrainingWorld& world, const std::filesystem::path& checkpoint);

}  // namespace rudderfish
