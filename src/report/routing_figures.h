// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "evaluation/routing_record.h"
#include "sim/routing_evaluation.h"

// Figures of an evaluation of routing under one variant, each one <svg> element without its
// caption; the style sheet is that of report_figures.h. The candidate is the series s0, its
// baseline s1, the others recede.

namespace rudderfish {

// [policy] As classes of the style sheet.
std::vector<std::string> RoutingSeries(const RoutingEvaluation& evaluation, int variant);

// What a request costs, by part: nodes, egress, carbon, late, wait, change. A bar a policy, the
// least first.
std::string CostPartsFigure(const RoutingEvaluation& evaluation, int variant);

// Nodes, egress and carbon of a request against late requests.
std::string RoutingParetoFigure(const RoutingEvaluation& evaluation, int variant);

// Share of requests answered within a time.
std::string RoutingLatencyFigure(const RoutingEvaluation& evaluation, const RoutingRecord& record,
                                 int variant);

// One episode: requests by the region that serves them, nodes on demand and spot, and how many
// requests are late; of the candidate and, beside it, of the baseline. REQUIRES: the candidate's
// timeline.
std::string RegionsFigure(const RoutingEvaluation& evaluation, const RoutingRecord& record,
                          int variant);

}  // namespace rudderfish
