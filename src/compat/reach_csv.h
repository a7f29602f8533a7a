// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/wall_time.h"

// The CSV files of REACH's experiments: the same columns, numbers with two decimals, rows appended
// to what is there. Unlike there each row is on disk once it was added. One thread.

namespace rudderfish {

using CsvRow = std::vector<std::string>;

// A file of such rows, or standard output.
class ReachCsv {
 public:
  // `path` "-": standard output. kFailedPrecondition if the file begins with other columns.
  static Result<ReachCsv> Open(const std::filesystem::path& path, const CsvRow& columns);

  Result<void> Add(const CsvRow& row);

 private:
  explicit ReachCsv(std::optional<AppendFile> file) : file_(std::move(file)) {}

  std::optional<AppendFile> file_;  // Nothing: standard output.
};

// One line with its end; a cell that needs it is quoted as RFC 4180 has it.
std::string CsvLine(const CsvRow& row);

// Of the modes that follow the time: monitoring, nodefailed, autoscaling. What an event does not
// have is empty.
struct ReachTimeRow {
  UnixMillis at = 0;
  std::optional<double> latency_ms;
  std::string current_node, target_node, target_pod;
  std::string failed_node;
  std::string_view event;  // latency, rescheduling, node_failed, ...
};
CsvRow ReachTimeColumns();
CsvRow CellsOf(const ReachTimeRow& row);

// Mean latencies over some requests: of a whole request, and of the calls of each service, in the
// order of the columns. Nothing: not known.
struct ReachLatencies {
  std::optional<double> total_ms;
  std::vector<std::optional<double>> services_ms;  // As many at the start as at the end.
};

// Of `test`. Services are named as REACH's columns name them (ReachServiceName).
CsvRow ReachBestEffortColumns(std::span<const std::string> services);
CsvRow BestEffortCells(const ReachLatencies& latencies);
CsvRow ReachLearnedColumns(std::span<const std::string> services);
CsvRow LearnedCells(const ReachLatencies& start, const ReachLatencies& end, int steps);

// Of `pod_distribution`: aggregator_cloud_8_1, ...; service by service, as the counts are.
CsvRow ReachDistributionColumns(std::span<const std::string> services,
                                std::span<const std::string> nodes);

// "machine-learning" is `ml`, and "tb-cloud-vm-8-1" `cloud_8_1`; all other names stay, with _ for
// what is no letter or digit in a node's.
std::string ReachServiceName(std::string_view workload);
std::string ReachNodeName(std::string_view node);

// Workloads in the order of REACH's columns: its four first, then the others as they come.
std::vector<int> ReachServiceOrder(std::span<const std::string> workloads);

// "2026-11-27 04:10:05", local time.
std::string LocalDateAndTime(UnixMillis at);

// What the entry service says that a request took, {"service_calling_latency": ms, ...}; nothing if
// it says something else.
std::optional<double> ReachEntryLatencyMs(std::string_view body);

}  // namespace rudderfish
