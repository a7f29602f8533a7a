// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "evaluation/placement_evaluation.h"
#include "report/report.h"

// A placement evaluation as one HTML page, in the style of report.h: the verdict in words,
// the objective, active nodes and latency of every policy with their intervals, all figures, what a
// decision takes, what others have published. A pure function of its arguments.

namespace rudderfish {

// Of `options.curves` nothing is shown. `quotes`: of QuotesOf (published.h).
std::string PlacingReportHtml(const PlacementEvaluation& evaluation, const OrderedJson& quotes,
                              const ReportOptions& options);

Result<void> WritePlacingReport(const PlacementEvaluation& evaluation, const OrderedJson& quotes,
                                const ReportOptions& options, const std::filesystem::path& path);

}  // namespace rudderfish
