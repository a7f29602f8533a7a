// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "scenario/scenario.h"

// `evaluate` of policies that route requests to regions.

namespace rudderfish {

// REQUIRES: the scenario has regions.
Result<ExitStatus> EvaluateRoutingPolicies(const Scenario& scenario, const Arguments& arguments,
                                           const Session& session);

}  // namespace rudderfish
