// SPDX-License-Identifier: Apache-2.0
#include "compat/gym_hpa_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>

namespace rudderfish {
namespace {

constexpr int kFieldsEach = 7;
constexpr std::string_view kFieldNames[kFieldsEach] = {
    "num_pods",   "desired_replicas", "cpu_usage", "mem_usage",
    "traffic_in", "traffic_out",      "latency"};
constexpr int kMostDeployments = 1000;
constexpr int kMostPods = 65'535;
constexpr double kMostValue = 1e15;

std::string Shown(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string shown(text.substr(0, kMost));
  std::replace_if(
      shown.begin(), shown.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return fmt::format("\"{}{}\"", shown, text.size() > kMost ? "..." : "");
}

// YYYY-MM-DD HH:MM:SS; a fraction of the second is passed over.
std::optional<int64_t> TimeOf(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00 00:00:00";
  if (text.size() > kForm.size() && text[kForm.size()] == '.') text = text.substr(0, kForm.size());
  if (text.size() != kForm.size()) return std::nullopt;
  int part[6] = {}, index = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (kForm[i] == '0') {
      if (text[i] < '0' || text[i] > '9') return std::nullopt;
      part[index] = part[index] * 10 + (text[i] - '0');
    } else {
      if (text[i] != kForm[i]) return std::nullopt;
      ++index;
    }
  }
  const std::chrono::year_month_day date{std::chrono::year(part[0]),
                                         std::chrono::month(static_cast<unsigned>(part[1])),
                                         std::chrono::day(static_cast<unsigned>(part[2]))};
  if (!date.ok() || part[0] < 1970 || part[3] > 23 || part[4] > 59 || part[5] > 59)
    return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + part[3]) * 60 + part[4]) * 60 + part[5];
}

std::string TimeText(int64_t at_s) {
  const int64_t days = at_s / 86400, rest = at_s % 86400;
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     rest / 3600, rest / 60 % 60, rest % 60);
}

// One line in fields.
class TableLine {
 public:
  TableLine(std::string_view line, int number, std::string_view source)
      : line_(line), number_(number), source_(source) {
    for (size_t begin = 0;;) {
      const size_t end = std::min(line.find(',', begin), line.size());
      fields_.push_back(line.substr(begin, end - begin));
      if (end == line.size()) break;
      begin = end + 1;
    }
  }

  size_t size() const { return fields_.size(); }
  std::string_view operator[](size_t i) const { return fields_[i]; }

  tl::unexpected<Error> Refuse(size_t i, std::string_view what) const {
    const size_t column = static_cast<size_t>(fields_[i].data() - line_.data()) + 1;
    return Invalid("{}:{}:{}: {}", source_, number_, column, what);
  }

  // `key`: what the message calls it.
  Result<double> Number(size_t i, std::string_view key) const {
    const std::string_view text = fields_[i];
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() ||
        !(value >= 0 && value <= kMostValue)) {
      return Refuse(i, fmt::format("`{}`: expected a number that is not negative, found {}", key,
                                   Shown(text)));
    }
    return value;
  }

  Result<int> Pods(size_t i, std::string_view key) const {
    TRY_ASSIGN(const double value, Number(i, key));
    if (value > kMostPods || value != std::floor(value)) {
      return Refuse(i, fmt::format("`{}`: expected a whole number up to {}, found {}", key,
                                   kMostPods, Shown(fields_[i])));
    }
    return static_cast<int>(value);
  }

 private:
  std::string_view line_;
  int number_;
  std::string_view source_;
  std::vector<std::string_view> fields_;
};

Result<std::vector<std::string>> NamesOf(const TableLine& line) {
  std::vector<std::string> names;
  for (size_t i = 1; i < line.size(); ++i) {
    const std::string suffix = fmt::format("_{}", kFieldNames[(i - 1) % kFieldsEach]);
    std::string_view name = line[i];
    if (!name.ends_with(suffix) || name.size() == suffix.size())
      return line.Refuse(i, fmt::format("expected NAME{}, found {}", suffix, Shown(name)));
    name.remove_suffix(suffix.size());
    if ((i - 1) % kFieldsEach == 0) {
      names.emplace_back(name);
    } else if (name != names.back()) {
      return line.Refuse(
          i, fmt::format("expected a column of {}, found {}", Shown(names.back()), Shown(line[i])));
    }
  }
  return names;
}

Result<GymHpaRow> RowOf(const TableLine& line) {
  const std::optional<int64_t> at_s = TimeOf(line[0]);
  if (!at_s) {
    return line.Refuse(
        0, fmt::format("expected a time such as 2022-03-01 12:00:00, found {}", Shown(line[0])));
  }
  GymHpaRow row{.at_s = *at_s};
  for (size_t i = 1; i < line.size(); i += kFieldsEach) {
    GymHpaReading& reading = row.readings.emplace_back();
    TRY_ASSIGN(reading.pods, line.Pods(i, kFieldNames[0]));
    TRY_ASSIGN(reading.desired, line.Pods(i + 1, kFieldNames[1]));
    TRY_ASSIGN(reading.cpu_millis, line.Number(i + 2, kFieldNames[2]));
    TRY_ASSIGN(reading.memory_mib, line.Number(i + 3, kFieldNames[3]));
    TRY_ASSIGN(reading.traffic_in_kbytes_per_s, line.Number(i + 4, kFieldNames[4]));
    TRY_ASSIGN(reading.traffic_out_kbytes_per_s, line.Number(i + 5, kFieldNames[5]));
    TRY_ASSIGN(reading.latency_ms, line.Number(i + 6, kFieldNames[6]));
  }
  return row;
}

Result<void> CheckColumns(const TableLine& line, size_t columns) {
  const bool fits = line.size() > 1 && (line.size() - 1) % kFieldsEach == 0;
  if (columns == 0 && fits && line.size() <= 1 + size_t{kMostDeployments} * kFieldsEach) return {};
  if (columns == 0) {
    return line.Refuse(0, fmt::format("expected a time and seven columns for each deployment, 78 "
                                      "of Online Boutique or 15 of Redis, found {}",
                                      line.size()));
  }
  if (line.size() == columns) return {};
  return line.Refuse(
      0, fmt::format("expected {} columns, as in the first line, found {}", columns, line.size()));
}

}  // namespace

Result<GymHpaTable> ReadGymHpaTable(std::string_view text, std::string_view source_name) {
  GymHpaTable table;
  size_t columns = 0;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const TableLine fields(line, number, source_name);
    TRY(CheckColumns(fields, columns));
    const bool first = columns == 0;
    columns = fields.size();
    if (first && fields[0] == "date") {
      TRY_ASSIGN(table.names, NamesOf(fields));
      continue;
    }
    TRY_ASSIGN(GymHpaRow row, RowOf(fields));
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty())
    return Invalid("{}: expected at least one line of observations, found none", source_name);
  return table;
}

std::string GymHpaLine(const GymHpaRow& row) {
  std::string line = TimeText(row.at_s);
  for (const GymHpaReading& reading : row.readings) {
    line += fmt::format(",{},{},{},{},{},{},{:.3f}", reading.pods, reading.desired,
                        std::llround(reading.cpu_millis), std::llround(reading.memory_mib),
                        std::llround(reading.traffic_in_kbytes_per_s),
                        std::llround(reading.traffic_out_kbytes_per_s), reading.latency_ms);
  }
  return line + "\n";
}

std::string GymHpaResultsCsv(std::span<const GymHpaResult> results) {
  std::string text = "episode,avg_pods,avg_latency,reward,execution_time\n";
  for (const GymHpaResult& one : results) {
    text += fmt::format("{},{:.2f},{:.4f},{:.2f},{:.2f}\n", one.episode, one.avg_pods,
                        one.avg_latency_ms, one.reward, one.seconds);
  }
  return text;
}

std::string GymHpaRunName(std::string_view algorithm, std::string_view application, int64_t steps) {
  return fmt::format("{}_env_{}_gym_totalSteps_{}", algorithm, application, steps);
}

}  // namespace rudderfish
