// SPDX-License-Identifier: Apache-2.0
#include "report/report_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/svg.h"

namespace rudderfish {
namespace {

constexpr double kHalfWidth = 540;  // Of a figure that shares its row with another.
constexpr double kKeyWidth = 188;   // Names and figures beside a plot.
constexpr int kMovesDrawn = 400;
constexpr int kMutedSeries = 6;  // Colours for policies that are neither candidate nor baseline.

// A name in the key, `begin` px right of the plot, cut to what its value leaves. Names are of
// 13 px; those of the candidate and of the baseline are bold, and as wide as if of 14.2.
std::string KeyName(std::string_view name, double begin, std::string_view value) {
  constexpr double kFontPx = 14.2, kGap = 10;
  const double room = kKeyWidth - begin - TextWidth(value, kFontPx) - kGap;
  return FitText(name, kFontPx, room, Keep::kBeginning);
}

double Padded(double low, double high, double share) { return (high - low) * share; }

std::string SignedMs(double value) {
  std::string text = SignedText(value, 1);
  if (text[0] == '-') text.replace(0, 1, "\u2212");
  return text;
}

std::string DifferenceText(const PairedResult& paired) {
  return fmt::format("{} [{}, {}]", SignedMs(paired.difference_ms),
                     SignedMs(paired.difference_ci.low), SignedMs(paired.difference_ci.high));
}

struct DifferenceRow {
  std::string name;
  const PairedResult* paired = nullptr;
};

void DrawDifferenceRow(Svg* svg, const LinearScale& x, double y, const DifferenceRow& row) {
  const ConfidenceInterval& ci = row.paired->difference_ci;
  const std::string_view css = ci.high < 0 ? "good" : ci.low > 0 ? "bad" : "open";
  svg->BeginGroup(css, fmt::format("{}: {} ms", row.name, DifferenceText(*row.paired)));
  svg->Text({0, y + 4}, FitText(row.name, 13, 160, Keep::kBeginning), "name");
  svg->Line({x(ci.low), y}, {x(ci.high), y}, "whisker");
  svg->Circle({x(row.paired->difference_ms), y}, 6, "dot");
  svg->Text({kHalfWidth, y + 4}, DifferenceText(*row.paired), "value", TextAnchor::kEnd);
  svg->EndGroup();
}

double MeanFinal(const Comparison& comparison, int policy) {
  return comparison.policies[policy].mean_final_ms;
}

// Mean latency of a policy after 0 ... last moves.
std::vector<SvgPoint> LatencyAfterMoves(const EvaluatedPolicy& policy, int last) {
  std::vector<double> sums(last + 1);
  for (const EvaluatedEpisode& episode : policy.episodes) {
    double latency_ms = episode.initial.latency_ms;
    for (int k = 0; k <= last; ++k) {
      const bool moved = k > 0 && k <= static_cast<int>(episode.decisions.size());
      if (moved) latency_ms -= episode.decisions[k - 1].predicted_ms;
      sums[k] += latency_ms;
    }
  }
  std::vector<SvgPoint> points;
  for (int k = 0; k <= last; ++k) {
    points.push_back(
        {static_cast<double>(k), sums[k] / static_cast<double>(policy.episodes.size())});
  }
  return points;
}

// "better on 43   equal on 12   worse on 5", each in its colour, ending at `end`.
void DrawCounts(const PairedResult& paired, SvgPoint end, Svg* svg) {
  const std::pair<std::string, std::string_view> parts[] = {
      {fmt::format("worse on {}", paired.starts_worse), "note bad"},
      {fmt::format("equal on {}", paired.starts_equal), "note open"},
      {fmt::format("better on {}", paired.starts_better), "note good"}};
  for (const auto& [text, css] : parts) {
    svg->Text(end, text, css, TextAnchor::kEnd);
    end.x -= TextWidth(text, 14) + 18;
  }
}

// Enough for 19 of 20 episodes of the candidate and the baseline.
int LastMoveShown(const Evaluation& evaluation, const Comparison& comparison,
                  const ReportPolicies& policies) {
  std::vector<int> shown = {policies.candidate};
  if (comparison.verdict) shown.push_back(comparison.verdict->baseline);
  double most = 3;
  for (int p : shown) {
    std::vector<double> moves;
    for (const EvaluatedEpisode& episode : evaluation.policies[p].episodes) {
      moves.push_back(static_cast<double>(episode.decisions.size()));
    }
    most = std::max(most, Quantile(moves, 0.95));
  }
  return std::min(static_cast<int>(std::ceil(most)) + 1, kMovesDrawn);
}

}  // namespace

ReportPolicies::ReportPolicies(const Evaluation& evaluation, const Comparison& comparison)
    : candidate(static_cast<int>(evaluation.policies.size()) - 1),
      by_final(evaluation.policies.size()),
      series(evaluation.policies.size()) {
  std::iota(by_final.begin(), by_final.end(), 0);
  std::stable_sort(by_final.begin(), by_final.end(), [&](int a, int b) {
    return MeanFinal(comparison, a) < MeanFinal(comparison, b);
  });
  const int baseline = comparison.verdict ? comparison.verdict->baseline : -1;
  int muted = 0;
  for (int p = 0; p <= candidate; ++p) {
    series[p] = p == candidate  ? "s0"
                : p == baseline ? "s1"
                                : fmt::format("s{}", 2 + muted++ % kMutedSeries);
  }
}

std::string DifferenceFigure(const Evaluation& evaluation, const Comparison& comparison) {
  const Comparison::Verdict& verdict = *comparison.verdict;
  std::vector<DifferenceRow> rows = {{"all starts", &verdict.paired}};
  for (const Comparison::Pattern& pattern : comparison.patterns) {
    rows.push_back({pattern.name, &*pattern.paired});
  }
  double low = 0, high = 0;
  for (const DifferenceRow& row : rows) {
    low = std::min(low, row.paired->difference_ci.low);
    high = std::max(high, row.paired->difference_ci.high);
  }
  const double pad = std::max(Padded(low, high, 0.08), 0.5);
  const PlotFrame frame{.left = 170,
                        .top = 34,
                        .right = kHalfWidth - 160,
                        .bottom = 34 + 44.0 * static_cast<double>(rows.size())};
  const std::string& candidate = evaluation.policies[verdict.candidate].name;
  const std::string& baseline = evaluation.policies[verdict.baseline].name;
  Svg svg(kHalfWidth, frame.bottom + 46, "Paired difference in final latency",
          fmt::format("{} minus {}: {}", candidate, baseline, verdict.text));
  const LinearScale x(low - pad, high + pad, frame.left, frame.right);
  const std::vector<double> ticks = NiceTicks(low - pad, high + pad, 4);
  for (double tick : ticks) {
    svg.Line({x(tick), frame.top}, {x(tick), frame.bottom}, tick == 0 ? "zero" : "grid");
    std::string text = TickText(tick, ticks.size() > 1 ? ticks[1] - ticks[0] : 1);
    svg.Text({x(tick), frame.bottom + 18}, tick > 0 ? "+" + text : text, "tick",
             TextAnchor::kMiddle);
  }
  const double room = x(0) - 8 - TextWidth("\u2190  better", 12);
  svg.Text({x(0) - 8, frame.top - 12},
           fmt::format("\u2190 {} better", FitText(candidate, 12, room, Keep::kBeginning)), "hint",
           TextAnchor::kEnd);
  svg.Text({frame.right, frame.bottom + 38}, "difference in final latency (ms)", "axis-label",
           TextAnchor::kEnd);
  for (size_t i = 0; i < rows.size(); ++i) {
    DrawDifferenceRow(&svg, x, frame.top + 44 * (static_cast<double>(i) + 0.5), rows[i]);
  }
  return std::move(svg).Finish();
}

std::string IntervalFigure(const std::vector<IntervalRow>& rows, const IntervalAxis& axis) {
  double low = axis.reference.value_or(rows[0].interval.low), high = low;
  for (const IntervalRow& row : rows) {
    low = std::min(low, row.interval.low);
    high = std::max(high, row.interval.high);
  }
  const double pad = std::max(Padded(low, high, 0.05), axis.least_pad);
  const PlotFrame frame{.left = 150,
                        .top = 34,
                        .right = kHalfWidth - 150,
                        .bottom = 34 + 34.0 * static_cast<double>(rows.size())};
  Svg svg(kHalfWidth, frame.bottom + 46, axis.title, axis.description);
  const LinearScale x(std::max(0.0, low - pad), high + pad, frame.left, frame.right);
  const std::vector<double> ticks = NiceTicks(x.low(), x.high(), 4);
  for (double tick : ticks) {
    svg.Line({x(tick), frame.top}, {x(tick), frame.bottom}, "grid");
    svg.Text({x(tick), frame.bottom + 18},
             TickText(tick, ticks.size() > 1 ? ticks[1] - ticks[0] : 1), "tick",
             TextAnchor::kMiddle);
  }
  if (axis.reference) {
    svg.Line({x(*axis.reference), frame.top}, {x(*axis.reference), frame.bottom}, "reference");
    svg.Text({x(*axis.reference), frame.top - 12}, axis.reference_text, "hint",
             TextAnchor::kMiddle);
  }
  svg.Text({frame.right, frame.bottom + 38}, axis.label, "axis-label", TextAnchor::kEnd);
  double y = frame.top + 17;
  for (const IntervalRow& row : rows) {
    svg.BeginGroup(row.series, row.name);
    svg.Text({0, y + 4}, FitText(row.name, 13, 140, Keep::kBeginning), "name");
    svg.Line({x(row.interval.low), y}, {x(row.interval.high), y}, "whisker");
    svg.Circle({x(row.value), y}, 5, "dot");
    svg.Text({kHalfWidth, y + 4}, row.text, "value", TextAnchor::kEnd);
    svg.EndGroup();
    y += 34;
  }
  return std::move(svg).Finish();
}

std::string IntervalFigure(const Evaluation& evaluation, const Comparison& comparison,
                           const ReportPolicies& policies) {
  IntervalAxis axis{.title = "Mean final latency of every policy",
                    .description = "Mean final latency with 95 % interval.",
                    .label = "mean final latency (ms)",
                    .least_pad = 0.5,
                    .reference = comparison.policies[0].mean_initial_ms,
                    .reference_text = "start"};
  std::vector<IntervalRow> rows;
  for (int p : policies.by_final) {
    const PolicySummary& summary = comparison.policies[p];
    axis.description +=
        fmt::format(" {}: {} ms {}.", evaluation.policies[p].name, MsText(summary.mean_final_ms),
                    IntervalText(summary.mean_final_ci, 1));
    rows.push_back({.name = evaluation.policies[p].name,
                    .series = policies.series[p],
                    .value = summary.mean_final_ms,
                    .interval = summary.mean_final_ci,
                    .text = fmt::format("{} {}", MsText(summary.mean_final_ms),
                                        IntervalText(summary.mean_final_ci, 0))});
  }
  return IntervalFigure(rows, axis);
}

std::string DistributionFigure(const Evaluation& evaluation, const ReportPolicies& policies) {
  constexpr size_t kTailFrom = 50;  // Of fewer episodes all are shown, of more the lower 98 %.
  std::vector<std::vector<double>> finals;
  std::vector<double> medians, all;
  for (const EvaluatedPolicy& policy : evaluation.policies) {
    std::vector<double>& values = finals.emplace_back();
    for (const EvaluatedEpisode& episode : policy.episodes)
      values.push_back(episode.final.latency_ms);
    std::sort(values.begin(), values.end());
    medians.push_back(Quantile(values, 0.5));
    all.push_back(values.size() < kTailFrom ? values.back() : Quantile(values, 0.98));
  }
  const double low = std::min_element(finals.begin(), finals.end())->front();
  const double high = std::max(*std::max_element(all.begin(), all.end()), low + 1);
  std::vector<int> order = policies.by_final;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return medians[a] < medians[b]; });
  std::string description = "Medians:";
  for (int p : order)
    description += fmt::format(" {} {} ms;", evaluation.policies[p].name, MsText(medians[p]));
  Svg svg(kHalfWidth, 400, "Distribution of final latency", description);
  const PlotFrame frame{.left = 44, .top = 34, .right = kHalfWidth - kKeyWidth, .bottom = 350};
  Plot plot(&svg, frame,
            {.low = std::max(0.0, low - Padded(low, high, 0.05)),
             .high = high,
             .label = "final latency (ms)"},
            {.low = 0,
             .high = 100,
             .label = "episodes that end at or below",
             .ticks = 4,
             .suffix = " %"});
  // The candidate last, above the others.
  std::vector<int> drawn(order.rbegin(), order.rend());
  std::stable_partition(drawn.begin(), drawn.end(), [&](int p) { return p != policies.candidate; });
  for (int p : drawn) {
    std::vector<SvgPoint> steps = {{finals[p][0], 0}};
    const auto n = static_cast<double>(finals[p].size());
    for (size_t i = 0; i < finals[p].size(); ++i) {
      steps.push_back({finals[p][i], 100 * static_cast<double>(i + 1) / n});
    }
    svg.BeginGroup(policies.series[p], evaluation.policies[p].name);
    plot.Staircase(steps, "curve");
    svg.EndGroup();
  }
  double y = frame.top + 6;
  svg.Text({kHalfWidth, y}, "median, ms", "hint", TextAnchor::kEnd);
  for (int p : order) {
    y += 24;
    svg.BeginGroup(policies.series[p], evaluation.policies[p].name);
    svg.Line({frame.right + 12, y - 4}, {frame.right + 34, y - 4}, "curve");
    const std::string median = fmt::format("{:.0f}", medians[p]);
    svg.Text({frame.right + 40, y}, KeyName(evaluation.policies[p].name, 40, median), "name");
    svg.Text({kHalfWidth, y}, median, "value", TextAnchor::kEnd);
    svg.EndGroup();
  }
  return std::move(svg).Finish();
}

std::string MovesFigure(const Evaluation& evaluation, const Comparison& comparison,
                        const ReportPolicies& policies) {
  const int last = LastMoveShown(evaluation, comparison, policies);
  std::vector<std::vector<SvgPoint>> curves;
  double low = comparison.policies[0].mean_initial_ms, high = low;
  std::string description = fmt::format("After {} moves:", last);
  for (const EvaluatedPolicy& policy : evaluation.policies) {
    curves.push_back(LatencyAfterMoves(policy, last));
    for (const SvgPoint& point : curves.back()) {
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
    description += fmt::format(" {} {} ms;", policy.name, MsText(curves.back().back().y));
  }
  Svg svg(kHalfWidth, 400, "Mean latency against moves made", description);
  const PlotFrame frame{.left = 44, .top = 34, .right = kHalfWidth - kKeyWidth, .bottom = 350};
  const double pad = std::max(Padded(low, high, 0.06), 0.5);
  Plot plot(&svg, frame,
            {.low = 0,
             .high = static_cast<double>(last),
             .label = "moves made",
             .ticks = std::min(last, 8)},
            {.low = std::max(0.0, low - pad), .high = high + pad, .label = "mean latency (ms)"});
  std::vector<double> ends;
  for (int p : policies.by_final) ends.push_back(plot.At(0, curves[p].back().y).y);
  const std::vector<double> labels = SpreadLabels(ends, 18, frame.top, frame.bottom);
  for (size_t i = policies.by_final.size(); i-- > 0;) {
    const int p = policies.by_final[i];
    svg.BeginGroup(policies.series[p], evaluation.policies[p].name);
    plot.Curve(curves[p], "curve");
    svg.Line({frame.right + 3, ends[i]}, {frame.right + 14, labels[i]}, "leader");
    const std::string end = fmt::format("{:.0f}", curves[p].back().y);
    svg.Text({frame.right + 18, labels[i] + 4}, KeyName(evaluation.policies[p].name, 18, end),
             "name");
    svg.Text({kHalfWidth, labels[i] + 4}, end, "value", TextAnchor::kEnd);
    svg.EndGroup();
  }
  return std::move(svg).Finish();
}

namespace {

std::string_view BarStyle(double difference) {
  if (difference < -kTie) return "bar good";
  return difference > kTie ? "bar bad" : "bar open";
}

// A bar each, side by side. Where they would be finer than pixels can show apart, those of one
// style are one area with steps: bars and gaps of such a size make patterns of their own.
void DrawBars(std::span<const double> ascending, const LinearScale& y, const PlotFrame& frame,
              Svg* svg) {
  constexpr double kFinest = 4, kWidest = 26, kFlat = 1.5;
  const double slot = (frame.right - frame.left) / static_cast<double>(ascending.size());
  const double gap = slot < kFinest ? 0 : std::max(slot * 0.24, slot - kWidest);
  std::vector<SvgPoint> tops, bottoms;
  for (size_t i = 0; i < ascending.size(); ++i) {
    const double left = frame.left + slot * static_cast<double>(i);
    const double bottom = y(std::min(ascending[i], 0.0));
    const double top = std::min(y(std::max(ascending[i], 0.0)), bottom - kFlat);
    for (const double x : {left + gap / 2, left + slot - gap / 2}) {
      tops.push_back({x, top});
      bottoms.push_back({x, bottom});
    }
    const std::string_view style = BarStyle(ascending[i]);
    const bool last = i + 1 == ascending.size();
    if (gap == 0 && !last && BarStyle(ascending[i + 1]) == style) continue;
    svg->Band(tops, bottoms, style);
    tops.clear();
    bottoms.clear();
  }
}

}  // namespace

std::string StartsFigure(const Evaluation& evaluation, const Comparison& comparison) {
  const Comparison::Verdict& verdict = *comparison.verdict;
  const RunMatrix candidate = FinalLatencies(evaluation, verdict.candidate);
  const RunMatrix baseline = FinalLatencies(evaluation, verdict.baseline);
  std::vector<double> differences;
  for (int start = 0; start < candidate.starts; ++start) {
    const auto mean = [&](const RunMatrix& runs) {
      return Mean({&runs.values[start * runs.seeds], static_cast<size_t>(runs.seeds)});
    };
    differences.push_back(mean(candidate) - mean(baseline));
  }
  std::sort(differences.begin(), differences.end());
  const double low = std::min(differences.front(), 0.0), high = std::max(differences.back(), 0.0);
  const double pad = std::max(Padded(low, high, 0.06), 0.5);
  const PairedResult& paired = verdict.paired;
  Svg svg(kFigureWidth, 300, "Difference in final latency, start by start",
          fmt::format("Better on {}, equal on {}, worse on {} starts; from {} to {} ms.",
                      paired.starts_better, paired.starts_equal, paired.starts_worse,
                      SignedMs(differences.front()), SignedMs(differences.back())));
  const PlotFrame frame{.left = 52, .top = 34, .right = kFigureWidth, .bottom = 280};
  const LinearScale y(low - pad, high + pad, frame.bottom, frame.top);
  const std::vector<double> ticks = NiceTicks(low - pad, high + pad, 5);
  for (double tick : ticks) {
    svg.Line({frame.left, y(tick)}, {frame.right, y(tick)}, tick == 0 ? "zero" : "grid");
    const std::string text = TickText(tick, ticks.size() > 1 ? ticks[1] - ticks[0] : 1);
    svg.Text({frame.left - 8, y(tick) + 4}, tick > 0 ? "+" + text : text, "tick", TextAnchor::kEnd);
  }
  svg.Text({0, frame.top - 14}, "difference in final latency (ms)", "axis-label");
  DrawBars(differences, y, frame, &svg);
  DrawCounts(paired, {frame.right, frame.top - 14}, &svg);
  return std::move(svg).Finish();
}

}  // namespace rudderfish
