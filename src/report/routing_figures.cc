// SPDX-License-Identifier: Apache-2.0
#include "report/routing_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "evaluation/routing_comparison.h"
#include "report/figure_parts.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

using Of = const RoutingFigures&;

constexpr int kMuted = 6, kWashes = 8;  // Colours of the style sheet.

struct CostPart {
  const char* name;
  double RoutingFigures::*sum;
};
constexpr CostPart kCostParts[] = {
    {"nodes", &RoutingFigures::nodes},   {"egress", &RoutingFigures::egress},
    {"carbon", &RoutingFigures::carbon}, {"late", &RoutingFigures::late},
    {"wait", &RoutingFigures::wait},     {"change", &RoutingFigures::change}};

// Over seeds and episodes.
double MeanOf(const RoutingEvaluation& evaluation, int variant, int policy,
              const std::function<double(const RoutingFigures&)>& figure) {
  double sum = 0;
  for (int seed = 0; seed < evaluation.seeds(policy); ++seed) {
    for (int i = 0; i < evaluation.episodes; ++i)
      sum += figure(evaluation.at(variant, policy, seed, i));
  }
  return sum / (evaluation.seeds(policy) * evaluation.episodes);
}

double ObjectiveOf(const RoutingEvaluation& evaluation, int variant, int policy) {
  return MeanOf(evaluation, variant, policy, [](const auto& one) { return one.objective(); });
}

// The candidate last, above the others; before it the baseline.
std::vector<int> DrawnOrder(const RoutingEvaluation& evaluation, int variant) {
  const int candidate = static_cast<int>(evaluation.policies.size()) - 1;
  const int baseline = BaselineOf(evaluation, variant);
  std::vector<int> order;
  for (int p = 0; p < candidate; ++p) {
    if (p != baseline) order.push_back(p);
  }
  if (baseline >= 0) order.push_back(baseline);
  order.push_back(candidate);
  return order;
}

std::string LateText(double share) { return fmt::format("{:.2f} %", 100 * share); }

// The time by which so many are answered; infinite if there is none.
double TimeOf(const RoutingRecord& record, const std::vector<double>& within, double share) {
  for (size_t i = 0; i < within.size(); ++i) {
    if (within[i] < share) continue;
    if (i == 0) return record.times_s[0];
    const double part = (share - within[i - 1]) / (within[i] - within[i - 1]);
    return record.times_s[i - 1] + part * (record.times_s[i] - record.times_s[i - 1]);
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

std::vector<std::string> RoutingSeries(const RoutingEvaluation& evaluation, int variant) {
  const int candidate = static_cast<int>(evaluation.policies.size()) - 1;
  const int baseline = BaselineOf(evaluation, variant);
  std::vector<std::string> series;
  int muted = 0;
  for (int p = 0; p <= candidate; ++p) {
    series.push_back(p == candidate  ? "s0"
                     : p == baseline ? "s1"
                                     : fmt::format("s{}", 2 + muted++ % kMuted));
  }
  return series;
}

std::string CostPartsFigure(const RoutingEvaluation& evaluation, int variant) {
  constexpr double kRow = 34, kTop = 44, kNames = 118, kValues = 62;
  const auto policies = static_cast<int>(evaluation.policies.size());
  const std::vector<std::string> series = RoutingSeries(evaluation, variant);
  std::vector<int> order(policies);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return ObjectiveOf(evaluation, variant, a) < ObjectiveOf(evaluation, variant, b);
  });
  std::string description;
  for (const int p : order) {
    description += fmt::format("{}: {:.3f}, of which", evaluation.policies[p],
                               ObjectiveOf(evaluation, variant, p));
    for (const CostPart& part : kCostParts) {
      description += fmt::format(
          " {} {:.3f}", part.name,
          MeanOf(evaluation, variant, p, [&](Of one) { return one.PerRequest(one.*part.sum); }));
    }
    description += ". ";
  }
  Svg svg(kHalfFigure, kTop + kRow * policies + 8, "What a request costs, by part", description);
  double x = 0;
  for (int i = 0; i < static_cast<int>(std::size(kCostParts)); ++i) {
    svg.Rect({x, 6}, 12, 12, 2, fmt::format("pod w{}", i));
    svg.Text({x + 17, 16}, kCostParts[i].name, "hint");
    x += 17 + TextWidth(kCostParts[i].name, 12) + 18;
  }
  const double most = ObjectiveOf(evaluation, variant, order.back());
  const LinearScale scale(0, std::max(most, 1e-9), kNames, kHalfFigure - kValues);
  double y = kTop;
  for (const int p : order) {
    svg.BeginGroup(series[p], evaluation.policies[p]);
    svg.Text({0, y + 16}, FitText(evaluation.policies[p], 14.2, kNames - 12, Keep::kBeginning),
             "name");
    double sum = 0;
    for (int i = 0; i < static_cast<int>(std::size(kCostParts)); ++i) {
      const double part = MeanOf(evaluation, variant, p,
                                 [&](Of one) { return one.PerRequest(one.*kCostParts[i].sum); });
      svg.Rect({scale(sum), y}, scale(sum + part) - scale(sum), 22, 0, fmt::format("pod w{}", i));
      sum += part;
    }
    svg.Text({kHalfFigure, y + 16}, fmt::format("{:.4f}", sum), "value", TextAnchor::kEnd);
    svg.EndGroup();
    y += kRow;
  }
  return std::move(svg).Finish();
}

std::string RoutingParetoFigure(const RoutingEvaluation& evaluation, int variant) {
  const std::vector<std::string> series = RoutingSeries(evaluation, variant);
  std::vector<PlottedPolicy> points;
  double low = std::numeric_limits<double>::infinity(), high = 0, latest = 0.001;
  std::string description;
  for (const int p : DrawnOrder(evaluation, variant)) {
    const double cost = MeanOf(evaluation, variant, p, [](Of one) {
      return one.PerRequest(one.nodes + one.egress + one.carbon);
    });
    const double late = MeanOf(evaluation, variant, p, [](Of one) { return one.late_share(); });
    const std::string words =
        fmt::format("{}: {:.4f}, {} late", evaluation.policies[p], cost, LateText(late));
    description += words + ". ";
    points.push_back({.css = series[p],
                      .name = evaluation.policies[p],
                      .value = LateText(late),
                      .tooltip = words,
                      .x = cost,
                      .y = 100 * late});
    low = std::min(low, cost);
    high = std::max(high, cost);
    latest = std::max(latest, late);
  }
  const double pad = std::max(0.1 * (high - low), 0.01 * high + 1e-6);
  Svg svg(kHalfFigure, 400, "Cost against late requests", description);
  const PlotFrame frame{.left = 52, .top = 34, .right = kHalfFigure - kKeyRoom, .bottom = 350};
  Plot plot(&svg, frame,
            {.low = std::max(0.0, low - pad),
             .high = high + pad,
             .label = "nodes, egress and carbon of a request",
             .ticks = 4},
            {.low = 0, .high = 110 * latest, .label = "late requests", .suffix = " %"});
  DrawFront(points, plot, &svg);
  DrawPolicies(points, plot, &svg);
  return std::move(svg).Finish();
}

std::string RoutingLatencyFigure(const RoutingEvaluation& evaluation, const RoutingRecord& record,
                                 int variant) {
  const std::vector<std::string> series = RoutingSeries(evaluation, variant);
  std::vector<LatencyCurve> curves;
  for (const int p : DrawnOrder(evaluation, variant)) {
    const std::vector<double>& within = record.variants[variant].policies[p].within;
    LatencyCurve curve{.css = series[p],
                       .name = evaluation.policies[p],
                       .p99_ms = 1000 * TimeOf(record, within, 0.99)};
    for (size_t i = 0; i < within.size(); ++i) {
      // Before the first answers the curve is flat.
      if (i + 1 < within.size() && within[i + 1] <= 0) continue;
      curve.within.emplace_back(1000 * record.times_s[i], std::max(0.0, within[i]));
    }
    curves.push_back(std::move(curve));
  }
  return LatencyCurvesFigure(curves, 1000 * record.deadline_s, 1000 * record.deadline_s);
}

namespace {

constexpr double kPanelGap = 46, kColumnGap = 36, kLeft = 52;

using ByRegion = std::function<double(const RoutingMoment&, size_t)>;

// Regions of one column and its panels.
struct RegionColumn {
  const std::vector<RoutingMoment>* timeline;
  std::string css, name;
  double left = 0, right = 0;
};

// Those that serve most, each with a colour of its own; -1: the others, in one.
std::vector<int> ShownRegions(const std::vector<RegionColumn>& columns) {
  const size_t regions = columns[0].timeline->front().load_per_s.size();
  std::vector<double> served(regions);
  for (const RegionColumn& column : columns) {
    for (const RoutingMoment& moment : *column.timeline) {
      for (size_t r = 0; r < regions; ++r) served[r] += moment.load_per_s[r];
    }
  }
  std::vector<int> order(regions);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return served[a] > served[b]; });
  if (order.size() <= kWashes) return order;
  order.resize(kWashes - 1);
  order.push_back(-1);
  return order;
}

double ValueOf(const RoutingMoment& moment, const std::vector<int>& shown, int region,
               const ByRegion& value) {
  if (region >= 0) return value(moment, static_cast<size_t>(region));
  double rest = 0;
  for (size_t r = 0; r < moment.load_per_s.size(); ++r) {
    if (std::find(shown.begin(), shown.end(), static_cast<int>(r)) == shown.end())
      rest += value(moment, r);
  }
  return rest;
}

double HighestSum(const std::vector<RegionColumn>& columns, const ByRegion& value) {
  double high = 0;
  for (const RegionColumn& column : columns) {
    for (const RoutingMoment& moment : *column.timeline) {
      double sum = 0;
      for (size_t r = 0; r < moment.load_per_s.size(); ++r) sum += value(moment, r);
      high = std::max(high, sum);
    }
  }
  return high > 0 ? 1.06 * high : 1;
}

Plot PanelOf(const RegionColumn& column, double top, double height, const PlotAxis& y, bool last,
             Svg* svg) {
  return Plot(svg, {.left = column.left, .top = top, .right = column.right, .bottom = top + height},
              {.low = 0,
               .high = column.timeline->back().hours,
               .label = last ? "time (hours)" : "",
               .ticks = last ? 6 : 0},
              y);
}

void DrawStack(const RegionColumn& column, const std::vector<int>& shown, const ByRegion& value,
               Plot* plot) {
  std::vector<SvgPoint> below;
  for (const RoutingMoment& moment : *column.timeline) below.push_back({moment.hours, 0});
  for (size_t i = 0; i < shown.size(); ++i) {
    std::vector<SvgPoint> above = below;
    for (size_t at = 0; at < above.size(); ++at)
      above[at].y += ValueOf((*column.timeline)[at], shown, shown[i], value);
    plot->Area(above, below, fmt::format("pod w{}", i));
    below = std::move(above);
  }
}

void DrawRegionKey(const RoutingRecord& record, const std::vector<int>& shown, Svg* svg) {
  double x = 0;
  for (size_t i = 0; i < shown.size(); ++i) {
    const std::string name = shown[i] < 0 ? "others" : record.regions[shown[i]];
    const std::string text = FitText(name, 12, 112, Keep::kBeginning);
    svg->Rect({x, 2}, 12, 12, 2, fmt::format("pod w{}", i));
    svg->Text({x + 16, 12}, text, "hint");
    x += 16 + TextWidth(text, 12) + 12;
  }
}

std::vector<RegionColumn> ColumnsOf(const RoutingEvaluation& evaluation,
                                    const RoutingRecord& record, int variant) {
  const std::vector<std::string> series = RoutingSeries(evaluation, variant);
  const std::vector<RoutingPolicyRecord>& policies = record.variants[variant].policies;
  std::vector<RegionColumn> columns;
  for (int p = static_cast<int>(policies.size()) - 1; p >= 0; --p) {
    if (policies[p].timeline.empty()) continue;
    columns.push_back(
        {.timeline = &policies[p].timeline, .css = series[p], .name = evaluation.policies[p]});
  }
  CHECK(!columns.empty());
  const double width =
      (kWideFigure - kColumnGap * static_cast<double>(columns.size() - 1)) / columns.size();
  for (size_t i = 0; i < columns.size(); ++i) {
    columns[i].left = static_cast<double>(i) * (width + kColumnGap) + kLeft;
    columns[i].right = static_cast<double>(i) * (width + kColumnGap) + width;
  }
  return columns;
}

}  // namespace

std::string RegionsFigure(const RoutingEvaluation& evaluation, const RoutingRecord& record,
                          int variant) {
  constexpr double kTop = 80, kTall = 150, kLow = 84;
  const std::vector<RegionColumn> columns = ColumnsOf(evaluation, record, variant);
  const std::vector<int> shown = ShownRegions(columns);
  const ByRegion load = [](const RoutingMoment& one, size_t r) { return one.load_per_s[r]; };
  const ByRegion nodes = [](const RoutingMoment& one, size_t r) {
    return static_cast<double>(one.on_demand[r] + one.spot[r]);
  };
  double latest = 0.01;
  std::string description = fmt::format(
      "Episode {} under {}.", record.variants[variant].episode_shown, evaluation.variants[variant]);
  for (const RegionColumn& column : columns) {
    double late = 0, node_hours = 0;
    for (const RoutingMoment& one : *column.timeline) {
      latest = std::max(latest, one.late_share);
      late += one.late_share / static_cast<double>(column.timeline->size());
      for (size_t r = 0; r < record.regions.size(); ++r)
        node_hours += nodes(one, r) / static_cast<double>(column.timeline->size());
    }
    description += fmt::format(" {}: {:.1f} nodes in the mean, {} of requests late.", column.name,
                               node_hours, LateText(late));
  }
  Svg svg(kWideFigure, kTop + 2 * (kTall + kPanelGap) + kLow + kPanelGap, "One episode by region",
          description);
  DrawRegionKey(record, shown, &svg);
  for (const RegionColumn& column : columns) {
    double top = kTop;
    svg.BeginGroup(column.css, column.name);
    svg.Text({column.left, 38}, FitText(column.name, 14.2, 300, Keep::kBeginning), "name");
    svg.EndGroup();
    Plot served = PanelOf(column, top, kTall,
                          {.low = 0,
                           .high = HighestSum(columns, load),
                           .label = "requests per second, by the region that serves",
                           .ticks = 4},
                          false, &svg);
    DrawStack(column, shown, load, &served);
    top += kTall + kPanelGap;
    Plot held = PanelOf(column, top, kTall,
                        {.low = 0,
                         .high = HighestSum(columns, nodes),
                         .label = "nodes by region; on demand below the line",
                         .ticks = 4},
                        false, &svg);
    DrawStack(column, shown, nodes, &held);
    std::vector<SvgPoint> on_demand, late;
    for (const RoutingMoment& one : *column.timeline) {
      const int sum = std::accumulate(one.on_demand.begin(), one.on_demand.end(), 0);
      on_demand.push_back({one.hours, static_cast<double>(sum)});
      late.push_back({one.hours, 100 * one.late_share});
    }
    svg.BeginGroup(column.css, column.name);
    held.Curve(on_demand, "curve");
    top += kTall + kPanelGap;
    Plot missed = PanelOf(
        column, top, kLow,
        {.low = 0, .high = 106 * latest, .label = "late requests", .ticks = 3, .suffix = " %"},
        true, &svg);
    missed.Curve(late, "curve");
    svg.EndGroup();
  }
  return std::move(svg).Finish();
}

}  // namespace rudderfish
