// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "nn/candidate_net.h"
#include "nn/safetensors.h"
#include "policy/routing_rules.h"

// A learned policy of routing: the rule it was begun with (mpc), whose choices of use and share of
// spot in each region are made by weights that evolution found.
//
// A checkpoint says which rule that is. Once training is over it says too how it did on validation
// episodes against rules that need no learning: where it did not win, the checkpoint steps back,
// and is the best of them.

namespace rudderfish {

struct RoutingVerdict {
  std::string rule;         // The best of those tried, as MakeRoutingRule reads it.
  double objective = 0;     // Of what was learned, mean of an episode,
  double of_rule = 0;       // and of the rule on the same episodes.
  double difference = 0;    // Relative, of the means, in percent,
  double interval = 0;      // plus or minus that, at 95 %.
  double late_percent = 0;  // Of what was learned,
  double late_of_rule = 0;  // and of the rule.
  int episodes = 0;
  std::string worse_in;  // Names of variants in which it is more than 0.5 % worse.

  // Whether the rule decides in place of what was learned.
  bool steps_back = false;
};

// The weights of a network that evolution made: it is linear.
std::vector<float> ChoiceWeightsOf(const nn::CandidateNet& net);

// What a checkpoint of the task says of itself. `rule`: what was begun with.
void DescribeRouting(const std::string& rule, const std::optional<RoutingVerdict>& verdict,
                     nn::SafetensorsFile* file);
// That it is of this task, with these features.
Result<void> CheckRouting(const nn::SafetensorsFile& file);

// `path`: a checkpoint or a run folder (CheckpointOf).
Result<std::unique_ptr<RoutingPolicy>> LoadNeuralRouting(const std::filesystem::path& path);

// The rule that decides in place of what was learned, as MakeRoutingRule reads it; "" for none.
Result<std::string> RoutingStepsBackTo(const std::filesystem::path& path);

// Of one: what was found on validation episodes, in a line; "" before.
Result<std::string> RoutingVerdictOf(const std::filesystem::path& path);

}  // namespace rudderfish
