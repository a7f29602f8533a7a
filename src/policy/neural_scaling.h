// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/capacity_ladder.h"
#include "nn/candidate_net.h"
#include "nn/safetensors.h"
#include "policy/scaling_policy.h"
#include "policy/scaling_record.h"
#include "task/scaling.h"

// A learned scaling policy: the network's most likely rung of the application's ladder
// (task/scaling.h), at the price of late requests that keeps the limit it was trained for.
//
// A checkpoint says what it was trained for (task, features, limit) and is refused by the name of
// what differs. Once training is over it says too how the network did on validation episodes
// against autoscalers that need no learning: where it did not win, the checkpoint steps back, and
// is that autoscaler.
//
// What was found for one application holds for another in its own measure: minimum rates as shares
// of what all its pods serve, the price of a late request (of look-ahead) by what a request costs
// there. So a checkpoint scales applications it was not trained on.

namespace rudderfish {

// All pods that bounds and quota allow.
struct ApplicationSize {
  double serves_per_s = 0;  // Within the limit on late requests,
  double cores = 0;         // requesting so much.

  static ApplicationSize Of(const CapacityLadder& ladder);
  bool operator==(const ApplicationSize&) const = default;
};

// A rule of one application, as MakeScalingPolicy reads it, for another: `min-rate`, and `rate` of
// static, by what they serve; `price` of mpc by what a request costs. The same for the same size.
std::string RuleFor(const std::string& rule, const ApplicationSize& from,
                    const ApplicationSize& to);

struct ScalingVerdict {
  double price = 0;        // Of late requests, that did best,
  double least_share = 0;  // and what there are to be pods for, always: of ApplicationSize's rate.
  ApplicationSize size;    // Of the application it was trained on.
  ScalingRecord learned;
  std::string rule;  // The best autoscaler of those tried, as MakeScalingPolicy reads it.
  ScalingRecord of_rule;
  double allowed = 0;  // Share of late requests if neither net nor rule keeps the limit; else 0.
  int episodes = 0;    // Of each load.

  // Whether the rule decides in place of the network.
  bool steps_back = false;
};

class NeuralScaling final : public ScalingPolicy {
 public:
  // `late_max`: share of requests, of the ladder. Never below the rung for `least_share` of what
  // all pods of the application serve: as an autoscaler's minReplicas.
  NeuralScaling(std::shared_ptr<const nn::CandidateNet> net, double late_max, double price,
                double least_share = 0);

  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const override;
  void Decide(const ScalingQuestion& question, ScalingMemory* memory,
              std::span<int> replicas) const override;

 private:
  std::shared_ptr<const nn::CandidateNet> net_;
  double late_max_, price_, least_share_;
};

// What a checkpoint of the task says of itself.
void DescribeScaling(ScalingRows rows, double violations_max,
                     const std::optional<ScalingVerdict>& verdict, nn::SafetensorsFile* file);
Result<double> CheckScaling(const nn::SafetensorsFile& file);  // The limit.
// kFailedPrecondition if it is of a version that says nothing of the application's size.
Result<std::optional<ScalingVerdict>> StoredVerdict(const nn::SafetensorsFile& file);

// `path`: a checkpoint or a run folder (CheckpointOf).
Result<std::unique_ptr<ScalingPolicy>> LoadNeuralScaling(const std::filesystem::path& path);

// What decides for an application: the autoscaler that it steps back to, as MakeScalingPolicy reads
// it, or `path`.
Result<std::string> DecidingSetting(const std::string& path, const ServedApplication& application);

// Of one: what was found on validation episodes, in a line; "" before.
Result<std::string> VerdictOfRun(const std::filesystem::path& path);

}  // namespace rudderfish
