// SPDX-License-Identifier: Apache-2.0
#include "base/timestamp.h"

#include <fmt/format.h>

namespace rudderfish {
namespace {

// Takes `digits` digits from the front of `text`.
std::optional<int> TakeNumber(std::string_view* text, size_t digits) {
  if (text->size() < digits) return std::nullopt;
  int number = 0;
  for (size_t i = 0; i < digits; ++i) {
    const char c = (*text)[i];
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  text->remove_prefix(digits);
  return number;
}

bool Take(std::string_view* text, char wanted) {
  if (!text->starts_with(wanted)) return false;
  text->remove_prefix(1);
  return true;
}

// Microseconds of ".782687": further digits are dropped.
std::optional<int> TakeFraction(std::string_view* text) {
  int micros = 0, place = 100'000, digits = 0;
  while (!text->empty() && text->front() >= '0' && text->front() <= '9') {
    micros += (text->front() - '0') * place;
    place /= 10;
    ++digits;
    text->remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  return micros;
}

// "Z" or "+01:00", to the end.
std::optional<std::chrono::minutes> TakeOffset(std::string_view text) {
  if (text == "Z" || text == "z") return std::chrono::minutes(0);
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return std::nullopt;
  const int sign = text.front() == '-' ? -1 : 1;
  text.remove_prefix(1);
  const auto hours = TakeNumber(&text, 2);
  if (!hours || !Take(&text, ':')) return std::nullopt;
  const auto minutes = TakeNumber(&text, 2);
  if (!minutes || !text.empty() || *hours > 23 || *minutes > 59) return std::nullopt;
  return std::chrono::minutes(sign * (*hours * 60 + *minutes));
}

}  // namespace

Date Today() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

std::string ToMicroTime(Date date) {
  const auto day = std::chrono::floor<std::chrono::days>(date);
  const std::chrono::year_month_day ymd(day);
  const std::chrono::hh_mm_ss time(date - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(ymd.year()),
                     static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

std::optional<Date> ParseDate(std::string_view text) {
  const auto year = TakeNumber(&text, 4);
  if (!year || !Take(&text, '-')) return std::nullopt;
  const auto month = TakeNumber(&text, 2);
  if (!month || !Take(&text, '-')) return std::nullopt;
  const auto day = TakeNumber(&text, 2);
  if (!day || !(Take(&text, 'T') || Take(&text, 't'))) return std::nullopt;
  const auto hour = TakeNumber(&text, 2);
  if (!hour || !Take(&text, ':')) return std::nullopt;
  const auto minute = TakeNumber(&text, 2);
  if (!minute || !Take(&text, ':')) return std::nullopt;
  const auto second = TakeNumber(&text, 2);
  if (!second) return std::nullopt;
  int micros = 0;
  if (Take(&text, '.')) {
    const auto fraction = TakeFraction(&text);
    if (!fraction) return std::nullopt;
    micros = *fraction;
  }
  const auto offset = TakeOffset(text);
  const std::chrono::year_month_day ymd{std::chrono::year(*year), std::chrono::month(*month),
                                        std::chrono::day(*day)};
  if (!offset || !ymd.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return Date(std::chrono::sys_days(ymd)) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + std::chrono::seconds(*second) +
         std::chrono::microseconds(micros) - *offset;
}

}  // namespace rudderfish
