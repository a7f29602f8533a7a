// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "report/report_figures.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

// Value of a run at a number of steps, between its points by distance; nothing beyond its ends.
std::optional<double> ValueAt(const std::vector<CurvePoint>& run, double env_steps,
                              double CurvePoint::*member) {
  const auto after = std::find_if(run.begin(), run.end(), [&](const CurvePoint& point) {
    return static_cast<double>(point.env_steps) >= env_steps;
  });
  if (after == run.end()) return std::nullopt;
  const auto at = static_cast<double>(after->env_steps);
  if (at == env_steps) return (*after).*member;
  if (after == run.begin()) return std::nullopt;
  const CurvePoint& before = *(after - 1);
  const auto from = static_cast<double>(before.env_steps);
  const double share = (env_steps - from) / (at - from);
  return before.*member + share * ((*after).*member - before.*member);
}

struct MeanCurve {
  std::vector<SvgPoint> mean, lowest, highest;
};

// Over runs, where all of them have values.
MeanCurve MeanOverRuns(const LearningCurve& curve) {
  MeanCurve result;
  for (const CurvePoint& at : curve.runs.front()) {
    const auto x = static_cast<double>(at.env_steps);
    double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
    size_t runs = 0;
    for (const std::vector<CurvePoint>& run : curve.runs) {
      const std::optional<double> value = ValueAt(run, x, &CurvePoint::final_ms);
      if (!value || !std::isfinite(*value)) break;
      sum += *value;
      low = std::min(low, *value);
      high = std::max(high, *value);
      ++runs;
    }
    if (runs != curve.runs.size()) continue;
    result.mean.push_back({x, sum / static_cast<double>(runs)});
    result.lowest.push_back({x, low});
    result.highest.push_back({x, high});
  }
  return result;
}

std::string SecondsText(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 600) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min", seconds / 60);
}

// Under each tick of steps the time it took, as the first run of the first curve tells.
void DrawSeconds(const std::vector<CurvePoint>& run, double high, const Plot& plot, Svg* svg) {
  bool any = false;
  for (double tick : NiceTicks(0, high, 8)) {
    const std::optional<double> seconds = ValueAt(run, tick, &CurvePoint::seconds);
    if (!seconds || !std::isfinite(*seconds)) continue;
    svg->Text({plot.At(tick, 0).x, plot.frame().bottom + 37}, SecondsText(*seconds), "tick soft",
              TextAnchor::kMiddle);
    any = true;
  }
  if (any) {
    svg->Text({plot.frame().right, plot.frame().bottom + 60},
              "steps of the environment, and time of training", "axis-label", TextAnchor::kEnd);
  }
}

constexpr double kCoarse = 10;  // Figures from here on need no thousandths.

std::string FigureText(double value) {
  return fmt::format("{:.{}f}", value, std::abs(value) >= kCoarse ? 1 : 3);
}

std::string SeriesOf(const std::string& name, const Evaluation& evaluation,
                     const ReportPolicies& policies) {
  for (size_t p = 0; p < evaluation.policies.size(); ++p) {
    if (evaluation.policies[p].name == name) return policies.series[p];
  }
  return "s2";
}

}  // namespace

std::string LearningFigure(const std::vector<LearningCurve>& curves, const Evaluation& evaluation,
                           const ReportPolicies& policies) {
  std::vector<std::string> series;
  for (const LearningCurve& curve : curves)
    series.push_back(SeriesOf(curve.name, evaluation, policies));
  return LearningFigure(curves, series, "mean final latency on validation starts (ms)");
}

std::string LearningFigure(const std::vector<LearningCurve>& curves,
                           const std::vector<std::string>& series, std::string_view label) {
  std::vector<MeanCurve> means;
  double steps = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  std::string description;
  for (const LearningCurve& curve : curves) {
    means.push_back(MeanOverRuns(curve));
    const MeanCurve& mean = means.back();
    if (mean.mean.empty()) continue;
    steps = std::max(steps, mean.mean.back().x);
    for (size_t i = 0; i < mean.mean.size(); ++i) {
      low = std::min(low, mean.lowest[i].y);
      high = std::max(high, mean.highest[i].y);
    }
    description += fmt::format("{}: from {} to {} in {:.0f} steps, mean of {} runs. ", curve.name,
                               FigureText(mean.mean.front().y), FigureText(mean.mean.back().y),
                               mean.mean.back().x, curve.runs.size());
  }
  CHECK_GT(steps, 0);
  const double pad = std::max((high - low) * 0.06, high >= kCoarse ? 0.5 : 0.005);
  const PlotFrame frame{.left = 52, .top = 34, .right = kFigureWidth - 170, .bottom = 330};
  Svg svg(kFigureWidth, 394, "Learning curve", description);
  const bool timed = std::isfinite(curves.front().runs.front().back().seconds);
  Plot plot(&svg, frame,
            {.low = 0, .high = steps, .label = timed ? "" : "steps of the environment", .ticks = 8},
            {.low = low < 0 ? low - pad : std::max(0.0, low - pad),
             .high = high + pad,
             .label = std::string(label)});
  if (timed) DrawSeconds(curves.front().runs.front(), steps, plot, &svg);
  std::vector<double> ends;
  for (const MeanCurve& mean : means) {
    ends.push_back(mean.mean.empty() ? frame.top : plot.At(0, mean.mean.back().y).y);
  }
  const std::vector<double> labels = SpreadLabels(ends, 18, frame.top, frame.bottom);
  for (size_t i = 0; i < curves.size(); ++i) {
    if (means[i].mean.empty()) continue;
    svg.BeginGroup(series[i], curves[i].name);
    plot.Area(means[i].highest, means[i].lowest, "band");
    plot.Curve(means[i].mean, "curve");
    const SvgPoint end = plot.At(means[i].mean.back().x, means[i].mean.back().y);
    svg.Circle(end, 4, "dot");
    svg.Text({frame.right + 12, labels[i] + 4},
             FitText(curves[i].name, 13, kFigureWidth - frame.right - 66, Keep::kBeginning),
             "name");
    svg.Text({kFigureWidth, labels[i] + 4}, FigureText(means[i].mean.back().y), "value",
             TextAnchor::kEnd);
    svg.EndGroup();
  }
  return std::move(svg).Finish();
}

}  // namespace rudderfish
