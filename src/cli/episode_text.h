// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cluster/state.h"
#include "control/controller.h"
#include "control/journal.h"

// One episode as `simulate` tells it, decision by decision, and as JSON.

namespace rudderfish {

// A row of the journal with what explains it.
struct ExplainedStep {
  JournalRow row;
  double next_step_cost_ms = 0;  // What a step costs here, also where none was taken.
  std::string reason;
};

struct Episode {
  std::string scenario, law, policy;
  uint64_t seed = 0;
  int start = 0;  // Its line in the file, or its number among those drawn with the seed.
  std::string starts_file;
  State initial, final;
  Terms initial_terms, final_terms;
  std::vector<ExplainedStep> steps;
  TurnResult ending = TurnResult::kStopped;
  bool has_scores = false;  // Of the policy's own, that say more than gains.
};

// "0:05:00": since the beginning of an episode.
std::string EpisodeClock(double at_s);

std::string EpisodeHead(const Episode& episode);
std::string StepText(const Episode& episode, const ExplainedStep& step);
std::string EpisodeFoot(const Episode& episode);

// schema_version 1.
std::string EpisodeJson(const Episode& episode);

}  // namespace rudderfish
