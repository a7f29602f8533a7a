// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenario/scenario.h"

// A scenario of another size with everything else alike. Training a part of the environments on a
// multiple of the scenario's own size teaches a policy what stays the same when a cluster grows
// (docs/decisions/0006).

namespace rudderfish {

// `factor` times the nodes of every group whose layer accepts moves, and `factor` times the
// replicas a movable workload may have at most; the least stays. REQUIRES: factor >= 1, and the
// result within the bounds of scenario.h.
Scenario Scaled(const Scenario& scenario, int factor);

}  // namespace rudderfish
