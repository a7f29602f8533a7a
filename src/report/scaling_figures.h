// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evaluation/scaling_summary.h"
#include "report/svg.h"

// Figures of a scaling evaluation, each one <svg> element without its caption; the style sheet
// is that of report_figures.h. A policy has the same colour in all figures of a summary: the
// candidate stands out, its most frequent baseline is its counterpart, the others recede.

namespace rudderfish {

// [policy] "s0" for the candidate, "s1" for the policy that is most often the baseline ...
std::vector<std::string> ScalingSeries(const ScalingSummary& summary);

// Difference of the candidate to the baseline of each load: core-hours in percent of the
// baseline's, violations in points, with their intervals. REQUIRES: a load with a baseline.
std::string LoadDifferencesFigure(const ScalingSummary& summary);

// Share of requests answered within a time, so drawn that each further nine of 90, 99, 99.9 % has
// the same room. REQUIRES: latencies of a policy.
std::string LatencyFigure(const ScalingSummary& summary, int load);

// Core-hours against violations, the front of policies that no other beats in both, and how much it
// dominates.
std::string ParetoFigure(const ScalingSummary& summary, int load);

// One episode: requests, pods, p95 against the targets, cores. REQUIRES: the candidate's timeline.
std::string TimelineFigure(const ScalingSummary& summary, int load);

// The replicas of every workload in that episode. REQUIRES: the candidate's timeline.
std::string ReplicasFigure(const ScalingSummary& summary, int load);

// Who calls whom, how often, at so many requests per second; and how many slots are busy then.
std::string CallGraphFigure(const ScalingSummary& summary, double requests_per_s);

}  // namespace rudderfish
