// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/journal_reader.h"

// Decisions of all kinds, for people and as JSON: `decisions` lists them, `explain` tells one. Pure
// functions of what was kept.

namespace rudderfish {

enum class Width { kNormal, kWide };

// Columns NUMBER AGE KIND MODE SUBJECT FROM CHOSEN BASELINE GAIN MEASURED VERDICT FATE, and more if
// wide.
std::string DecisionTable(std::span<const StoredDecision> rows, UnixMillis now, Width width);

// Each has number, written_at, kind, mode, subject, policy, from_node, chosen_node,
// baseline_choice_node, gain, verdict, fate and failure, and what its kind adds.
std::string DecisionsJson(std::span<const StoredDecision> rows);

// The subject of each: pod/NAME, application/NAME, route/NAME.
std::vector<std::string> DecisionNames(std::span<const StoredDecision> rows);

// One with its reasons. `pod` is who was asked about, and may be another of the same workload than
// the one that was chosen or considered.
Result<std::string> DecisionStory(const StoredDecision& decision, std::string_view pod,
                                  UnixMillis now);
Result<std::string> DecisionJson(const StoredDecision& decision);

}  // namespace rudderfish
