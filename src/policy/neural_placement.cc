// SPDX-License-Identifier: Apache-2.0
#include "policy/neural_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nn/checkpoint.h"
#include "policy/checkpoint.h"
#include "policy/neural.h"

namespace rudderfish {
namespace {

constexpr const char* kSeenCandidates = "seen.candidate";
constexpr const char* kSeenContexts = "seen.context";
constexpr const char* kPreset = "preset";

std::string PresetText(const std::optional<PlacementPreset>& preset) {
  return preset ? fmt::format("the preset {}", PlacementPresetName(*preset)) : "no preset";
}

}  // namespace

NeuralPlacement::NeuralPlacement(const PlacementTask& task,
                                 std::shared_ptr<const nn::CandidateNet> net,
                                 const PlacementMix& added,
                                 std::shared_ptr<const Familiarity> familiarity)
    : task_(task),
      net_(std::move(net)),
      added_(added),
      familiarity_(std::move(familiarity)),
      workspace_(nn::Workspace::Keep::kNothing) {
  batch_.widths = PlacementTask::Widths(task.preset());
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

Strangeness NeuralPlacement::strangeness(int candidate) const {
  if (familiarity_ == nullptr) return {};
  const auto width = static_cast<size_t>(batch_.widths.candidate);
  const std::span<const float> rows(batch_.candidates);
  return StrangenessOf(*familiarity_, rows.subspan(static_cast<size_t>(candidate) * width, width),
                       std::span<const float>(batch_.context));
}

std::span<const double> NeuralPlacement::Rate(const PlacementQuestion& question,
                                              std::span<const uint8_t> allowed) {
  Choose(question, allowed);
  rates_.assign(scores().begin(), scores().end());
  return rates_;
}

void DescribePlacement(const PlacementTask& task, nn::SafetensorsFile* file) {
  file->SetMetadata("task", std::string(PlacementTask::kName));
  if (task.preset()) file->SetMetadata(kPreset, std::string(PlacementPresetName(*task.preset())));
  file->SetMetadata("features", PlacementTask::FeatureHash(task.preset()));
  file->SetMetadata("objective", ObjectiveText(task.objective()));
}

void DescribePlacementWorld(const PlacementFacts& facts, nn::SafetensorsFile* file) {
  file->SetMetadata("world", FactsText(facts));
}

void AddFamiliarity(const Familiarity& familiarity, nn::SafetensorsFile* file) {
  if (familiarity.empty()) return;
  const auto add = [&](const char* name, const Familiarity::Ranges& ranges) {
    std::vector<float> both = ranges.low;
    both.insert(both.end(), ranges.high.begin(), ranges.high.end());
    file->Add<float>(name, {2, static_cast<int64_t>(ranges.low.size())}, both);
  };
  add(kSeenCandidates, familiarity.candidate);
  add(kSeenContexts, familiarity.context);
}

Result<Familiarity> StoredFamiliarity(const nn::SafetensorsFile& file) {
  Familiarity familiarity;
  if (!file.Has(kSeenContexts)) return familiarity;
  const auto read = [&](const char* name, size_t features,
                        Familiarity::Ranges* ranges) -> Result<void> {
    std::vector<float> both(2 * features);
    TRY(file.CopyTo<float>(name, {2, static_cast<int64_t>(features)}, both));
    ranges->low.assign(both.begin(), both.begin() + static_cast<long>(features));
    ranges->high.assign(both.begin() + static_cast<long>(features), both.end());
    for (size_t i = 0; i < features; ++i) {
      if (ranges->low[i] <= ranges->high[i]) continue;  // Not so for NaN, either.
      return Fail(ErrorCode::kCorruption, "{}: {}: feature {} has no range", file.source_name(),
                  name, i);
    }
    return {};
  };
  TRY(read(kSeenCandidates, PlacementTask::Features().candidate.size(), &familiarity.candidate));
  TRY(read(kSeenContexts, PlacementTask::Features().context.size(), &familiarity.context));
  return familiarity;
}

Result<std::optional<PlacementPreset>> StoredPreset(const nn::SafetensorsFile& file) {
  const auto found = file.metadata().find(kPreset);
  if (found == file.metadata().end()) return std::optional<PlacementPreset>();
  const Result<PlacementPreset> preset = PlacementPresetNamed(found->second);
  if (preset) return std::optional(*preset);
  return Fail(ErrorCode::kFailedPrecondition, "{}: {}", file.source_name(), preset.error().message);
}

Result<Objective> StoredObjective(const nn::SafetensorsFile& file) {
  TRY_ASSIGN(const std::string objective, file.Metadata("objective"));
  return ParseObjectiveText(objective, file.source_name());
}

Result<void> CheckIsPlacement(const nn::SafetensorsFile& file) {
  TRY(CheckTrainedFor(file, PlacementTask::kName));
  TRY_ASSIGN(const std::optional<PlacementPreset> preset, StoredPreset(file));
  TRY_ASSIGN(const std::string features, file.Metadata("features"));
  if (features != PlacementTask::FeatureHash(preset)) {
    return Fail(
        ErrorCode::kFailedPrecondition,
        "{}: trained on other features (table {}) than this version has (table {}); train it again",
        file.source_name(), features, PlacementTask::FeatureHash(preset));
  }
  return {};
}

Result<void> CheckPlacement(const nn::SafetensorsFile& file, const PlacementTask& task) {
  TRY(CheckIsPlacement(file));
  TRY_ASSIGN(const std::optional<PlacementPreset> preset, StoredPreset(file));
  if (preset != task.preset()) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: trained with {}, not {}", file.source_name(),
                PresetText(preset), PresetText(task.preset()));
  }
  if (preset) return {};  // Its reward is the preset's, whatever the objective is.
  TRY_ASSIGN(const Objective objective, StoredObjective(file));
  if (!AreAlike(objective, task.objective())) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: trained for the objective {}, not {}; name that one by --objective, or train "
                "another",
                file.source_name(), ObjectiveText(objective), ObjectiveText(task.objective()));
  }
  return {};
}

Result<PlacementNet> LoadPlacementNet(const std::filesystem::path& path,
                                      const PlacementTask& asked) {
  TRY_ASSIGN(const nn::SafetensorsFile file, OpenCheckpoint(path));
  TRY_ASSIGN(const std::optional<PlacementPreset> preset, StoredPreset(file));
  TRY(CheckPlacement(file, PlacementTask(asked.objective(), preset)));
  Objective objective = asked.objective();
  if (!preset) {
    TRY_ASSIGN(objective, StoredObjective(file));  // Some features depend on how large weights are.
  }
  const PlacementTask task(objective, preset);
  TRY_ASSIGN(auto net, LoadMemorylessNet(file, PlacementTask::Widths(preset)));
  TRY_ASSIGN(Familiarity familiarity, StoredFamiliarity(file));
  return PlacementNet{task, std::move(net),
                      std::make_shared<const Familiarity>(std::move(familiarity))};
}

}  // namespace rudderfish
