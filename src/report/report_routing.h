// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "evaluation/routing_record.h"
#include "report/report.h"
#include "sim/routing_evaluation.h"

// An evaluation of routing as one HTML page, in the style of report.h: a verdict for each variant
// in words; what a request costs, cost against late requests, latencies; an episode by region. A
// pure function of its arguments.

namespace rudderfish {

// `record` is of the evaluation. Of `options.curves` nothing is shown.
std::string RoutingReportHtml(const RoutingEvaluation& evaluation, const RoutingRecord& record,
                              const ReportOptions& options);

Result<void> WriteRoutingReport(const RoutingEvaluation& evaluation, const RoutingRecord& record,
                                const ReportOptions& options, const std::filesystem::path& path);

}  // namespace rudderfish
