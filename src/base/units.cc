// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "base/check.h"

namespace rudderfish {
namespace {

using Wide = __int128;

// digits * 10^exponent, digits < 10^19.
struct Decimal {
  uint64_t digits = 0;
  int exponent = 0;
};

// A unit is worth `factor` * 10^`tens` of what the parser counts in.
struct Unit {
  std::string_view name;
  int64_t factor = 1;
  int tens = 0;
};

constexpr int64_t kKi = 1024;

constexpr Unit kCpuUnits[] = {{"n", 1, -6}, {"u", 1, -3}, {"m", 1, 0},
                              {"", 1, 3},   {"k", 1, 6},  {"M", 1, 9}};

constexpr Unit kMemoryUnits[] = {{"n", 1, -9},
                                 {"u", 1, -6},
                                 {"m", 1, -3},
                                 {"", 1, 0},
                                 {"k", 1, 3},
                                 {"M", 1, 6},
                                 {"G", 1, 9},
                                 {"T", 1, 12},
                                 {"P", 1, 15},
                                 {"E", 1, 18},
                                 {"Ki", kKi},
                                 {"Mi", kKi* kKi},
                                 {"Gi", kKi* kKi* kKi},
                                 {"Ti", kKi* kKi* kKi* kKi},
                                 {"Pi", kKi* kKi* kKi* kKi* kKi},
                                 {"Ei", kKi* kKi* kKi* kKi* kKi* kKi}};

constexpr Unit kDurationUnits[] = {{"ns", 1, -6}, {"us", 1, -3}, {"µs", 1, -3},  {"ms", 1, 0},
                                   {"s", 1, 3},   {"m", 60, 3},  {"min", 60, 3}, {"h", 3600, 3}};

constexpr Unit kDataSizeUnits[] = {
    {"B", 1, 0},       {"kB", 1, 3},           {"MB", 1, 6},
    {"GB", 1, 9},      {"TB", 1, 12},          {"KiB", kKi},
    {"MiB", kKi* kKi}, {"GiB", kKi* kKi* kKi}, {"TiB", kKi* kKi* kKi* kKi}};

// In 10^6 bytes a second: 8 bits are a byte, hence 125 * 10^-3.
constexpr Unit kBandwidthUnits[] = {{"bit", 125, -9},
                                    {"kbit", 125, -6},
                                    {"Mbit", 125, -3},
                                    {"Gbit", 125, 0},
                                    {"Tbit", 125, 3},
                                    {"B", 1, -6},
                                    {"kB", 1, -3},
                                    {"MB", 1, 0},
                                    {"GB", 1, 3},
                                    {"TB", 1, 6},
                                    {"KiB", kKi, -6},
                                    {"MiB", kKi* kKi, -6},
                                    {"GiB", kKi* kKi* kKi, -6},
                                    {"TiB", kKi* kKi* kKi* kKi, -6},
                                    {"bps", 125, -9},
                                    {"kbps", 125, -6},
                                    {"Mbps", 125, -3},
                                    {"Gbps", 125, 0},
                                    {"Tbps", 125, 3}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Splits the number off the front of `text`; what is left is its unit. nullopt: no number, or one
// of more than 19 significant digits.
std::optional<Decimal> TakeNumber(std::string_view* text) {
  Decimal number;
  size_t at = 0;
  int significant = 0;
  bool any = false;
  bool fraction = false;
  int zeros =
      0;  // Seen, but counted only once another digit follows: 1.500 has two significant digits.
  for (; at < text->size(); ++at) {
    const char c = (*text)[at];
    if (c == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (!IsDigit(c)) break;
    any = true;
    if (fraction) --number.exponent;
    if (c == '0') {
      zeros += significant > 0 ? 1 : 0;
      continue;
    }
    significant += zeros + 1;
    if (significant > 19) return std::nullopt;
    for (; zeros > 0; --zeros) number.digits *= 10;
    number.digits = number.digits * 10 + static_cast<uint64_t>(c - '0');
  }
  if (!any) return std::nullopt;
  number.exponent += zeros;
  // "2E" is two exa-units and "2E3" two thousand: an exponent has digits.
  size_t end = at;
  if (end < text->size() && ((*text)[end] == 'e' || (*text)[end] == 'E')) {
    ++end;
    const bool negative = end < text->size() && (*text)[end] == '-';
    if (end < text->size() && ((*text)[end] == '-' || (*text)[end] == '+')) ++end;
    int exponent = 0;
    const size_t first = end;
    for (; end < text->size() && IsDigit((*text)[end]); ++end) {
      exponent = std::min(exponent * 10 + ((*text)[end] - '0'), 1000);
    }
    if (end > first) {
      number.exponent += negative ? -exponent : exponent;
      at = end;
    }
  }
  text->remove_prefix(at);
  return number;
}

std::string ListOf(std::span<const Unit> units) {
  std::string list;
  for (const Unit& unit : units) {
    if (!list.empty()) list += ' ';
    list += unit.name.empty() ? "(none)" : unit.name;
  }
  return list;
}

struct Quantity {
  Decimal number;
  Unit unit;
};

Result<Quantity> Split(std::string_view text, std::string_view what, std::span<const Unit> units) {
  std::string_view rest = text;
  const std::optional<Decimal> number = TakeNumber(&rest);
  if (!number) {
    return Invalid(
        "expected {} (a number of at most 19 digits and one of the units {}), found \"{}\"", what,
        ListOf(units), text);
  }
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name == rest) return Quantity{*number, unit};
  }
  if (rest.empty()) {
    return Invalid("\"{}\" lacks a unit: {} is given in {}", text, what, ListOf(units));
  }
  return Invalid("unknown unit \"{}\" in \"{}\": {} is given in {}", rest, text, what,
                 ListOf(units));
}

std::optional<Wide> PowerOfTen(int exponent) {
  if (exponent > 37) return std::nullopt;
  Wide power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

// Exact, then rounded once. nullopt: beyond int64_t.
std::optional<int64_t> ToInteger(const Quantity& quantity, Rounding rounding) {
  Wide value = static_cast<Wide>(quantity.number.digits) * quantity.unit.factor;
  if (value == 0) return 0;
  const int tens = quantity.number.exponent + quantity.unit.tens;
  const std::optional<Wide> power = PowerOfTen(std::abs(tens));
  if (tens < 0) {
    if (!power) return rounding == Rounding::kUp ? 1 : 0;  // value < 10^38.
    value = value / *power + (rounding == Rounding::kUp && value % *power != 0 ? 1 : 0);
  } else if (!power || __builtin_mul_overflow(value, *power, &value)) {
    return std::nullopt;
  }
  if (value > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return static_cast<int64_t>(value);
}

// The double nearest to the number as written; one rounding more if its unit has a factor. nullopt:
// infinite.
std::optional<double> ToDouble(const Quantity& quantity) {
  const std::string shifted =
      fmt::format("{}e{}", quantity.number.digits, quantity.number.exponent + quantity.unit.tens);
  double value = 0;
  const auto parsed = std::from_chars(shifted.data(), shifted.data() + shifted.size(), value);
  // Too small to represent is zero to all who count in these units.
  if (parsed.ec == std::errc::result_out_of_range && quantity.number.exponent < 0) return 0.0;
  value *= static_cast<double>(quantity.unit.factor);
  if (parsed.ec != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return value;
}

Result<int64_t> ParseInteger(std::string_view text, std::string_view what,
                             std::span<const Unit> units, Rounding rounding) {
  TRY_ASSIGN(const Quantity quantity, Split(text, what, units));
  const std::optional<int64_t> value = ToInteger(quantity, rounding);
  if (!value) return Invalid("\"{}\" is too large for {}", text, what);
  return *value;
}

Result<double> ParseDouble(std::string_view text, std::string_view what,
                           std::span<const Unit> units) {
  TRY_ASSIGN(const Quantity quantity, Split(text, what, units));
  const std::optional<double> value = ToDouble(quantity);
  if (!value) return Invalid("\"{}\" is too large for {}", text, what);
  return *value;
}

// 1.23, 12.3, 123, 1023.
std::string Digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string WithPrefix(double value, double step, std::span<const std::string_view> prefixes) {
  size_t prefix = 0;
  while (prefix + 1 < prefixes.size() && value >= step - 0.5) {
    value /= step;
    ++prefix;
  }
  const std::string digits =
      value == std::floor(value) ? fmt::format("{:.0f}", value) : Digits(value);
  return fmt::format("{}{}", digits, prefixes[prefix]);
}

}  // namespace

Result<int64_t> ParseCpuMillis(std::string_view text, Rounding rounding) {
  return ParseInteger(text, "an amount of CPU", kCpuUnits, rounding);
}

Result<int64_t> ParseMemoryBytes(std::string_view text, Rounding rounding) {
  return ParseInteger(text, "an amount of memory", kMemoryUnits, rounding);
}

Result<double> ParseDurationMs(std::string_view text) {
  return ParseDouble(text, "a duration", kDurationUnits);
}

Result<double> ParseBandwidthMbytesPerS(std::string_view text) {
  std::string_view amount = text;
  if (amount.ends_with("/s")) amount.remove_suffix(2);
  return ParseDouble(amount, "a bandwidth", kBandwidthUnits);
}

Result<double> ParseDataSizeBytes(std::string_view text) {
  return ParseDouble(text, "an amount of data", kDataSizeUnits);
}

std::string FormatMillis(int64_t cpu_millis) {
  CHECK_GE(cpu_millis, 0);
  return cpu_millis % 1000 == 0 ? fmt::format("{}", cpu_millis / 1000)
                                : fmt::format("{}m", cpu_millis);
}

std::string FormatMemoryQuantity(int64_t bytes) {
  CHECK_GE(bytes, 0);
  constexpr std::array<std::string_view, 7> kSuffixes = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  size_t suffix = 0;
  while (bytes != 0 && bytes % kKi == 0 && suffix + 1 < kSuffixes.size()) {
    bytes /= kKi;
    ++suffix;
  }
  return fmt::format("{}{}", bytes, kSuffixes[suffix]);
}

std::string FormatBytes(int64_t bytes) {
  constexpr std::array<std::string_view, 7> kPrefixes = {" B",   " KiB", " MiB", " GiB",
                                                         " TiB", " PiB", " EiB"};
  const double size = static_cast<double>(bytes);
  return (bytes < 0 ? "-" : "") + WithPrefix(std::fabs(size), 1024, kPrefixes);
}

namespace {

// "2 h 5 min"; "2 h" where nothing is left over.
std::string InTwoUnits(int64_t count, int64_t per_unit, std::string_view unit,
                       std::string_view smaller) {
  const std::string whole = fmt::format("{} {}", count / per_unit, unit);
  const int64_t rest = count % per_unit;
  return rest == 0 ? whole : fmt::format("{} {} {}", whole, rest, smaller);
}

}  // namespace

std::string FormatDuration(Duration duration) {
  if (duration < Duration::zero()) {
    if (duration == Duration::min()) duration += Duration(1);
    return "-" + FormatDuration(-duration);
  }
  using namespace std::chrono_literals;
  if (duration < 59.5s) {
    constexpr std::array<std::string_view, 4> kPrefixes = {" ns", " us", " ms", " s"};
    return WithPrefix(static_cast<double>(duration.count()), 1000, kPrefixes);
  }
  const int64_t seconds = (duration + 500ms) / 1s;
  if (seconds < 3600) return InTwoUnits(seconds, 60, "min", "s");
  const int64_t minutes = (duration + 30s) / 1min;
  if (minutes < 48 * 60) return InTwoUnits(minutes, 60, "h", "min");
  const int64_t hours = (duration + 30min) / 1h;
  return InTwoUnits(hours, 24, "d", "h");
}

std::string FormatCount(double count) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"", " k", " M", " G", " T"};
  if (!std::isfinite(count)) return fmt::format("{}", count);
  const double size = std::fabs(count);
  if (size < 999.5 && size == std::floor(size)) return fmt::format("{}", count);
  return (count < 0 ? "-" : "") + WithPrefix(size, 1000, kPrefixes);
}

}  // namespace rudderfish
