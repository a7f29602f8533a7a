// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evaluation/statistics.h"
#include "report/svg.h"

// What figures of different tasks have in common: keys, rows of differences, curves of latency, and
// policies as points of two costs. The style sheet is that of report_figures.h.

namespace rudderfish {

inline constexpr double kHalfFigure = 540;  // Of a figure that shares its row with another.
inline constexpr double kWideFigure = 1100;
inline constexpr double kKeyRoom = 188;  // Names and figures beside a plot.

struct KeyRow {
  std::string css, name, value;
};

// Under each other from `at` to the right edge of the figure.
void DrawKey(Svg* svg, SvgPoint at, double right, std::string_view heading,
             const std::vector<KeyRow>& rows);

// A difference with its interval, and that in words.
struct DifferenceBar {
  double at = 0;
  ConfidenceInterval ci;
  std::string text;
  std::string_view css;  // "good", "bad" or "open".
};

// One row of whiskers; its text ends at `text_x`.
void DrawDifference(const DifferenceBar& bar, const LinearScale& x, double y, double text_x,
                    Svg* svg);
void DrawDifferenceAxis(const LinearScale& x, const PlotFrame& frame, std::string_view label,
                        Svg* svg);
// Holds 0, `least` on both sides of it and all intervals.
LinearScale DifferenceScale(const std::vector<DifferenceBar>& bars, double least, double left,
                            double right);

// How many requests were answered within a time.
struct LatencyCurve {
  std::string css, name;
  // Milliseconds, share; shares ascend. Infinite where such a share has no answer.
  std::vector<std::pair<double, double>> within;
  double p99_ms = std::numeric_limits<double>::infinity();
};

// So drawn that each further nine of 90, 99, 99.9 % has the same room; the last curve above the
// others. Targets: one where both are the same, none where they are 0.
// REQUIRES: a finite time.
std::string LatencyCurvesFigure(const std::vector<LatencyCurve>& curves, double target_low_ms,
                                double target_high_ms);

// "12 ms", "1.5 s", "no answer".
std::string LatencyText(double ms);

// A policy by two costs.
struct PlottedPolicy {
  std::string css, name, value, tooltip;
  double x = 0, y = 0;  // As the plot's axes have them.
};

// The front of those that no other beats in both.
void DrawFront(const std::vector<PlottedPolicy>& policies, const Plot& plot, Svg* svg);
// As dots, with name and value right of the plot; it has kKeyRoom for them.
void DrawPolicies(const std::vector<PlottedPolicy>& policies, const Plot& plot, Svg* svg);

namespace internal {

// Axis marks of milliseconds for an axis of their decimal logarithm.
std::vector<std::pair<double, std::string>> LatencyMarks(double low_ms, double high_ms);

}  // namespace internal

}  // namespace rudderfish
