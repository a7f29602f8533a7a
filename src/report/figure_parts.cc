// SPDX-License-Identifier: Apache-2.0
#include "report/figure_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kLeastMs = 0.1;  // Logarithms begin here.
constexpr double kMostNines = 3;

double LogMs(double ms) { return std::log10(std::max(ms, kLeastMs)); }

struct LatencyRange {
  double low_ms = 1e12, high_ms = 0;

  void Add(double ms) {
    if (ms <= 0 || std::isinf(ms)) return;
    low_ms = std::min(low_ms, std::max(ms, kLeastMs));
    high_ms = std::max(high_ms, ms);
  }
};

void DrawTargets(const Plot& plot, double low_ms, double high_ms, Svg* svg) {
  const PlotFrame& frame = plot.frame();
  for (const double ms : {low_ms, high_ms}) {
    if (ms <= 0) continue;
    const double x = plot.At(LogMs(ms), 0).x;
    svg->Line({x, frame.top}, {x, frame.bottom}, "reference");
  }
  if (high_ms <= 0) return;
  svg->Text({plot.At(LogMs(high_ms), 0).x, frame.top - 14}, low_ms < high_ms ? "targets" : "target",
            "hint", TextAnchor::kEnd);
}

std::vector<SvgPoint> PointsOf(const LatencyCurve& curve, double right) {
  std::vector<SvgPoint> points;
  for (const auto& [ms, share] : curve.within) {
    if (std::isinf(ms)) {  // The rest has no answer: level to the edge.
      if (!points.empty()) points.push_back({right, points.back().y});
      break;
    }
    const double nines = share >= 1 ? kMostNines : -std::log10(1 - share);
    points.push_back({LogMs(ms), std::clamp(nines, 0.0, kMostNines)});
    if (nines >= kMostNines) break;
  }
  return points;
}

}  // namespace

void DrawKey(Svg* svg, SvgPoint at, double right, std::string_view heading,
             const std::vector<KeyRow>& rows) {
  svg->Text({right, at.y}, heading, "hint", TextAnchor::kEnd);
  for (const KeyRow& row : rows) {
    at.y += 24;
    svg->BeginGroup(row.css, fmt::format("{}: {}", row.name, row.value));
    svg->Line({at.x, at.y - 4}, {at.x + 22, at.y - 4}, "curve");
    const double room = right - at.x - 28 - TextWidth(row.value, 14.2) - 10;
    svg->Text({at.x + 28, at.y}, FitText(row.name, 14.2, room, Keep::kBeginning), "name");
    svg->Text({right, at.y}, row.value, "value", TextAnchor::kEnd);
    svg->EndGroup();
  }
}

void DrawDifference(const DifferenceBar& bar, const LinearScale& x, double y, double text_x,
                    Svg* svg) {
  svg->BeginGroup(bar.css, bar.text);
  svg->Line({x(std::max(bar.ci.low, x.low())), y}, {x(std::min(bar.ci.high, x.high())), y},
            "whisker");
  svg->Circle({x(bar.at), y}, 6, "dot");
  svg->Text({text_x, y + 4}, bar.text, "value", TextAnchor::kEnd);
  svg->EndGroup();
}

void DrawDifferenceAxis(const LinearScale& x, const PlotFrame& frame, std::string_view label,
                        Svg* svg) {
  const std::vector<double> ticks = NiceTicks(x.low(), x.high(), 5);
  for (const double tick : ticks) {
    svg->Line({x(tick), frame.top}, {x(tick), frame.bottom}, tick == 0 ? "zero" : "grid");
    const std::string text = TickText(tick, ticks.size() > 1 ? ticks[1] - ticks[0] : 1);
    svg->Text({x(tick), frame.bottom + 18}, tick > 0 ? "+" + text : text, "tick",
              TextAnchor::kMiddle);
  }
  svg->Text({frame.right, frame.bottom + 38}, label, "axis-label", TextAnchor::kEnd);
  svg->Text({x(0) - 8, frame.top - 10}, "\u2190 less", "hint", TextAnchor::kEnd);
}

LinearScale DifferenceScale(const std::vector<DifferenceBar>& bars, double least, double left,
                            double right) {
  double low = -least, high = least;
  for (const DifferenceBar& bar : bars) {
    low = std::min(low, bar.ci.low);
    high = std::max(high, bar.ci.high);
  }
  const double pad = (high - low) * 0.06;
  return {low - pad, high + pad, left, right};
}

std::string LatencyText(double ms) {
  if (std::isinf(ms)) return "no answer";
  if (ms < 10) return fmt::format("{:.1f} ms", ms);
  if (ms < 1000) return fmt::format("{:.0f} ms", ms);
  return fmt::format("{:.3g} s", ms / 1000);
}

std::vector<std::pair<double, std::string>> internal::LatencyMarks(double low_ms, double high_ms) {
  constexpr size_t kMostWithThrees = 5;
  std::vector<std::pair<double, std::string>> marks, decades;
  for (int power = -1; power <= 7; ++power) {
    for (const double digit : {1.0, 3.0}) {
      const double ms = digit * std::pow(10, power);
      if (ms < low_ms || ms > high_ms) continue;
      marks.emplace_back(std::log10(ms), ms < 1      ? fmt::format("{:.1f} ms", ms)
                                         : ms < 1000 ? fmt::format("{:.0f} ms", ms)
                                                     : fmt::format("{:.0f} s", ms / 1000));
      if (digit == 1) decades.push_back(marks.back());
    }
  }
  return marks.size() > kMostWithThrees ? decades : marks;
}

std::string LatencyCurvesFigure(const std::vector<LatencyCurve>& curves, double target_low_ms,
                                double target_high_ms) {
  LatencyRange range;
  std::string description = "Of all requests, 99 % answered within:";
  for (const LatencyCurve& curve : curves) {
    for (const auto& [ms, share] : curve.within) {
      if (share <= 0.9995) range.Add(ms);
    }
    if (!curve.within.empty())
      description += fmt::format(" {} {};", curve.name, LatencyText(curve.p99_ms));
  }
  CHECK_GT(range.high_ms, 0);
  range.Add(target_high_ms);
  Svg svg(kHalfFigure, 400, "Latency of requests", description);
  const PlotFrame frame{.left = 52, .top = 34, .right = kHalfFigure - kKeyRoom, .bottom = 350};
  const double nines = std::log10(2), low = LogMs(range.low_ms) - 0.05,
               high = std::max(LogMs(range.high_ms), low + 0.5) + 0.05;
  Plot plot(&svg, frame,
            {.low = low,
             .high = high,
             .label = "time from request to answer",
             .marks = internal::LatencyMarks(range.low_ms, range.high_ms)},
            {.low = 0,
             .high = kMostNines,
             .label = "requests answered within",
             .marks = {{0, "0 %"}, {nines, "50 %"}, {1, "90 %"}, {2, "99 %"}, {3, "99.9 %"}}});
  DrawTargets(plot, target_low_ms, target_high_ms, &svg);
  for (const LatencyCurve& curve : curves) {
    svg.BeginGroup(curve.css, curve.name);
    plot.Curve(PointsOf(curve, high), "curve");
    svg.EndGroup();
  }
  std::vector<KeyRow> rows;
  for (auto curve = curves.rbegin(); curve != curves.rend(); ++curve) {
    rows.push_back(
        {curve->css, curve->name, curve->within.empty() ? "none" : LatencyText(curve->p99_ms)});
  }
  DrawKey(&svg, {frame.right + 12, frame.top + 6}, kHalfFigure, "99 % within", rows);
  return std::move(svg).Finish();
}

void DrawFront(const std::vector<PlottedPolicy>& policies, const Plot& plot, Svg* svg) {
  std::vector<const PlottedPolicy*> order;
  for (const PlottedPolicy& one : policies) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->x, a->y) < std::pair(b->x, b->y);
  });
  const PlotFrame& frame = plot.frame();
  std::vector<SvgPoint> steps, upper;
  double y_before = frame.top, least = std::numeric_limits<double>::infinity();
  for (const PlottedPolicy* one : order) {
    if (one->y >= least) continue;
    least = one->y;
    const SvgPoint at = plot.At(one->x, one->y);
    steps.push_back(steps.empty() ? SvgPoint{at.x, frame.top} : SvgPoint{at.x, y_before});
    steps.push_back(at);
    y_before = at.y;
  }
  steps.push_back({frame.right, y_before});
  for (const SvgPoint& point : steps) upper.push_back({point.x, frame.top});
  svg->Band(upper, steps, "dominated");
  svg->Polyline(steps, "front");
}

void DrawPolicies(const std::vector<PlottedPolicy>& policies, const Plot& plot, Svg* svg) {
  const PlotFrame& frame = plot.frame();
  const double right = frame.right + kKeyRoom;
  std::vector<double> ends;
  for (const PlottedPolicy& one : policies) ends.push_back(plot.At(one.x, one.y).y);
  const std::vector<double> labels = SpreadLabels(ends, 20, frame.top + 8, frame.bottom - 8);
  for (size_t i = 0; i < policies.size(); ++i) {
    const PlottedPolicy& one = policies[i];
    const SvgPoint at = plot.At(one.x, one.y);
    svg->BeginGroup(one.css, one.tooltip);
    svg->Line(at, {frame.right + 14, labels[i]}, "leader soft");
    svg->Circle(at, 6, "dot");
    const double room = kKeyRoom - 18 - TextWidth(one.value, 14.2) - 10;
    svg->Text({frame.right + 18, labels[i] + 4}, FitText(one.name, 14.2, room, Keep::kBeginning),
              "name");
    svg->Text({right, labels[i] + 4}, one.value, "value", TextAnchor::kEnd);
    svg->EndGroup();
  }
}

}  // namespace rudderfish
