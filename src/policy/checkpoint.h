// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "nn/safetensors.h"

// What was trained, by the path at which people name it: a run folder of `train`, or a checkpoint.

namespace rudderfish {

// `path` itself, or of a run folder best.safetensors, or last.safetensors if there is no best.
Result<std::filesystem::path> CheckpointOf(const std::filesystem::path& path);
Result<nn::SafetensorsFile> OpenCheckpoint(const std::filesystem::path& path);

// `task` as checkpoints name it.
Result<void> CheckTrainedFor(const nn::SafetensorsFile& file, std::string_view task);

}  // namespace rudderfish
