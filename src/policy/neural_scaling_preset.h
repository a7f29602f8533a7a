// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "nn/candidate_net.h"
#include "nn/safetensors.h"
#include "policy/scaling_policy.h"
#include "task/scaling_preset.h"

// A network that learned to scale as an earlier system did (task/scaling_preset.h): every interval
// its most likely move of one workload. It knows no limit on late requests and steps back to
// nothing; a move beyond a bound is not made.

namespace rudderfish {

class NeuralScalingPreset final : public ScalingPolicy {
 public:
  // REQUIRES: the network is as wide as ScalingPresetTask::kWidths.
  NeuralScalingPreset(ScalingPreset preset, std::shared_ptr<const nn::CandidateNet> net);

  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const override;
  void Decide(const ScalingQuestion& question, ScalingMemory* memory,
              std::span<int> replicas) const override;

 private:
  ScalingPreset preset_;
  std::shared_ptr<const nn::CandidateNet> net_;
};

// What a checkpoint says of itself, and what it says; none: it is of no preset.
void DescribeScalingPreset(ScalingPreset preset, nn::SafetensorsFile* file);
Result<std::optional<ScalingPreset>> StoredScalingPreset(const nn::SafetensorsFile& file);

// That it is of this preset, as this version shows it.
Result<void> CheckScalingPreset(const nn::SafetensorsFile& file, ScalingPreset preset);

Result<std::unique_ptr<ScalingPolicy>> LoadNeuralScalingPreset(const nn::SafetensorsFile& file,
                                                               ScalingPreset preset);

}  // namespace rudderfish
