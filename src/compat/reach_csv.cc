// SPDX-License-Identifier: Apache-2.0
#include "compat/reach_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/one_line.h"

namespace rudderfish {
namespace {

constexpr std::string_view kReachServices[] = {"aggregator", "detection", "ml", "db"};
constexpr double kLongestLatencyMs = 86'400'000;

std::string Cell(std::optional<double> value) {
  return value ? fmt::format("{:.2f}", *value) : std::string();
}

}  // namespace

std::string CsvLine(const CsvRow& row) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    if (i > 0) line += ',';
    if (row[i].find_first_of("\",\r\n") == std::string::npos) {
      line += row[i];
      continue;
    }
    line += '"';
    for (const char c : row[i]) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + '\n';
}

Result<ReachCsv> ReachCsv::Open(const std::filesystem::path& path, const CsvRow& columns) {
  const std::string head = CsvLine(columns);
  if (path == "-") {
    ReachCsv csv(std::nullopt);
    TRY(csv.Add(columns));
    return csv;
  }
  std::string content;
  if (Result<std::string> read = ReadFile(path)) {
    content = *std::move(read);
  } else if (read.error().code != ErrorCode::kNotFound) {
    return tl::unexpected(read.error());
  }
  // A file that another program ended has \r\n, or no end of its last line.
  const size_t end = content.find_first_of("\r\n");
  if (!content.empty() && content.substr(0, end) + '\n' != head) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}:1: its columns are `{}`, not `{}`; name another file", path.string(),
                OneLine(content.substr(0, end)), OneLine(head.substr(0, head.size() - 1)));
  }
  TRY_ASSIGN(AppendFile file, AppendFile::Open(path));
  if (content.empty()) {
    TRY(file.Append(head));
  } else if (content.back() != '\n') {
    TRY(file.Append("\n"));
  }
  TRY(file.Flush());
  return ReachCsv(std::move(file));
}

Result<void> ReachCsv::Add(const CsvRow& row) {
  const std::string line = CsvLine(row);
  if (file_) {
    TRY(file_->Append(line));
    return file_->Flush();
  }
  const bool is_written =
      std::fwrite(line.data(), 1, line.size(), stdout) == line.size() && std::fflush(stdout) == 0;
  if (!is_written) return Fail(ErrorCode::kUnavailable, "standard output cannot be written");
  return {};
}

CsvRow ReachTimeColumns() {
  return {"timestamp",   "human_readable_timestamp",
          "latency",     "current_node",
          "target_node", "target_pod",
          "failed_node", "event"};
}

CsvRow CellsOf(const ReachTimeRow& row) {
  return {std::to_string(row.at / 1000),
          LocalDateAndTime(row.at),
          Cell(row.latency_ms),
          row.current_node,
          row.target_node,
          row.target_pod,
          row.failed_node,
          std::string(row.event)};
}

CsvRow ReachBestEffortColumns(std::span<const std::string> services) {
  CsvRow columns{"total_latency"};
  for (const std::string& service : services) columns.push_back(service + "_latency");
  return columns;
}

CsvRow BestEffortCells(const ReachLatencies& latencies) {
  CsvRow row{Cell(latencies.total_ms)};
  for (const std::optional<double>& one : latencies.services_ms) row.push_back(Cell(one));
  return row;
}

CsvRow ReachLearnedColumns(std::span<const std::string> services) {
  CsvRow columns{"start_total_latency", "end_total_latency"};
  for (const std::string& service : services) {
    for (const std::string_view when : {"start_", "end_"})
      columns.push_back(fmt::format("{}{}_latency", when, service));
  }
  columns.emplace_back("step");
  return columns;
}

CsvRow LearnedCells(const ReachLatencies& start, const ReachLatencies& end, int steps) {
  CsvRow row{Cell(start.total_ms), Cell(end.total_ms)};
  for (size_t i = 0; i < start.services_ms.size(); ++i) {
    row.push_back(Cell(start.services_ms[i]));
    row.push_back(Cell(end.services_ms[i]));
  }
  row.push_back(std::to_string(steps));
  return row;
}

CsvRow ReachDistributionColumns(std::span<const std::string> services,
                                std::span<const std::string> nodes) {
  CsvRow columns;
  for (const std::string& service : services) {
    for (const std::string& node : nodes) columns.push_back(fmt::format("{}_{}", service, node));
  }
  return columns;
}

std::string ReachServiceName(std::string_view workload) {
  return workload == "machine-learning" ? "ml" : std::string(workload);
}

std::string ReachNodeName(std::string_view node) {
  if (node.starts_with("tb-")) node.remove_prefix(3);
  std::string name(node);
  if (const size_t vm = name.find("-vm-"); vm != std::string::npos) name.erase(vm, 3);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

std::vector<int> ReachServiceOrder(std::span<const std::string> workloads) {
  std::vector<int> order(workloads.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto rank = [&](int workload) {
    const std::string name = ReachServiceName(workloads[static_cast<size_t>(workload)]);
    return std::find(std::begin(kReachServices), std::end(kReachServices), name) -
           std::begin(kReachServices);
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return rank(a) < rank(b); });
  return order;
}

std::string LocalDateAndTime(UnixMillis at) {
  const std::time_t seconds = at / 1000;
  std::tm parts{};
  if (::localtime_r(&seconds, &parts) == nullptr) return DateAndTime(at);
  char text[32];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return {text, length};
}

std::optional<double> ReachEntryLatencyMs(std::string_view body) {
  const Result<Json> json = ParseJson(body, "entry");
  if (!json || !json->is_object()) return std::nullopt;
  const auto at = json->find("service_calling_latency");
  if (at == json->end() || !at->is_number()) return std::nullopt;
  const auto ms = at->get<double>();
  return ms >= 0 && ms <= kLongestLatencyMs ? std::optional(ms) : std::nullopt;
}

}  // namespace rudderfish
