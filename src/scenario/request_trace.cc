// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check.h"
#include "base/log.h"
#include "scenario/csv.h"
#include "scenario/traffic.h"

// Recorded requests: the columns of AzureLLMInferenceTrace (Azure Public Dataset); and jobs of
// clusters, whose submissions are taken as requests: pods of Alibaba's cluster-trace-gpu-v2023, and
// events of Google's ClusterData2019.

namespace rudderfish {
namespace {

constexpr std::string_view kTimestampInWords =
    "a time such as 2023-11-16 18:17:03.9799600 or 2024-05-10 00:00:00+00:00";
constexpr int64_t kMostTokens = 100'000'000;
constexpr size_t kMostBins = 10'000'000;

constexpr int64_t kMostTraceSeconds = 4'000'000'000, kNsPerS = 1'000'000'000, kNsPerUs = 1000;

enum TokenColumn { kTimestamp, kContextTokens, kGeneratedTokens };
constexpr std::string_view kTokenColumns[] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
constexpr std::string_view kCreatedColumns[] = {"creation_time"};
enum EventColumn { kEventTime, kEventType };
constexpr std::string_view kEventColumns[] = {"time", "type"};

// So many digits, as a number; none if there is anything else.
std::optional<int> DigitsAt(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return std::nullopt;
  int value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = 10 * value + (text[i] - '0');
  }
  return value;
}

// Takes "Z", "+hh:mm" or "-hh:mm" off the end: how far that is ahead of UTC, in minutes.
std::optional<int> TakeOffset(std::string_view* text) {
  if (text->ends_with('Z')) {
    text->remove_suffix(1);
    return 0;
  }
  constexpr size_t kLength = 6;  // Of "+hh:mm".
  constexpr size_t kDate = 10;   // Which has dashes, too.
  if (text->size() < kDate + kLength) return 0;
  const std::string_view end = text->substr(text->size() - kLength);
  if (end[0] != '+' && end[0] != '-') return 0;
  const auto hours = DigitsAt(end, 1, 2), minutes = DigitsAt(end, 4, 2);
  if (!hours || !minutes || end[3] != ':' || *hours > 23 || *minutes > 59) return std::nullopt;
  text->remove_suffix(kLength);
  return (end[0] == '-' ? -1 : 1) * (*hours * 60 + *minutes);
}

// YYYY-MM-DD hh:mm:ss, with up to nine decimals of the second and an offset from UTC where one is
// written, in ns since 1970.
std::optional<int64_t> TimestampNs(std::string_view text) {
  const std::optional<int> ahead_minutes = TakeOffset(&text);
  if (!ahead_minutes) return std::nullopt;
  const auto year = DigitsAt(text, 0, 4), month = DigitsAt(text, 5, 2), day = DigitsAt(text, 8, 2),
             hour = DigitsAt(text, 11, 2), minute = DigitsAt(text, 14, 2),
             second = DigitsAt(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || text[10] != ' ' || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  // Years that int64 nanoseconds hold.
  if (!date.ok() || *year < 1970 || *year > 2200 || *hour > 23 || *minute > 59 || *second > 59)
    return std::nullopt;
  int64_t fraction_ns = 0;
  if (text.size() > 19) {
    const size_t digits = text.size() - 20;
    if (text[19] != '.' || digits < 1 || digits > 9) return std::nullopt;
    const auto fraction = DigitsAt(text, 20, digits);
    if (!fraction) return std::nullopt;
    fraction_ns = *fraction;
    for (size_t i = digits; i < 9; ++i) fraction_ns *= 10;
  }
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int64_t seconds = ((days * 24 + *hour) * 60 + *minute - *ahead_minutes) * 60 + *second;
  return seconds * 1'000'000'000 + fraction_ns;
}

// When a row's request came, in ns; nothing: the row is of none.
using RowTime = Result<std::optional<int64_t>> (*)(const CsvReader& row);

Result<std::optional<int64_t>> TimeOfTokens(const CsvReader& row) {
  const std::optional<int64_t> at_ns = TimestampNs(row.Text(kTimestamp));
  if (!at_ns) return row.Refuse(kTimestamp, fmt::format("expected {}", kTimestampInWords));
  TRY(row.Int(kContextTokens, 0, kMostTokens));
  TRY(row.Int(kGeneratedTokens, 0, kMostTokens));
  return at_ns;
}

// At 0 stands what was there before the recording began.
Result<std::optional<int64_t>> TimeOfPod(const CsvReader& row) {
  TRY_ASSIGN(const int64_t seconds, row.Int(0, 0, kMostTraceSeconds));
  if (seconds == 0) return std::optional<int64_t>();
  return std::optional(seconds * kNsPerS);
}

// In microseconds; 2^63 - 1 is after the recording has ended. A type is a word or its number.
Result<std::optional<int64_t>> TimeOfEvent(const CsvReader& row) {
  constexpr int64_t kAfter = std::numeric_limits<int64_t>::max();
  const std::string_view type = row.Text(kEventType);
  TRY_ASSIGN(const int64_t at_us, row.Int(kEventTime, 0, kAfter));
  if ((type != "0" && type != "SUBMIT") || at_us == 0 || at_us == kAfter)
    return std::optional<int64_t>();
  if (at_us > kMostTraceSeconds * 1'000'000)
    return row.Refuse(kEventTime, "expected microseconds since the recording began");
  return std::optional(at_us * kNsPerUs);
}

struct RequestFormat {
  std::string_view name;
  std::span<const std::string_view> columns;
  RowTime time;
};
constexpr RequestFormat kRequestFormats[] = {{kRequestTraceFormats[0], kTokenColumns, TimeOfTokens},
                                             {kRequestTraceFormats[1], kCreatedColumns, TimeOfPod},
                                             {kRequestTraceFormats[2], kEventColumns, TimeOfEvent}};
static_assert(std::size(kRequestFormats) == std::size(kRequestTraceFormats));

struct TraceTimes {
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  bool sorted = true;
};

Result<TraceTimes> TimesOfTrace(std::string_view text, std::string_view source_name,
                                const RequestFormat& format) {
  TRY_ASSIGN(CsvReader rows, CsvReader::Open(text, source_name, format.columns));
  TraceTimes times;
  int64_t previous_ns = 0;
  for (;;) {
    TRY_ASSIGN(const bool more, rows.Next());
    if (!more) return times;
    TRY_ASSIGN(const std::optional<int64_t> at_ns, format.time(rows));
    if (!at_ns) continue;
    times.sorted = times.sorted && *at_ns >= previous_ns;
    times.first_ns = std::min(times.first_ns, *at_ns);
    previous_ns = *at_ns;
  }
}

}  // namespace

Result<RequestTrace> ReadRequestTrace(std::string_view text, std::string_view source_name,
                                      std::string_view format_name, SimTime bin) {
  const auto format =
      std::find_if(std::begin(kRequestFormats), std::end(kRequestFormats),
                   [&](const RequestFormat& one) { return one.name == format_name; });
  CHECK(format != std::end(kRequestFormats));
  TRY_ASSIGN(const TraceTimes times, TimesOfTrace(text, source_name, *format));
  if (!times.sorted)
    LogInfo("{}: rows are not in order of time; sorted while loading", source_name);
  TRY_ASSIGN(CsvReader rows, CsvReader::Open(text, source_name, format->columns));
  RequestTrace trace{.bin_s = static_cast<double>(bin.count()) / 1e9};
  for (;;) {
    TRY_ASSIGN(const bool more, rows.Next());
    if (!more) break;
    TRY_ASSIGN(const std::optional<int64_t> at_ns, format->time(rows));
    if (!at_ns) continue;
    const auto at = static_cast<size_t>((*at_ns - times.first_ns) / bin.count());
    if (at >= kMostBins) {
      return rows.Refuse(
          0, fmt::format("more than {} bins of {} s after the first row", kMostBins, trace.bin_s));
    }
    trace.counts.resize(std::max(trace.counts.size(), at + 1));
    ++trace.counts[at];
  }
  if (trace.counts.empty())
    return Invalid("{}: expected at least one request, found none", source_name);
  // The last bin is cut short by the end: it would look like less load.
  if (trace.counts.size() > 1) trace.counts.pop_back();
  return trace;
}

}  // namespace rudderfish
