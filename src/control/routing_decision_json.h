// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "control/routing_decision.h"

// A decision about a route as JSON, in one line: what is kept on disk and what `-o json` shows.
// docs/journal.md names the fields.

namespace rudderfish {

std::string ToJson(const RoutingDecision& decision);

// `source_name` is what messages call it. Unknown fields are left alone.
Result<RoutingDecision> RoutingDecisionFrom(std::string_view json, std::string_view source_name);

}  // namespace rudderfish
