// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "learn/learning_curve.h"
#include "learn/run_folder.h"

// The tables of a run folder, written row by row and read for reports. What was computed and how
// long it took stand in different files, because the first is the same for equal runs and the
// second never is. Tables join by iteration. Comma-separated, a line of names first; a figure that
// there is not is an empty cell.

namespace rudderfish {

inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();  // An empty cell.

struct MetricsRow {
  int64_t iteration = 0;  // From 1.
  int64_t env_steps = 0;  // Since the start of the run.
  int64_t episodes = 0;   // That ended in this iteration; means are over them.
  double return_mean = kNoFigure;
  double final_ms_mean = kNoFigure;
  double moves_mean = kNoFigure;
  double policy_loss = kNoFigure;
  double value_loss = kNoFigure;
  double entropy = kNoFigure;
  double approx_kl = kNoFigure;
  double clip_fraction = kNoFigure;
  double explained_variance = kNoFigure;
  double grad_norm = kNoFigure;
  double learning_rate = kNoFigure;
  double eval_final_ms = kNoFigure;  // On the validation starts, where evaluated.
  double eval_return = kNoFigure;
  double eval_moves = kNoFigure;
};

struct TimingRow {
  int64_t iteration = 0;
  int64_t env_steps = 0;
  double seconds = 0;  // Since the process started, those of earlier processes of the run added.
  double env_steps_per_second = 0;
  double collect_seconds = 0;
  double update_seconds = 0;
  double evaluate_seconds = 0;
};

// A table that grows by rows. Numbers have nine significant digits.
template <class Row>
class Table {
 public:
  // Goes on after `keep_bytes` of the file; 0 starts over with the line of names.
  static Result<Table> Open(const std::filesystem::path& path, int64_t keep_bytes);

  Result<void> Append(const Row& row);
  Result<void> Flush() { return file_.Flush(); }
  int64_t size() const { return file_.size(); }

 private:
  explicit Table(AppendFile file) : file_(std::move(file)) {}
  AppendFile file_;
};

using MetricsTable = Table<MetricsRow>;
using TimingTable = Table<TimingRow>;

// A last line without its end, as kill -9 or a full disk may leave it, is passed over, even the
// line of names.
Result<std::vector<MetricsRow>> ReadMetrics(const std::filesystem::path& path);
Result<std::vector<TimingRow>> ReadTiming(const std::filesystem::path& path);

// Length in bytes of the timing table's rows up to an iteration, where --resume goes on.
Result<int64_t> TimingBytesUpTo(const std::filesystem::path& path, int64_t iteration);

// Of one run; for a run of several seeds, of each.
Result<std::vector<CurvePoint>> ReadLearningCurve(const RunPaths& paths);
Result<std::vector<std::vector<CurvePoint>>> ReadLearningCurves(
    const std::filesystem::path& folder);

}  // namespace rudderfish
