// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "scenario/region_world.h"

// Whether limits can be kept at all, asked before hours of search.

namespace rudderfish {

// kFailedPrecondition, with the least that was reached, for a limit that none of some settings
// comes near, which do nothing but keep it: nodes a quarter in use against late requests, full ones
// where power is clean against carbon, and cheap ones against dollars. Takes a second or two.
// `variants`: positions in RegionWorld::variants.
Result<void> CheckLimits(const std::shared_ptr<const RegionWorld>& world,
                         const std::vector<int>& variants, ThreadPool* pool);

}  // namespace rudderfish
