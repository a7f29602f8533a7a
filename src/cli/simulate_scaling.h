// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "scenario/scenario.h"

// `simulate --task scale`: one episode of a policy that scales, told decision by decision.

namespace rudderfish {

Result<ExitStatus> SimulateScaling(const Scenario& scenario, const Arguments& arguments,
                                   const Session& session);

}  // namespace rudderfish
