// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "evaluation/scaling_summary.h"
#include "report/report.h"

// A scaling evaluation as one HTML page, in the style of report.h: a verdict for each load in
// words, latencies, costs against violations, an episode over time, the application. A pure
// function of its arguments.

namespace rudderfish {

// Of `options.curves` nothing is shown.
std::string ScalingReportHtml(const ScalingSummary& summary, const ReportOptions& options);

Result<void> WriteScalingReport(const ScalingSummary& summary, const ReportOptions& options,
                                const std::filesystem::path& path);

}  // namespace rudderfish
