// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/graph_batch.h"
#include "base/result.h"
#include "nn/candidate_net.h"
#include "nn/safetensors.h"
#include "nn/workspace.h"
#include "policy/familiarity.h"
#include "policy/placement_facts.h"
#include "policy/placement_policy.h"
#include "task/placement.h"

// A learned way to place pods: the network's most likely candidate, if wanted with a mix of simple
// scores added to its logits. One a thread: it holds what it needs to be asked again, and allocates
// nothing once it has seen the largest question.
//
// A checkpoint says what it was trained for (task, preset, features, objective) and is refused by
// the name of what differs.

namespace rudderfish {

class NeuralPlacement final : public PlacementRater {
 public:
  NeuralPlacement(const PlacementTask& task, std::shared_ptr<const nn::CandidateNet> net,
                  const PlacementMix& added = {},
                  std::shared_ptr<const Familiarity> familiarity = nullptr);

  // Which of space() it is, or -1 where the pod may run nowhere. `allowed`: PlacementTask::Space.
  int Choose(const PlacementQuestion& question, std::span<const uint8_t> allowed = {});

  // Of the last question. Larger is better; one a candidate.
  const PlacementSpace& space() const override { return space_; }
  std::span<const float> scores() const {
    return std::span(logits_).first(static_cast<size_t>(space_.count()));
  }

  // Chooses, and says how good each candidate is.
  std::span<const double> Rate(const PlacementQuestion& question,
                               std::span<const uint8_t> allowed) override;
  Strangeness strangeness(int candidate) const override;

 private:
  PlacementTask task_;
  std::shared_ptr<const nn::CandidateNet> net_;
  PlacementMix added_;
  std::shared_ptr<const Familiarity> familiarity_;  // May be none.
  PlacementSpace space_;
  GraphBatch batch_;
  nn::Workspace workspace_;
  std::vector<float> logits_;
  std::vector<double> rates_;
};

// What a checkpoint must agree on with what is to be done; and what its world was, for clusters
// that do not say it (policy/placement_facts.h).
void DescribePlacement(const PlacementTask& task, nn::SafetensorsFile* file);
void DescribePlacementWorld(const PlacementFacts& facts, nn::SafetensorsFile* file);
Result<void> CheckIsPlacement(const nn::SafetensorsFile& file);  // Of this task, these features.
Result<std::optional<PlacementPreset>> StoredPreset(const nn::SafetensorsFile& file);
Result<Objective> StoredObjective(const nn::SafetensorsFile& file);
// Its objective may weigh terms in the same proportion (AreAlike).
Result<void> CheckPlacement(const nn::SafetensorsFile& file, const PlacementTask& task);

// Which questions it has seen, as tensors; of a checkpoint without them, an empty one.
void AddFamiliarity(const Familiarity& familiarity, nn::SafetensorsFile* file);
Result<Familiarity> StoredFamiliarity(const nn::SafetensorsFile& file);

struct PlacementNet {
  PlacementTask task;  // With the checkpoint's preset, or with its objective.
  std::shared_ptr<const nn::CandidateNet> net;
  std::shared_ptr<const Familiarity> familiarity;
};

// `path`: a checkpoint or a run folder (CheckpointOf). One that was trained by a preset was trained
// for that one's reward, and so serves any objective.
Result<PlacementNet> LoadPlacementNet(const std::filesystem::path& path, const PlacementTask& task);

}  // namespace rudderfish
