// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "run/capacity.h"

// What the capacity of a region is made of: VMs of a cloud, or pods of a Deployment. A part of
// run/capacity.cc. One thread.

namespace rudderfish {

class CapacitySource {
 public:
  virtual ~CapacitySource() = default;

  // Looks, without changing anything. `aim`: how many there are to be; none: that is not decided.
  virtual Result<CapacitySight> Look(std::optional<int> aim) = 0;

  // Does what the last Look has found to be missing to `aim`, the same as there.
  virtual Result<void> Carry(int aim) = 0;
};

// `is_ending`: no further request begins once it is true. All outlive the source.
std::unique_ptr<CapacitySource> MakeCapacitySource(const CapacityConfig& config, const Clock* clock,
                                                   const std::atomic<bool>* is_ending);

}  // namespace rudderfish
