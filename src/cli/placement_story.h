// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "control/journal_reader.h"

// What is known of pods that were placed, or wait. Pure functions of what was kept, or of a running
// controller's answer; for decisions of all kinds: cli/decision_list.h.

namespace rudderfish {

// Why the pod is where it is, and where our policy would have put it.
Result<std::string> ComparisonStory(const StoredComparison& stored, UnixMillis now);
OrderedJson ComparisonDetails(const StoredComparison& stored);

// Of a pod that we have placed, or that waits for us.
std::string PlacementStory(const StoredPlacement& stored, UnixMillis now);
OrderedJson PlacementDetails(const StoredPlacement& stored);

// Why a pod waits, nodes grouped by reason: `pending` of a controller's answer.
std::string PendingStoryText(const OrderedJson& pending);

// Who gives nodes to the pods that name us: of a controller's status, which has a `standing`.
std::string DeciderText(const OrderedJson& status);

}  // namespace rudderfish
