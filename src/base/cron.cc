// SPDX-License-Identifier: Apache-2.0
#include "base/cron.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

namespace rudderfish {
namespace {

constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kMinutesAhead = int64_t{366} * 24 * 60;

constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kDays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct Field {
  std::string_view name;
  int low, high;
  std::span<const std::string_view> names;  // Of `low` and what follows.
};

constexpr Field kFields[] = {{"minute", 0, 59, {}},
                             {"hour", 0, 23, {}},
                             {"day of the month", 1, 31, {}},
                             {"month", 1, 12, kMonths},
                             {"day of the week", 0, 7, kDays}};

constexpr std::pair<std::string_view, std::string_view> kNicknames[] = {
    {"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},  {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"}};

std::optional<int> ValueOf(const Field& field, std::string_view text) {
  for (size_t i = 0; i < field.names.size(); ++i) {
    const bool is_name =
        std::equal(text.begin(), text.end(), field.names[i].begin(), field.names[i].end(),
                   [](unsigned char a, char b) { return std::tolower(a) == b; });
    if (is_name) return field.low + static_cast<int>(i);
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < field.low || value > field.high) return std::nullopt;
  return value;
}

// The bits of one of the parts that commas separate; nothing: it cannot be read.
std::optional<uint64_t> BitsOfPart(const Field& field, std::string_view part) {
  int step = 1;
  const size_t slash = part.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view text = part.substr(slash + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
    if (error != std::errc() || end != text.data() + text.size() || step < 1) return std::nullopt;
    part = part.substr(0, slash);
  }
  int low = field.low, high = field.high;
  if (part != "*") {
    const size_t dash = part.find('-');
    const std::optional<int> first = ValueOf(field, part.substr(0, dash));
    if (!first) return std::nullopt;
    low = *first;
    if (dash != std::string_view::npos) {
      const std::optional<int> last = ValueOf(field, part.substr(dash + 1));
      if (!last || *last < low) return std::nullopt;
      high = *last;
    } else if (slash == std::string_view::npos) {
      high = low;
    }
  }
  uint64_t bits = 0;
  for (int64_t value = low; value <= high; value += step) bits |= uint64_t{1} << value;
  return bits;
}

Result<uint64_t> BitsOf(const Field& field, std::string_view text) {
  uint64_t bits = 0;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    const std::optional<uint64_t> part = BitsOfPart(field, rest.substr(0, comma));
    if (!part) {
      return Fail(ErrorCode::kInvalidArgument,
                  "the {} `{}` is not a value of {} to {}, a range, "
                  "or a list of these",
                  field.name, text, field.low, field.high);
    }
    bits |= *part;
    if (comma == std::string_view::npos) return bits;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<CronSchedule> CronSchedule::Parse(std::string_view text) {
  for (const auto& [nickname, schedule] : kNicknames) {
    if (text == nickname) return Parse(schedule);
  }
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (words.size() != std::size(kFields)) {
    return Fail(ErrorCode::kInvalidArgument,
                "a schedule has 5 fields (minute, hour, day of the month, month, day of the week), "
                "or is @hourly, @daily, @weekly, @monthly or @yearly");
  }
  CronSchedule schedule;
  for (size_t i = 0; i < words.size(); ++i) {
    TRY_ASSIGN(schedule.fields_[i], BitsOf(kFields[i], words[i]));
  }
  schedule.fields_[4] |= schedule.fields_[4] >> 7 & 1;  // Sunday is 0, too.
  schedule.any_day_ = words[2].starts_with('*') || words[4].starts_with('*');
  return schedule;
}

bool CronSchedule::Holds(UnixMillis at) const {
  namespace chrono = std::chrono;
  const chrono::sys_time<chrono::milliseconds> time{chrono::milliseconds(at)};
  const auto day = chrono::floor<chrono::days>(time);
  const auto minutes = chrono::floor<chrono::minutes>(time - day).count();
  const chrono::year_month_day date(day);
  const auto has = [&](size_t field, uint64_t value) { return fields_[field] >> value & 1; };
  if (!has(0, static_cast<uint64_t>(minutes % 60)) || !has(1, static_cast<uint64_t>(minutes / 60)))
    return false;
  if (!has(3, static_cast<unsigned>(date.month()))) return false;
  const bool day_of_month = has(2, static_cast<unsigned>(date.day()));
  const bool day_of_week = has(4, chrono::weekday(day).c_encoding());
  return any_day_ ? day_of_month && day_of_week : day_of_month || day_of_week;
}

bool IsOpen(const std::vector<TimeWindow>& windows, UnixMillis at) {
  return windows.empty() ||
         std::any_of(windows.begin(), windows.end(), [&](const TimeWindow& window) {
           for (int64_t ago = 0; ago < window.duration.count(); ++ago) {
             if (window.schedule.Holds(at - ago * kMinuteMs)) return true;
           }
           return false;
         });
}

UnixMillis NextOpening(const std::vector<TimeWindow>& windows, UnixMillis at) {
  for (int64_t ahead = 1; ahead <= kMinutesAhead; ++ahead) {
    const UnixMillis then = (at / kMinuteMs + ahead) * kMinuteMs;
    for (const TimeWindow& window : windows) {
      if (window.schedule.Holds(then)) return then;
    }
  }
  return 0;
}

}  // namespace rudderfish
