// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "nn/candidate_net.h"
#include "nn/safetensors.h"
#include "policy/policy.h"

// A network that answers one question: its most likely alternative. Plans are made of many such
// answers (policy/walks.h). Answer::scores are log-probabilities,
// stop last; Answer::value is the net's estimate of the reward still to come.
//
// A checkpoint says what it was trained for (task, feature hash, objective) and is refused by the
// name of what differs. Written by learn/trainer; the same file serves any cluster size.

namespace rudderfish {

class NeuralPolicy final : public Policy {
 public:
  NeuralPolicy(std::string name, std::shared_ptr<const nn::CandidateNet> net);

  std::string_view name() const override { return name_; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override;
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override;

  const nn::CandidateNet& net() const { return *net_; }

 private:
  std::string name_;
  std::shared_ptr<const nn::CandidateNet> net_;
};

// What a checkpoint must agree on with the task that is to be done.
void DescribeTask(const Task& task, nn::SafetensorsFile* file);
Result<void> CheckTask(const nn::SafetensorsFile& file, const Task& task);

// The network of a checkpoint whose rows are `widths` wide and that answers each question for
// itself. Errors name what differs.
Result<std::shared_ptr<nn::CandidateNet>> LoadMemorylessNet(const nn::SafetensorsFile& file,
                                                            const GraphWidths& widths);

// `path`: a checkpoint or a run folder (CheckpointOf).
Result<std::unique_ptr<Policy>> LoadNeuralPolicy(const std::filesystem::path& path,
                                                 const Task& task);

}  // namespace rudderfish
