// SPDX-License-Identifier: Apache-2.0
#include "report/scaling_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "evaluation/comparison.h"
#include "evaluation/scaling_difference.h"
#include "report/report_page.h"

namespace rudderfish {
namespace {

constexpr double kHalfFigure = 540;  // Of a figure that shares its row with another.
constexpr double kWideFigure = 1100;
constexpr double kKeyRoom = 188;  // Names and figures beside a plot.
constexpr double kLeastMs = 0.1;  // Logarithms begin here.
constexpr int kMutedColours = 6;

double LogMs(double ms) { return std::log10(std::max(ms, kLeastMs)); }

struct KeyRow {
  std::string css, name, value;
  bool dot = false;  // Instead of a line.
};

// Under each other from `at` to the right edge of the figure.
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

// Positions in the order in which they are drawn: the candidate last, above the others.
std::vector<int> DrawnOrder(const ScalingLoadSummary& load) {
  std::vector<int> order;
  for (int p = 0; p < load.candidate(); ++p) {
    if (p != load.baseline) order.push_back(p);
  }
  if (load.baseline >= 0) order.push_back(load.baseline);
  order.push_back(load.candidate());
  return order;
}

struct DifferenceBar {
  double at = 0;
  ConfidenceInterval ci;
  std::string text;
  std::string_view css;
};

// One row of whiskers in one of the two panels.
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

DifferenceBar CostBar(const ScalingLoadSummary& load) {
  const ScalingDifference& d = load.difference();
  const double base = std::max(load.policies[load.baseline].core_hours, 1e-9) / 100;
  const ConfidenceInterval ci{d.core_hours_ci95.low / base, d.core_hours_ci95.high / base};
  return {.at = d.core_hours / base,
          .ci = ci,
          .text = fmt::format("{} % [{}, {}]", SignedNumber(d.core_hours / base),
                              SignedNumber(ci.low), SignedNumber(ci.high)),
          .css = ci.high < 0  ? "good"
                 : ci.low > 0 ? "bad"
                              : "open"};
}

DifferenceBar ViolationBar(const ScalingLoadSummary& load) {
  const ScalingDifference& d = load.difference();
  const ConfidenceInterval ci{100 * d.violation_share_ci95.low, 100 * d.violation_share_ci95.high};
  const double tolerance = 100 * kViolationTolerance;
  return {.at = 100 * d.violation_share,
          .ci = ci,
          .text = fmt::format("{} [{}, {}]", SignedNumber(100 * d.violation_share, 2),
                              SignedNumber(ci.low, 2), SignedNumber(ci.high, 2)),
          .css = ci.high <= tolerance ? "good"
                 : ci.low > tolerance ? "bad"
                                      : "open"};
}

LinearScale ScaleOf(const std::vector<DifferenceBar>& bars, double least, double left,
                    double right) {
  double low = -least, high = least;
  for (const DifferenceBar& bar : bars) {
    low = std::min(low, bar.ci.low);
    high = std::max(high, bar.ci.high);
  }
  const double pad = (high - low) * 0.06;
  return {low - pad, high + pad, left, right};
}

// What the candidate's p95, the axis and the targets need.
struct LatencyRange {
  double low_ms = 1e12, high_ms = 0;

  void Add(double ms) {
    if (ms <= 0 || std::isinf(ms)) return;
    low_ms = std::min(low_ms, std::max(ms, kLeastMs));
    high_ms = std::max(high_ms, ms);
  }
};

}  // namespace

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

std::vector<std::string> ScalingSeries(const ScalingSummary& summary) {
  const size_t policies = summary.loads[0].policies.size();
  std::map<int, int> times;
  for (const ScalingLoadSummary& load : summary.loads) ++times[load.baseline];
  int baseline = -1, most = 0;
  for (const auto& [policy, count] : times) {
    if (count > most) {
      baseline = policy;
      most = count;
    }
  }
  std::vector<std::string> series(policies);
  int muted = 0;
  for (int p = 0; p < static_cast<int>(policies); ++p) {
    series[p] = p + 1 == static_cast<int>(policies) ? "s0"
                : p == baseline                     ? "s1"
                                : fmt::format("s{}", 2 + muted++ % kMutedColours);
  }
  return series;
}

std::string LoadDifferencesFigure(const ScalingSummary& summary) {
  std::vector<const ScalingLoadSummary*> rows;
  std::vector<DifferenceBar> cost, late;
  std::string description;
  for (const ScalingLoadSummary& load : summary.loads) {
    if (load.baseline < 0) continue;
    rows.push_back(&load);
    cost.push_back(CostBar(load));
    late.push_back(ViolationBar(load));
    description +=
        fmt::format("{} against {}: core-hours {}, violations {} points. ", load.load,
                    load.policies[load.baseline].name, cost.back().text, late.back().text);
  }
  CHECK(!rows.empty());
  const double bottom = 40 + 40.0 * static_cast<double>(rows.size());
  Svg svg(kWideFigure, bottom + 46, "Difference to the baseline of every load", description);
  const PlotFrame left{.left = 215, .top = 40, .right = 490, .bottom = bottom};
  const PlotFrame right{.left = 680, .top = 40, .right = 930, .bottom = bottom};
  const LinearScale x = ScaleOf(cost, 1, left.left, left.right);
  const LinearScale v = ScaleOf(late, 0.15, right.left, right.right);
  DrawDifferenceAxis(x, left, "core-hours against the baseline (%)", &svg);
  DrawDifferenceAxis(v, right, "violations against the baseline (points)", &svg);
  const double limit = v(100 * kViolationTolerance);
  svg.Line({limit, right.top}, {limit, right.bottom}, "reference");
  svg.Text({limit + 4, right.top - 10}, "allowed", "hint");
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = 40 + 40 * (static_cast<double>(i) + 0.5);
    svg.Text({0, y - 2}, FitText(rows[i]->load, 13, 190, Keep::kBeginning), "name");
    const std::string against = "against " + rows[i]->policies[rows[i]->baseline].name;
    svg.Text({0, y + 14}, FitText(against, 12, 200, Keep::kBeginning), "hint");
    DrawDifference(cost[i], x, y, left.right + 165, &svg);
    DrawDifference(late[i], v, y, kWideFigure, &svg);
  }
  return std::move(svg).Finish();
}

std::string LatencyFigure(const ScalingSummary& summary, int load) {
  const ScalingLoadSummary& one = summary.loads[load];
  const std::vector<std::string> series = ScalingSeries(summary);
  LatencyRange range;
  std::string description = "Of all requests, 99 % answered within:";
  const size_t at_99 = 2 * (LatencyShares().size() - 1) / 3;
  for (const ScalingPolicySummary& policy : one.policies) {
    if (policy.latency_ms.empty()) continue;
    for (const double ms : policy.latency_ms) range.Add(ms);
    description += fmt::format(" {} {};", policy.name, LatencyText(policy.latency_ms[at_99]));
  }
  CHECK_GT(range.high_ms, 0);
  range.Add(summary.qos_high_ms);
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
             .high = 3,
             .label = "requests answered within",
             .marks = {{0, "0 %"}, {nines, "50 %"}, {1, "90 %"}, {2, "99 %"}, {3, "99.9 %"}}});
  for (const double qos_ms : {summary.qos_low_ms, summary.qos_high_ms}) {
    if (qos_ms <= 0) continue;
    const double x = plot.At(LogMs(qos_ms), 0).x;
    svg.Line({x, frame.top}, {x, frame.bottom}, "reference");
  }
  if (summary.qos_high_ms > 0) {
    const double x = plot.At(LogMs(summary.qos_high_ms), 0).x;
    const bool two = summary.qos_low_ms < summary.qos_high_ms;
    svg.Text({x, frame.top - 14}, two ? "targets" : "target", "hint", TextAnchor::kEnd);
  }
  for (const int p : DrawnOrder(one)) {
    std::vector<SvgPoint> points;
    for (size_t i = 0; i < one.policies[p].latency_ms.size(); ++i) {
      const double ms = one.policies[p].latency_ms[i];
      const double share =
          3.0 * static_cast<double>(i) / static_cast<double>(LatencyShares().size() - 1);
      if (std::isinf(ms)) {  // The rest has no answer: level to the edge.
        if (!points.empty()) points.push_back({high, points.back().y});
        break;
      }
      points.push_back({LogMs(ms), share});
    }
    svg.BeginGroup(series[p], one.policies[p].name);
    plot.Curve(points, "curve");
    svg.EndGroup();
  }
  std::vector<KeyRow> rows;
  const std::vector<int> order = DrawnOrder(one);
  for (auto p = order.rbegin(); p != order.rend(); ++p) {
    const ScalingPolicySummary& policy = one.policies[*p];
    rows.push_back({series[*p], policy.name,
                    policy.latency_ms.empty() ? "none" : LatencyText(policy.latency_ms[at_99])});
  }
  DrawKey(&svg, {frame.right + 12, frame.top + 6}, kHalfFigure, "99 % within", rows);
  return std::move(svg).Finish();
}

namespace {

// Violations as the axis shows them.
std::vector<std::pair<double, std::string>> ViolationMarks(double high) {
  std::vector<std::pair<double, std::string>> marks = {{0, "0 %"}};
  for (const auto& [share, text] : {std::pair(0.001, "0.1 %"), std::pair(0.01, "1 %"),
                                    std::pair(0.1, "10 %"), std::pair(1.0, "100 %")}) {
    if (ViolationScale(share) <= high) marks.emplace_back(ViolationScale(share), text);
  }
  return marks;
}

std::string ShareText(double share) {
  return fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 2 : 1);
}

// Policies that no other beats in both, cheapest first.
std::vector<int> FrontOf(const std::vector<ScalingPolicySummary>& policies) {
  std::vector<int> order;
  for (size_t p = 0; p < policies.size(); ++p) order.push_back(static_cast<int>(p));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const ScalingPolicySummary &x = policies[a], &y = policies[b];
    return std::pair(x.core_hours, x.violation_share) < std::pair(y.core_hours, y.violation_share);
  });
  std::vector<int> front;
  for (const int p : order) {
    if (front.empty() || policies[p].violation_share < policies[front.back()].violation_share)
      front.push_back(p);
  }
  return front;
}

void DrawFront(const std::vector<ScalingPolicySummary>& policies, const Plot& plot, Svg* svg) {
  const PlotFrame& frame = plot.frame();
  std::vector<SvgPoint> steps, upper, lower;
  double y_before = frame.top;
  for (const int p : FrontOf(policies)) {
    const SvgPoint at =
        plot.At(policies[p].core_hours, ViolationScale(policies[p].violation_share));
    steps.push_back(steps.empty() ? SvgPoint{at.x, frame.top} : SvgPoint{at.x, y_before});
    steps.push_back(at);
    y_before = at.y;
  }
  steps.push_back({frame.right, y_before});
  for (const SvgPoint& point : steps) upper.push_back({point.x, frame.top});
  svg->Band(upper, steps, "dominated");
  svg->Polyline(steps, "front");
}

}  // namespace

std::string ParetoFigure(const ScalingSummary& summary, int load) {
  const ScalingLoadSummary& one = summary.loads[load];
  const std::vector<std::string> series = ScalingSeries(summary);
  double low = one.policies[0].core_hours, high = low, latest = ViolationScale(0.002);
  std::string description;
  for (const ScalingPolicySummary& policy : one.policies) {
    low = std::min(low, policy.core_hours);
    high = std::max(high, policy.core_hours);
    latest = std::max(latest, ViolationScale(policy.violation_share));
    description += fmt::format("{}: {:.2f} core-hours, {} violations. ", policy.name,
                               policy.core_hours, ShareText(policy.violation_share));
  }
  const double pad = std::max((high - low) * 0.1, 0.02 * std::max(high, 0.1));
  Svg svg(kHalfFigure, 400, "Core-hours against violations", description);
  const PlotFrame frame{.left = 52, .top = 34, .right = kHalfFigure - kKeyRoom, .bottom = 350};
  Plot plot(&svg, frame,
            {.low = std::max(0.0, low - pad),
             .high = high + pad,
             .label = "core-hours an episode",
             .ticks = 4},
            {.low = 0,
             .high = latest * 1.06,
             .label = "late or failed requests",
             .marks = ViolationMarks(latest * 1.06)});
  DrawFront(one.policies, plot, &svg);
  if (one.policies.size() > 1) {
    svg.Text({kHalfFigure, frame.bottom + 20},
             fmt::format("hypervolume {:.3f}", Hypervolume(one.policies)), "hint",
             TextAnchor::kEnd);
    const std::string without = fmt::format(" {:.3f}", Hypervolume(one.policies, one.candidate()));
    svg.Text({kHalfFigure, frame.bottom + 38},
             "without " + FitText(one.policies.back().name, 12, 80, Keep::kBeginning) + without,
             "hint", TextAnchor::kEnd);
  }
  const std::vector<int> order = DrawnOrder(one);
  std::vector<double> ends;
  for (const int p : order) {
    const ScalingPolicySummary& policy = one.policies[p];
    ends.push_back(plot.At(0, ViolationScale(policy.violation_share)).y);
  }
  const std::vector<double> labels = SpreadLabels(ends, 20, frame.top + 8, frame.bottom - 8);
  for (size_t i = 0; i < order.size(); ++i) {
    const ScalingPolicySummary& policy = one.policies[order[i]];
    const SvgPoint at = plot.At(policy.core_hours, ViolationScale(policy.violation_share));
    const std::string value = ShareText(policy.violation_share);
    svg.BeginGroup(series[order[i]],
                   fmt::format("{}: {:.2f} core-hours, {}", policy.name, policy.core_hours, value));
    svg.Line(at, {frame.right + 14, labels[i]}, "leader soft");
    svg.Circle(at, 6, "dot");
    const double room = kKeyRoom - 18 - TextWidth(value, 14.2) - 10;
    svg.Text({frame.right + 18, labels[i] + 4}, FitText(policy.name, 14.2, room, Keep::kBeginning),
             "name");
    svg.Text({kHalfFigure, labels[i] + 4}, value, "value", TextAnchor::kEnd);
    svg.EndGroup();
  }
  return std::move(svg).Finish();
}

}  // namespace rudderfish
