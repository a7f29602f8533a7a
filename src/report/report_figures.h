// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/comparison.h"
#include "evaluation/evaluation.h"
#include "report/report.h"

// The figures of report.h, each one <svg> element without its caption, and the style sheet that
// gives them colours. A policy has the same colour in all of them: the candidate stands out, the
// baseline is its counterpart, the others recede and differ also by dashes.

namespace rudderfish {

inline constexpr double kFigureWidth = 1100;  // Of those that have their row alone.

// Policies in the order of a report, with the CSS class that colours each.
struct ReportPolicies {
  explicit ReportPolicies(const Evaluation& evaluation, const Comparison& comparison);

  int candidate = 0;                // The last one where there is no verdict.
  std::vector<int> by_final;        // Ascending mean final latency.
  std::vector<std::string> series;  // [policy] "s0" for the candidate, "s1" for the baseline ...
};

// candidate - baseline with its interval, over all starts and for each pattern. REQUIRES: a
// verdict.
std::string DifferenceFigure(const Evaluation& evaluation, const Comparison& comparison);

// A figure's values with their intervals, one below the other.
struct IntervalRow {
  std::string name, series;  // Its CSS class, as ReportPolicies gives it.
  double value = 0;
  ConfidenceInterval interval;
  std::string text;  // Of both.
};
struct IntervalAxis {
  std::string title, description, label;
  double least_pad = 0;             // Beside the outermost intervals, in units of the values.
  std::optional<double> reference;  // A line from top to bottom,
  std::string reference_text;       // and what it is.
};
// REQUIRES: a row; no value below 0.
std::string IntervalFigure(const std::vector<IntervalRow>& rows, const IntervalAxis& axis);

// Mean final latency of every policy with its interval.
std::string IntervalFigure(const Evaluation& evaluation, const Comparison& comparison,
                           const ReportPolicies& policies);

// Share of episodes that end at or below a latency.
std::string DistributionFigure(const Evaluation& evaluation, const ReportPolicies& policies);

// Mean latency after k moves, those counted that stopped before.
std::string MovesFigure(const Evaluation& evaluation, const Comparison& comparison,
                        const ReportPolicies& policies);

// candidate - baseline of each start, sorted. REQUIRES: a verdict.
std::string StartsFigure(const Evaluation& evaluation, const Comparison& comparison);

// Final latency on validation starts while training. REQUIRES: a curve with two points.
std::string LearningFigure(const std::vector<LearningCurve>& curves, const Evaluation& evaluation,
                           const ReportPolicies& policies);

// The same with the CSS class of each curve, and what its figures are, with their unit.
std::string LearningFigure(const std::vector<LearningCurve>& curves,
                           const std::vector<std::string>& series, std::string_view label);

// Pods on nodes before and after an episode.
std::string PlacementFigure(const State& start, const EvaluatedEpisode& episode);

// The episode whose gain is the median of the policy's episodes that moved something, all of its
// first training seed; null if none moved anything.
const EvaluatedEpisode* TypicalEpisode(const Evaluation& evaluation, int policy);

// Content of the page's <style>.
extern const std::string_view kReportStyle;

}  // namespace rudderfish
