// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "scenario/scenario.h"

// `simulate --task route`: one episode of a policy that routes, told decision by decision.

namespace rudderfish {

Result<ExitStatus> SimulateRouting(const Scenario& scenario, const Arguments& arguments);

}  // namespace rudderfish
