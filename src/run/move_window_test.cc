// SPDX-License-Identifier: Apache-2.0
#include "run/move_window.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

constexpr UnixMillis kMinute = 60'000, kHour = 60 * kMinute;

TEST(MoveWindow, OpensByItsScheduleAndSaysWhenItDoesSoNext) {
  const std::vector<TimeWindow> windows = {
      {CronSchedule::Parse("0 2 * * *").value(), std::chrono::hours(1)}};
  MoveWindow window;
  EXPECT_TRUE(window.IsOpen({}, 0));
  EXPECT_TRUE(window.Status({}, 0).is_null());
  EXPECT_FALSE(window.IsOpen(windows, kHour));
  EXPECT_FALSE(window.Status(windows, kHour)["open"].get<bool>());
  EXPECT_EQ(window.Status(windows, kHour)["opens"], "1970-01-01T02:00:00.000Z");
  EXPECT_TRUE(window.IsOpen(windows, 2 * kHour + kMinute));
  EXPECT_EQ(window.Status(windows, 2 * kHour)["opens"], "1970-01-02T02:00:00.000Z");
  EXPECT_FALSE(window.IsOpen(windows, 3 * kHour));
}

}  // namespace
}  // namespace rudderfish
