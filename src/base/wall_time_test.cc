// SPDX-License-Identifier: Apache-2.0
#include "base/wall_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace rudderfish {
namespace {

TEST(WallTime, DatesAreUtc) {
  EXPECT_EQ(DateAndTime(0), "1970-01-01 00:00:00");
  EXPECT_EQ(Rfc3339(1'582'934'399'999), "2020-02-28T23:59:59.999Z");
  EXPECT_EQ(Rfc3339(1'582'934'400'000), "2020-02-29T00:00:00.000Z");
}

TEST(WallTime, WhatIsNoDateIsTheNearestOne) {
  EXPECT_EQ(DateAndTime(-5), "1970-01-01 00:00:00");
  EXPECT_EQ(DateAndTime(std::numeric_limits<int64_t>::max()), "9999-12-31 23:59:59");
}

TEST(WallTime, NowIsAfterThisWasWritten) { EXPECT_GT(UnixNow(), 1'700'000'000'000); }

}  // namespace
}  // namespace rudderfish
