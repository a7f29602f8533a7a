// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "control/journal_reader.h"

// What the journal says of moves, for people and as JSON. Pure functions of what was kept; for
// decisions of all kinds: cli/decision_list.h.

namespace rudderfish {

// "12s", "3m", "2h", "5d".
std::string Age(UnixMillis at, UnixMillis now);

// One decision with its reasons. `pod` is who was asked about, and may be another of the same
// workload than the one that was chosen or considered.
std::string MoveStory(const StoredRow& row, std::string_view pod, UnixMillis now);
OrderedJson MoveDetails(const StoredRow& row);

// Pods that only the guard kept from being moved, in short; empty: none.
std::string WhyHeld(const JournalRow& row);

// Why the move is made, by the terms of the Model: "network 20.1 ms less, execution 2.0 ms more".
std::string TermChanges(const Terms& before, const Terms& after);

}  // namespace rudderfish
