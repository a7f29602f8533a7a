// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/wall_time.h"

// When something may happen, by the clock of the wall, in UTC: schedules as Kubernetes' CronJobs
// have them, and windows that such a schedule opens, as Karpenter's disruption budgets have them.
// Plain values.

namespace rudderfish {

// Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @midnight, @weekly,
// @monthly, @yearly, @annually. A field is *, N, A-B, either of the latter two or * with /STEP, or
// a list of these with commas. Months and days of the week may be names of three letters; Sunday is
// 0 or 7. Where both days are restricted, one of them must fit (crontab(5)).
class CronSchedule {
 public:
  // kInvalidArgument says which field is wrong.
  static Result<CronSchedule> Parse(std::string_view text);

  // Whether the minute that begins at or before `at` is one of the schedule's.
  bool Holds(UnixMillis at) const;

  bool operator==(const CronSchedule&) const = default;

 private:
  std::array<uint64_t, 5> fields_{};  // A bit for each value.
  bool any_day_ = false;              // Of the month and the week: one of them is not restricted.
};

struct TimeWindow {
  CronSchedule schedule;             // When it opens.
  std::chrono::minutes duration{0};  // How long it is open; 1 minute to 7 days.

  bool operator==(const TimeWindow&) const = default;
};

inline constexpr std::chrono::minutes kLongestTimeWindow = std::chrono::hours(24 * 7);

// No windows: always.
bool IsOpen(const std::vector<TimeWindow>& windows, UnixMillis at);

// The beginning of the next minute at which one opens, within the next 366 days; 0: none does.
UnixMillis NextOpening(const std::vector<TimeWindow>& windows, UnixMillis at);

}  // namespace rudderfish
