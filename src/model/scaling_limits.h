// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "model/served_application.h"

// What bounds the scaling of an application as a whole (ServedApplication::limits), kept whoever
// scales: what is asked for beyond it is mended, always in the same way.

namespace rudderfish {

// Of one run. Allocates nothing. One thread.
class LimitKeeper {
 public:
  // REQUIRES: it outlives the keeper.
  explicit LimitKeeper(const ServedApplication& application) : application_(&application) {}

  // Mends `wanted` [workload] where that is more than the quota: pods that were to come stay away,
  // one at a time, of the workload that was to get most of them. Nobody goes for it. While it cools
  // down, nothing changes. At times that do not run backwards.
  void Mend(double at_s, std::span<const int> now, std::span<int> wanted);

 private:
  const ServedApplication* application_;
  bool has_changed_ = false;
  double changed_at_s_ = 0;
};

}  // namespace rudderfish
