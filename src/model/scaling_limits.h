// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "model/served_application.h"

// What bounds the scaling of an application as a whole (ServedApplication::limits), under every
// policy: replicas asked for beyond it are corrected, always in the same way.

namespace rudderfish {

// Of one run. Allocates nothing. One thread.
class LimitKeeper {
 public:
  // REQUIRES: it outlives the keeper.
  explicit LimitKeeper(const ServedApplication& application) : application_(&application) {}

  // Lowers `wanted` [workload] where it exceeds the quota: leaves out new pods, one at a time, of
  // the workload that was to get most of them. Removes no existing pods for it. While it cools
  // down, nothing changes. `at_s` must not decrease.
  void Mend(double at_s, std::span<const int> now, std::span<int> wanted);

 private:
  const ServedApplication* application_;
  bool has_changed_ = false;
  double changed_at_s_ = 0;
};

}  // namespace rudderfish
