// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "scenario/scenario.h"

// Calibrating a policy that routes.

namespace rudderfish {

// `calibrate` in a scenario of regions.
Result<ExitStatus> CalibrateRoutingPolicy(const Scenario& scenario, const Arguments& arguments,
                                          const Session& session);

}  // namespace rudderfish
