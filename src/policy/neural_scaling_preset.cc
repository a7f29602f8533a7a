// SPDX-License-Identifier: Apache-2.0
#include "policy/neural_scaling_preset.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nn/checkpoint.h"
#include "nn/workspace.h"

namespace rudderfish {
namespace {

constexpr const char* kScalingPreset = "preset";

struct ScalingPresetMemory final : ScalingMemory {
  ScalingPresetMemory(ScalingPreset preset, const ServedApplication& application,
                      const nn::NetShape& shape)
      : task(preset, application, ""),
        replicas(application.workloads.size()),
        ready(replicas.size()),
        calls_per_s(replicas.size()),
        busy_slots(replicas.size()),
        workspace(nn::Workspace::Keep::kNothing),
        logits(static_cast<size_t>(task.actions())),
        remembered(static_cast<size_t>(shape.memory())) {
    batch.widths = shape.widths;
  }

  ScalingPresetTask task;
  std::vector<int> replicas, ready;             // [workload]
  std::vector<double> calls_per_s, busy_slots;  // [workload]
  ScalingPresetSight sight;
  GraphBatch batch;
  nn::Workspace workspace;
  std::vector<float> logits;
  std::vector<float> remembered;  // Of a network that remembers.
};

}  // namespace

NeuralScalingPreset::NeuralScalingPreset(ScalingPreset preset,
                                         std::shared_ptr<const nn::CandidateNet> net)
    : preset_(preset), net_(std::move(net)) {}

std::unique_ptr<ScalingMemory> NeuralScalingPreset::NewMemory(
    const ServedApplication& application) const {
  return std::make_unique<ScalingPresetMemory>(preset_, application, net_->shape());
}

void NeuralScalingPreset::Decide(const ScalingQuestion& question, ScalingMemory* memory,
                                 std::span<int> replicas) const {
  if (!question.has_samples) return;
  auto* own = static_cast<ScalingPresetMemory*>(memory);
  for (size_t w = 0; w < question.workloads.size(); ++w) {
    const WorkloadSight& seen = question.workloads[w];
    own->replicas[w] = seen.replicas;
    own->ready[w] = seen.ready();
    own->calls_per_s[w] = seen.calls_per_s;
    own->busy_slots[w] = seen.busy_slots;
  }
  own->task.Look({own->replicas, own->ready, own->calls_per_s, own->busy_slots}, &own->sight);
  own->batch.Clear();
  own->task.Encode(own->sight, &own->batch);
  float stop = 0, value = 0;
  net_->Forward(own->batch, 0, 1, &own->workspace, own->logits, std::span(&stop, 1),
                std::span(&value, 1), own->remembered);
  const auto best = std::max_element(own->logits.begin(), own->logits.end());
  own->task.Apply(own->task.move(static_cast<int>(best - own->logits.begin())), replicas);
}

void DescribeScalingPreset(ScalingPreset preset, nn::SafetensorsFile* file) {
  file->SetMetadata("task", "scaling");
  file->SetMetadata(kScalingPreset, std::string(ScalingPresetName(preset)));
  file->SetMetadata("features", ScalingPresetTask::FeatureHash(preset));
}

Result<std::optional<ScalingPreset>> StoredScalingPreset(const nn::SafetensorsFile& file) {
  const auto task = file.metadata().find("task"), found = file.metadata().find(kScalingPreset);
  if (found == file.metadata().end() || task == file.metadata().end() || task->second != "scaling")
    return std::optional<ScalingPreset>();
  const Result<ScalingPreset> preset = ScalingPresetNamed(found->second);
  if (preset) return std::optional(*preset);
  return Fail(ErrorCode::kFailedPrecondition, "{}: {}", file.source_name(), preset.error().message);
}

Result<void> CheckScalingPreset(const nn::SafetensorsFile& file, ScalingPreset preset) {
  TRY_ASSIGN(const std::optional<ScalingPreset> stored, StoredScalingPreset(file));
  if (stored != preset) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: was not trained as {}", file.source_name(),
                ScalingPresetName(preset));
  }
  TRY_ASSIGN(const std::string features, file.Metadata("features"));
  if (features == ScalingPresetTask::FeatureHash(preset)) return {};
  return Fail(
      ErrorCode::kFailedPrecondition,
      "{}: trained on other features (table {}) than this version has (table {}); train it again",
      file.source_name(), features, ScalingPresetTask::FeatureHash(preset));
}

Result<std::unique_ptr<ScalingPolicy>> LoadNeuralScalingPreset(const nn::SafetensorsFile& file,
                                                               ScalingPreset preset) {
  TRY(CheckScalingPreset(file, preset));
  TRY_ASSIGN(const nn::NetShape shape, nn::StoredNetShape(file));
  if (!(shape.widths == ScalingPresetTask::kWidths)) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: the network's rows are not as wide as the preset's features",
                file.source_name());
  }
  auto net = std::make_shared<nn::CandidateNet>(shape);
  TRY(nn::LoadNet(file, net.get()));
  return std::make_unique<NeuralScalingPreset>(preset, std::move(net));
}

}  // namespace rudderfish
