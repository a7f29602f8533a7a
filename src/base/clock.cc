// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include "base/check.h"

namespace rudderfish {

void ManualClock::Advance(Duration by) {
  CHECK_GE(by.count(), 0);
  now_ += by;
}

}  // namespace rudderfish
