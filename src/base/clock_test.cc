// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using std::chrono::milliseconds;

TEST(SystemClock, NeverGoesBack) {
  const SystemClock clock;
  Instant last = clock.Now();
  for (int i = 0; i < 1000; ++i) {
    const Instant now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ManualClock, MovesOnlyWhenAdvanced) {
  ManualClock clock(Instant(milliseconds(5)));
  EXPECT_EQ(clock.Now(), Instant(milliseconds(5)));
  clock.Advance(milliseconds(20));
  EXPECT_EQ(clock.Now() - Instant(milliseconds(5)), milliseconds(20));
  EXPECT_DOUBLE_EQ(Seconds(clock.Now().time_since_epoch()), 0.025);
}

TEST(ManualClockDeathTest, RefusesToGoBack) {
  ManualClock clock;
  EXPECT_DEATH(clock.Advance(Duration(-1)), "CHECK failed");
}

}  // namespace
}  // namespace rudderfish
