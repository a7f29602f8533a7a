// SPDX-License-Identifier: Apache-2.0
#include "report/scaling_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "evaluation/comparison.h"
#include "evaluation/scaling_difference.h"
#include "report/figure_parts.h"
#include "report/report_page.h"

namespace rudderfish {
namespace {

constexpr int kMutedColours = 6;

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

}  // namespace

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
  const LinearScale x = DifferenceScale(cost, 1, left.left, left.right);
  const LinearScale v = DifferenceScale(late, 0.15, right.left, right.right);
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
  const std::vector<double> shares = LatencyShares();
  const size_t at_99 = 2 * (shares.size() - 1) / 3;
  std::vector<LatencyCurve> curves;
  for (const int p : DrawnOrder(one)) {
    const ScalingPolicySummary& policy = one.policies[p];
    LatencyCurve curve{.css = series[p], .name = policy.name};
    for (size_t i = 0; i < policy.latency_ms.size(); ++i)
      curve.within.emplace_back(policy.latency_ms[i], shares[i]);
    if (!curve.within.empty()) curve.p99_ms = policy.latency_ms[at_99];
    curves.push_back(std::move(curve));
  }
  return LatencyCurvesFigure(curves, summary.qos_low_ms, summary.qos_high_ms);
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
  std::vector<PlottedPolicy> points;
  for (const int p : DrawnOrder(one)) {
    const ScalingPolicySummary& policy = one.policies[p];
    const std::string value = ShareText(policy.violation_share);
    points.push_back(
        {.css = series[p],
         .name = policy.name,
         .value = value,
         .tooltip = fmt::format("{}: {:.2f} core-hours, {}", policy.name, policy.core_hours, value),
         .x = policy.core_hours,
         .y = ViolationScale(policy.violation_share)});
  }
  DrawFront(points, plot, &svg);
  if (one.policies.size() > 1) {
    svg.Text({kHalfFigure, frame.bottom + 20},
             fmt::format("hypervolume {:.3f}", Hypervolume(one.policies)), "hint",
             TextAnchor::kEnd);
    const std::string without = fmt::format(" {:.3f}", Hypervolume(one.policies, one.candidate()));
    svg.Text({kHalfFigure, frame.bottom + 38},
             "without " + FitText(one.policies.back().name, 12, 80, Keep::kBeginning) + without,
             "hint", TextAnchor::kEnd);
  }
  DrawPolicies(points, plot, &svg);
  return std::move(svg).Finish();
}

}  // namespace rudderfish
