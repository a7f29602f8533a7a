// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evaluation/comparison.h"
#include "evaluation/evaluation.h"
#include "learn/learning_curve.h"

// An evaluation as one HTML page: verdict, intervals, distribution, learning curve, what a typical
// plan does to the placement, and how all of it was made. Self-contained (no script, no request to
// anywhere), light and dark as the reader's system is, fit for print; figures are SVG with a
// description for those who do not see them. A pure function of its arguments.

namespace rudderfish {

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
