// SPDX-License-Identifier: Apache-2.0
#include "policy/neural_placement.h"

#include <algorithm>
#include <utility>

#include "nn/checkpoint.h"
#include "policy/neural.h"

namespace rudderfish {

NeuralPlacement::NeuralPlacement(const PlacementTask& task,
                                 std::shared_ptr<const nn::CandidateNet> net,
                                 const PlacementMix& added)
    : task_(task), net_(std::move(net)), added_(added), workspace_(nn::Workspace::Keep::kNothing) {
  batch_.widths = PlacementTask::kWidths;
}

int NeuralPlacement::Choose(const PlacementQuestion& question, std::span<const uint8_t> allowed) {
  task_.Space(question, allowed, &space_);
  const auto count = static_cast<size_t>(space_.count());
  if (count == 0) return -1;
  batch_.Clear();
  task_.Encode(question, space_, &batch_);
  if (logits_.size() < count) logits_.resize(count);
  float stop = 0, value = 0;
  const std::span<float> logits = std::span(logits_).first(count);
  net_->Forward(batch_, 0, 1, &workspace_, logits, std::span(&stop, 1), std::span(&value, 1));
  for (size_t i = 0; i < count; ++i) {
    for (int s = 0; s < kPlacementScores; ++s)
      logits[i] += static_cast<float>(added_[s]) * space_.candidates[i].score[s];
  }
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void DescribePlacement(const PlacementTask& task, nn::SafetensorsFile* file) {
  file->SetMetadata("task", std::string(PlacementTask::kName));
  file->SetMetadata("features", PlacementTask::FeatureHash());
  file->SetMetadata("objective", ObjectiveText(task.objective()));
}

Result<void> CheckPlacement(const nn::SafetensorsFile& file, const PlacementTask& task) {
  TRY_ASSIGN(const std::string name, file.Metadata("task"));
  if (name != PlacementTask::kName) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: trained for the task {}, not {}",
                file.source_name(), name, PlacementTask::kName);
  }
  TRY_ASSIGN(const std::string features, file.Metadata("features"));
  if (features != PlacementTask::FeatureHash()) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: trained on other features (table {}) than this version shows (table {}); "
                "train anew",
                file.source_name(), features, PlacementTask::FeatureHash());
  }
  TRY_ASSIGN(const std::string objective, file.Metadata("objective"));
  if (objective != ObjectiveText(task.objective())) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: trained for the objective {}, not {}; name that one by --objective, or train "
                "another",
                file.source_name(), objective, ObjectiveText(task.objective()));
  }
  return {};
}

Result<std::shared_ptr<const nn::CandidateNet>> LoadPlacementNet(const std::filesystem::path& path,
                                                                 const PlacementTask& task) {
  TRY_ASSIGN(const std::filesystem::path checkpoint, CheckpointOf(path));
  TRY_ASSIGN(const nn::SafetensorsFile file, nn::SafetensorsFile::Read(checkpoint));
  TRY(CheckPlacement(file, task));
  TRY_ASSIGN(const nn::NetShape shape, nn::StoredNetShape(file));
  if (!(shape.widths == PlacementTask::kWidths)) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: the network's rows are not as wide as the task's features",
                checkpoint.string());
  }
  auto net = std::make_shared<nn::CandidateNet>(shape);
  TRY(nn::LoadNet(file, net.get()));
  return std::shared_ptr<const nn::CandidateNet>(std::move(net));
}

}  // namespace rudderfish
