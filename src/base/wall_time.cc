// SPDX-License-Identifier: Apache-2.0
#include "base/wall_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace rudderfish {
namespace {

constexpr UnixMillis kDayMs = 86'400'000;
constexpr UnixMillis kLastDay = 2'932'896;  // 9999-12-31

struct Broken {
  int year;
  unsigned month, day;
  int64_t hour, minute, second, millis;
};

Broken Break(UnixMillis at) {
  const UnixMillis within = std::clamp<UnixMillis>(at, 0, (kLastDay + 1) * kDayMs - 1);
  const std::chrono::year_month_day date(std::chrono::sys_days(std::chrono::days(within / kDayMs)));
  const UnixMillis rest = within % kDayMs;
  return {static_cast<int>(date.year()),
          static_cast<unsigned>(date.month()),
          static_cast<unsigned>(date.day()),
          rest / 3'600'000,
          rest / 60'000 % 60,
          rest / 1000 % 60,
          rest % 1000};
}

}  // namespace

UnixMillis UnixNow() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

std::string DateAndTime(UnixMillis at) {
  const Broken b = Break(at);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", b.year, b.month, b.day, b.hour,
                     b.minute, b.second);
}

std::string Rfc3339(UnixMillis at) {
  const Broken b = Break(at);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", b.year, b.month, b.day, b.hour,
                     b.minute, b.second, b.millis);
}

}  // namespace rudderfish
