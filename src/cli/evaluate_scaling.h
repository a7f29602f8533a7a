// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"

// `evaluate --task scale`: policies of scaling on the loads of a scenario, judged by the event
// simulator.

namespace rudderfish {

Result<ExitStatus> EvaluateScalingPolicies(const Arguments& arguments, const Session& session);

}  // namespace rudderfish
