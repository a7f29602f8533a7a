// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "evaluation/placement_evaluation.h"
#include "evaluation/report.h"

// An evaluation of placing pods as one HTML page, in the style of report.h: the verdict in words,
// the objective, active nodes and latency of every policy with their intervals, all figures, what a
// decision takes. A pure function of its arguments.

namespace rudderfish {

// Of `options.curves` nothing is shown.
std::string PlacingReportHtml(const PlacementEvaluation& evaluation, const ReportOptions& options);

Result<void> WritePlacingReport(const PlacementEvaluation& evaluation, const ReportOptions& options,
                                const std::filesystem::path& path);

}  // namespace rudderfish
