// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/sqlite_journal.h"

// What the journal says, for people and as JSON: `decisions` lists rows, `explain` tells one. Pure
// functions of what was kept.

namespace rudderfish {

enum class Width { kNormal, kWide };

// "12s", "3m", "2h", "5d".
std::string Age(UnixMillis at, UnixMillis now);

// Columns NUMBER AGE APPLICATION POD FROM TO GAIN FATE, and more if wide.
std::string DecisionTable(std::span<const StoredRow> rows, UnixMillis now, Width width);
std::string DecisionsJson(std::span<const StoredRow> rows);

// One decision with its reasons. `pod` is who was asked about, and may be another of the same
// workload than the one that was chosen or considered.
std::string DecisionStory(const StoredRow& row, std::string_view pod, UnixMillis now);
std::string DecisionJson(const StoredRow& row);

// Why the move is made, by the terms of the Model: "network 20.1 ms less, execution 2.0 ms more".
std::string TermChanges(const Terms& before, const Terms& after);

}  // namespace rudderfish
