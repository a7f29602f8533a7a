// SPDX-License-Identifier: Apache-2.0
#include "base/cron.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
namespace chrono = std::chrono;

UnixMillis At(int year, unsigned month, unsigned day, int hour, int minute, int second = 0) {
  const chrono::sys_days date{chrono::year(year) / chrono::month(month) / chrono::day(day)};
  return chrono::milliseconds(date.time_since_epoch() + chrono::hours(hour) +
                              chrono::minutes(minute) + chrono::seconds(second))
      .count();
}

bool Holds(std::string_view schedule, UnixMillis at) {
  return CronSchedule::Parse(schedule).value().Holds(at);
}

TEST(Cron, HoldsAtItsMinutes) {
  const UnixMillis thursday = At(2026, 11, 26, 22, 15, 59);
  EXPECT_TRUE(Holds("* * * * *", thursday));
  EXPECT_TRUE(Holds("15 22 * * *", thursday));
  EXPECT_FALSE(Holds("16 22 * * *", thursday));
  EXPECT_TRUE(Holds("*/5 20-23 * * *", thursday));
  EXPECT_FALSE(Holds("*/10 * * * *", thursday));
  EXPECT_TRUE(Holds("5/10 * * * *", thursday));
  EXPECT_TRUE(Holds("0,15,30 * * NOV Thu", thursday));
  EXPECT_TRUE(Holds("15 22 26 11 *", thursday));
  EXPECT_FALSE(Holds("15 22 25 11 *", thursday));
  EXPECT_FALSE(Holds("15 22 * dec *", thursday));
  EXPECT_TRUE(Holds("15 22 * * mon-fri", thursday));
  EXPECT_FALSE(Holds("15 22 * * 6,7", thursday));
  EXPECT_TRUE(Holds("@hourly", At(2026, 11, 26, 7, 0)));
  EXPECT_TRUE(Holds("@weekly", At(2026, 11, 29, 0, 0)));
  EXPECT_TRUE(Holds("0 0 * * 7", At(2026, 11, 29, 0, 0)));
  EXPECT_TRUE(Holds("0 0 29 2 *", At(2028, 2, 29, 0, 0)));
  EXPECT_TRUE(Holds("15 22 * * *", At(1969, 12, 31, 22, 15)));
}

// crontab(5): where both days are restricted, one of them is enough.
TEST(Cron, EitherDayIsEnoughWhereBothAreRestricted) {
  EXPECT_TRUE(Holds("0 0 1 * thu", At(2026, 11, 26, 0, 0)));
  EXPECT_TRUE(Holds("0 0 1 * thu", At(2026, 12, 1, 0, 0)));
  EXPECT_FALSE(Holds("0 0 1 * thu", At(2026, 12, 2, 0, 0)));
}

TEST(Cron, RefusesWhatCannotBeRead) {
  for (const char* wrong :
       {"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *",
        "* * * * 8", "a * * * *", "*/0 * * * *", "5-1 * * * *", "1, * * * *", "-1 * * * *",
        "1-2-3 * * * *", "* * * janu *", "@never", "1//2 * * * *"}) {
    EXPECT_FALSE(CronSchedule::Parse(wrong)) << wrong;
  }
  EXPECT_THAT(CronSchedule::Parse("* 25 * * *").error().message, HasSubstr("the hour `25`"));
}

TEST(TimeWindow, IsOpenFromItsScheduleForItsDuration) {
  const std::vector<TimeWindow> nights = {
      {CronSchedule::Parse("0 22 * * mon-fri").value(), chrono::hours(8)}};
  EXPECT_FALSE(IsOpen(nights, At(2026, 11, 26, 21, 59, 59)));
  EXPECT_TRUE(IsOpen(nights, At(2026, 11, 26, 22, 0)));
  EXPECT_TRUE(IsOpen(nights, At(2026, 11, 27, 5, 59, 59)));
  EXPECT_FALSE(IsOpen(nights, At(2026, 11, 27, 6, 0)));
  EXPECT_TRUE(IsOpen(nights, At(2026, 11, 28, 5, 0))) << "Friday's night ends on Saturday";
  EXPECT_FALSE(IsOpen(nights, At(2026, 11, 28, 23, 0)));
  EXPECT_EQ(NextOpening(nights, At(2026, 11, 28, 23, 0)), At(2026, 11, 30, 22, 0));
  EXPECT_TRUE(IsOpen({}, 0));
}

TEST(TimeWindow, ThatNeverOpensHasNoNextOpening) {
  const std::vector<TimeWindow> never = {
      {CronSchedule::Parse("0 0 30 2 *").value(), chrono::hours(1)}};
  EXPECT_FALSE(IsOpen(never, At(2026, 3, 1, 0, 30)));
  EXPECT_EQ(NextOpening(never, At(2026, 3, 1, 0, 30)), 0);
}

}  // namespace
}  // namespace rudderfish
