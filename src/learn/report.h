// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "learn/comparison.h"
#include "learn/evaluation.h"

// An evaluation as one HTML page: verdict, intervals, distribution, learning curve, what a typical
// plan does to the placement, and how all of it was made. Self-contained (no script, no request to
// anywhere), light and dark as the reader's system is, fit for print; figures are SVG with a
// description for those who do not see them. A pure function of its arguments.

namespace rudderfish {

struct LearningPoint {
  double env_steps = 0;
  double final_ms = 0;            // Mean final latency on the run's own validation starts.
  std::optional<double> seconds;  // Of training, where timing.csv tells.
};

// One policy's training: a run for each training seed.
struct LearningCurve {
  std::string name;
  std::vector<std::vector<LearningPoint>> runs;  // [training seed], env_steps ascending.
};

// Reads metrics.csv (columns env_steps, eval_final_ms; rows without a number there are skipped) and
// timing.csv (columns env_steps, seconds) of a run folder. No points if the folder has no
// metrics.csv, as for a lone checkpoint.
Result<std::vector<LearningPoint>> ReadLearningPoints(const std::filesystem::path& run_folder);

struct ReportOptions {
  std::string command;  // What was typed, for "how this was made".
  std::string version;  // Of the program.
  std::vector<LearningCurve> curves;
};

// `starts` are those of the evaluation. REQUIRES: as many as evaluation.starts.
std::string ReportHtml(const Evaluation& evaluation, const Comparison& comparison,
                       std::span<const StartState> starts, const ReportOptions& options);

Result<void> WriteReport(const Evaluation& evaluation, const Comparison& comparison,
                         std::span<const StartState> starts, const ReportOptions& options,
                         const std::filesystem::path& path);

}  // namespace rudderfish
