// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/state.h"
#include "control/journal.h"
#include "model/latency.h"

// Why a decision was taken, in words: what it changes in the calls of the workload it moves, by the
// Model, and how that compares with what a step costs. Pure functions.

namespace rudderfish {

inline constexpr double kVisibleMs = 0.05;  // Less than this reads as 0.0.

// One thing that a move changes, averaged over the pods that call and are called.
struct Effect {
  double change_ms = 0;  // Below 0 is good.
  std::string text;      // "detection to machine-learning is 39.2 ms nearer".
};

// The effects of a move that can be seen in tenths of a millisecond, the largest first.
std::vector<Effect> EffectsOf(const State& state, const LatencyLaw& law, const Migrate& move);

// What a policy goes by; it says why a move is made that wins less than its step costs.
enum class Motive { kLatency, kOwnScore, kChance };

// The move that was chosen, in a sentence.
std::string WhyMove(const JournalRow& row, const std::vector<Effect>& effects, Motive motive);

// Why the plan ends here. `step_cost_ms` is what one step more would have cost.
std::string WhyStop(const JournalRow& row, double step_cost_ms, Motive motive);

}  // namespace rudderfish
