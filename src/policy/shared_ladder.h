// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model/capacity_ladder.h"

// The ladders of the applications that were last asked about: many policies of one application
// need the same one, and making it takes longer than many of their decisions.

namespace rudderfish {

// Any thread may ask; equal applications get the same ladder. `late_max`: as CapacityLadder takes
// it.
std::shared_ptr<const CapacityLadder> SharedLadder(const ServedApplication& application,
                                                   double late_max);

}  // namespace rudderfish
