// SPDX-License-Identifier: Apache-2.0
#include "policy/checkpoint.h"

#include <string>
#include <system_error>

namespace rudderfish {

Result<std::filesystem::path> CheckpointOf(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    if (std::filesystem::exists(path, ignored)) return path;
    return Fail(ErrorCode::kNotFound, "{}: no such checkpoint or run folder", path.string());
  }
  for (const char* name : {"best.safetensors", "last.safetensors"}) {
    if (std::filesystem::exists(path / name, ignored)) return path / name;
  }
  return Fail(ErrorCode::kNotFound,
              "{}: no best.safetensors or last.safetensors in this folder; is it a run of `train`?",
              path.string());
}

Result<nn::SafetensorsFile> OpenCheckpoint(const std::filesystem::path& path) {
  TRY_ASSIGN(const std::filesystem::path checkpoint, CheckpointOf(path));
  return nn::SafetensorsFile::Read(checkpoint);
}

Result<void> CheckTrainedFor(const nn::SafetensorsFile& file, std::string_view task) {
  TRY_ASSIGN(const std::string name, file.Metadata("task"));
  if (name == task) return {};
  return Fail(ErrorCode::kFailedPrecondition, "{}: trained for the task {}, not {}",
              file.source_name(), name, task);
}

}  // namespace rudderfish
