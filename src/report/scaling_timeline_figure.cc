// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"
#include "report/scaling_figures.h"

namespace rudderfish {
namespace {

constexpr double kTimelineWidth = 1100, kTimelineKey = 188, kTimelineLeft = 60;
constexpr double kMinutesFromS = 300;  // Shorter episodes are told in seconds.
constexpr double kLeastP95Ms = 0.1;

// One policy of an episode.
struct Track {
  const ScalingPolicySummary* policy;
  std::string css;
};

// The baseline first, so that the candidate is drawn above it.
std::vector<Track> TracksOf(const ScalingSummary& summary, int load) {
  const ScalingLoadSummary& one = summary.loads[load];
  const std::vector<std::string> series = ScalingSeries(summary);
  std::vector<Track> tracks;
  for (int p = 0; p <= one.candidate(); ++p) {
    if (!one.policies[p].timeline.empty()) tracks.push_back({&one.policies[p], series[p]});
  }
  CHECK(!tracks.empty());
  return tracks;
}

struct TimeAxis {
  double unit_s = 1, high = 1;
  std::string label;

  explicit TimeAxis(const std::vector<ScalingMoment>& moments) {
    const double end_s = moments.back().at_s;
    unit_s = end_s >= kMinutesFromS ? 60 : 1;
    high = end_s / unit_s;
    label = unit_s > 1 ? "time (minutes)" : "time (s)";
  }
};

// Each interval's value from its beginning to its end.
std::vector<SvgPoint> StairsOf(const std::vector<ScalingMoment>& moments, const TimeAxis& time,
                               const std::function<double(const ScalingMoment&)>& value) {
  std::vector<SvgPoint> points;
  double begin = 0;
  for (const ScalingMoment& moment : moments) {
    points.push_back({begin, value(moment)});
    begin = moment.at_s / time.unit_s;
  }
  return points;
}

struct TimelinePanel {
  std::string label, heading;
  double top = 0, height = 104;
  bool last = false;
  std::function<double(const ScalingMoment&)> value;
  std::function<std::string(const ScalingPolicySummary&)> figure;  // Beside the plot.
  double low = 0, high = 1;
  std::vector<std::pair<double, std::string>> marks;
  std::vector<std::pair<double, std::string>> targets;  // Lines across.
};

void DrawTrackKey(const std::vector<Track>& tracks, const TimelinePanel& panel, Svg* svg) {
  const double left = kTimelineWidth - kTimelineKey + 12;
  double y = panel.top + 8;
  svg->Text({kTimelineWidth, y}, panel.heading, "hint", TextAnchor::kEnd);
  for (auto track = tracks.rbegin(); track != tracks.rend(); ++track) {
    y += 24;
    const std::string value = panel.figure(*track->policy);
    svg->BeginGroup(track->css, fmt::format("{}: {}", track->policy->name, value));
    svg->Line({left, y - 4}, {left + 22, y - 4}, "curve");
    const double room = kTimelineWidth - left - 28 - TextWidth(value, 14.2) - 10;
    svg->Text({left + 28, y}, FitText(track->policy->name, 14.2, room, Keep::kBeginning), "name");
    svg->Text({kTimelineWidth, y}, value, "value", TextAnchor::kEnd);
    svg->EndGroup();
  }
}

void DrawTimelinePanel(const std::vector<Track>& tracks, const TimeAxis& time,
                       const TimelinePanel& panel, Svg* svg) {
  const PlotFrame frame{.left = kTimelineLeft,
                        .top = panel.top,
                        .right = kTimelineWidth - kTimelineKey,
                        .bottom = panel.top + panel.height};
  Plot plot(svg, frame,
            {.low = 0,
             .high = time.high,
             .label = panel.last ? time.label : "",
             .ticks = panel.last ? 12 : 0},
            {.low = panel.low,
             .high = panel.high,
             .label = panel.label,
             .ticks = 4,
             .marks = panel.marks});
  for (const auto& [value, text] : panel.targets) {
    if (value <= panel.low || value >= panel.high) continue;
    const double y = plot.At(0, value).y;
    svg->Line({frame.left, y}, {frame.right, y}, "target");
    svg->Text({frame.right + 12, y + 4}, text, "hint");
  }
  for (const Track& track : tracks) {
    svg->BeginGroup(track.css, track.policy->name);
    plot.Staircase(StairsOf(track.policy->timeline, time, panel.value), "curve");
    svg->EndGroup();
  }
}

double HighestOf(const std::vector<Track>& tracks,
                 const std::function<double(const ScalingMoment&)>& value) {
  double high = 0;
  for (const Track& track : tracks) {
    for (const ScalingMoment& moment : track.policy->timeline) high = std::max(high, value(moment));
  }
  return high > 0 ? high * 1.06 : 1;
}

double MeanOverTime(const ScalingPolicySummary& policy,
                    const std::function<double(const ScalingMoment&)>& value) {
  double sum = 0, before = 0;
  for (const ScalingMoment& moment : policy.timeline) {
    sum += value(moment) * (moment.at_s - before);
    before = moment.at_s;
  }
  return sum / before;
}

double RequestsOf(const ScalingMoment& moment) { return moment.requests_per_s; }
double PodsOf(const ScalingMoment& moment) { return moment.pods(); }
double CoresOf(const ScalingMoment& moment) { return moment.cores; }
// NaN where nothing was answered.
double LogP95(const ScalingMoment& moment) {
  if (moment.p95_ms <= 0) return std::numeric_limits<double>::quiet_NaN();
  return std::log10(std::max(moment.p95_ms, kLeastP95Ms));
}

// The share of intervals whose p95 is beyond the loosest target.
std::string BeyondText(const ScalingPolicySummary& policy, double target_ms) {
  const auto beyond =
      std::count_if(policy.timeline.begin(), policy.timeline.end(),
                    [&](const ScalingMoment& moment) { return moment.p95_ms > target_ms; });
  return fmt::format("{} of {}", beyond, policy.timeline.size());
}

TimelinePanel LatencyPanel(const ScalingSummary& summary, const std::vector<Track>& tracks) {
  double low_ms = summary.qos_low_ms > 0 ? summary.qos_low_ms : 1e9, high_ms = summary.qos_high_ms;
  for (const Track& track : tracks) {
    for (const ScalingMoment& moment : track.policy->timeline) {
      if (moment.p95_ms <= 0) continue;
      low_ms = std::min(low_ms, moment.p95_ms);
      high_ms = std::max(high_ms, moment.p95_ms);
    }
  }
  low_ms = std::max(std::min(low_ms, high_ms), kLeastP95Ms);
  high_ms = std::max(high_ms, 2 * low_ms);
  TimelinePanel panel{.label = "p95 of requests answered in the interval, and the targets",
                      .heading = summary.qos_low_ms < summary.qos_high_ms
                                     ? "intervals beyond the looser"
                                     : "intervals beyond it",
                      .height = 130,
                      .value = LogP95,
                      .low = std::log10(low_ms) - 0.08,
                      .high = std::log10(high_ms) + 0.08,
                      .marks = internal::LatencyMarks(low_ms / 1.2, high_ms * 1.2)};
  const double loosest_ms = summary.qos_high_ms;
  panel.figure = [loosest_ms](const ScalingPolicySummary& policy) {
    return BeyondText(policy, loosest_ms);
  };
  // Their own texts stand where the key ends.
  if (summary.qos_low_ms < summary.qos_high_ms)
    panel.targets.emplace_back(std::log10(std::max(summary.qos_low_ms, kLeastP95Ms)), "");
  panel.targets.emplace_back(std::log10(std::max(loosest_ms, kLeastP95Ms)), "");
  return panel;
}

std::vector<TimelinePanel> PanelsOf(const ScalingSummary& summary,
                                    const std::vector<Track>& tracks) {
  std::vector<TimelinePanel> panels;
  panels.push_back({.label = "requests per second",
                    .heading = "mean",
                    .value = RequestsOf,
                    .figure =
                        [](const ScalingPolicySummary& policy) {
                          return fmt::format("{:.1f}", MeanOverTime(policy, RequestsOf));
                        },
                    .high = HighestOf(tracks, RequestsOf)});
  panels.push_back({.label = "pods asked for, all workloads",
                    .heading = "mean",
                    .value = PodsOf,
                    .figure =
                        [](const ScalingPolicySummary& policy) {
                          return fmt::format("{:.1f}", MeanOverTime(policy, PodsOf));
                        },
                    .high = HighestOf(tracks, PodsOf)});
  panels.push_back(LatencyPanel(summary, tracks));
  panels.push_back({.label = "cores requested by pods that exist",
                    .heading = "core-hours",
                    .last = true,
                    .value = CoresOf,
                    .figure =
                        [](const ScalingPolicySummary& policy) {
                          return fmt::format("{:.2f}", MeanOverTime(policy, CoresOf) *
                                                           policy.timeline.back().at_s / 3600);
                        },
                    .high = HighestOf(tracks, CoresOf)});
  double top = 30;
  for (TimelinePanel& panel : panels) {
    panel.top = top;
    top += panel.height + 46;
  }
  return panels;
}

}  // namespace

std::string TimelineFigure(const ScalingSummary& summary, int load) {
  const std::vector<Track> tracks = TracksOf(summary, load);
  const TimeAxis time(tracks.back().policy->timeline);
  const std::vector<TimelinePanel> panels = PanelsOf(summary, tracks);
  std::string description = fmt::format(
      "Episode {} of the load {}.", summary.loads[load].episode_shown, summary.loads[load].load);
  for (const Track& track : tracks) {
    description += fmt::format(" {}:", track.policy->name);
    for (const TimelinePanel& panel : panels)
      description +=
          fmt::format(" {}, {} {};", panel.label, panel.heading, panel.figure(*track.policy));
  }
  const TimelinePanel& last = panels.back();
  Svg svg(kTimelineWidth, last.top + last.height + 46, "Timeline of one episode", description);
  for (const TimelinePanel& panel : panels) {
    // All policies get the same requests: one line.
    const bool shared = &panel == &panels.front();
    const std::vector<Track> drawn =
        shared ? std::vector<Track>{{tracks.back().policy, "load"}} : tracks;
    DrawTimelinePanel(drawn, time, panel, &svg);
    if (shared) {
      svg.Text({kTimelineWidth, panel.top + 8}, "mean " + panel.figure(*tracks.back().policy),
               "hint", TextAnchor::kEnd);
    } else {
      DrawTrackKey(tracks, panel, &svg);
    }
  }
  return std::move(svg).Finish();
}

namespace {

constexpr double kReplicaRow = 44, kReplicaGap = 40, kReplicaName = 178, kReplicaKey = 26;

// One workload in ReplicasFigure.
struct ReplicaRow {
  size_t workload = 0;
  int low = 0, high = 0;
  SvgPoint corner;

  double Of(const ScalingMoment& moment) const { return moment.replicas[workload]; }
};

std::vector<ReplicaRow> ReplicaRowsOf(const ScalingSummary& summary,
                                      const std::vector<Track>& tracks) {
  std::vector<ReplicaRow> rows;
  for (size_t w = 0; w < summary.nodes.size(); ++w) {
    if (summary.nodes[w].client) continue;
    ReplicaRow row{.workload = w, .low = tracks[0].policy->timeline[0].replicas[w]};
    for (const Track& track : tracks) {
      for (const ScalingMoment& moment : track.policy->timeline) {
        row.low = std::min(row.low, moment.replicas[w]);
        row.high = std::max(row.high, moment.replicas[w]);
      }
    }
    rows.push_back(row);
  }
  return rows;
}

void DrawReplicaRow(const ReplicaRow& row, const std::vector<Track>& tracks, const TimeAxis& time,
                    const std::string& name, double width, Svg* svg) {
  const PlotFrame frame{.left = row.corner.x + kReplicaName + 24,
                        .top = row.corner.y,
                        .right = row.corner.x + width,
                        .bottom = row.corner.y + kReplicaRow - 16};
  svg->Text({row.corner.x, row.corner.y + 18},
            FitText(name, 14.2, kReplicaName - 6, Keep::kBeginning), "row-name");
  std::vector<std::pair<double, std::string>> marks = {{row.high, fmt::format("{}", row.high)}};
  if (row.low < row.high) marks.emplace_back(row.low, fmt::format("{}", row.low));
  Plot plot(svg, frame, {.low = 0, .high = time.high, .ticks = 0},
            {.low = std::min(row.low, row.high - 1) - 0.2, .high = row.high + 0.2, .marks = marks});
  for (const Track& track : tracks) {
    svg->BeginGroup(track.css, fmt::format("{}: {}", track.policy->name, name));
    plot.Staircase(StairsOf(track.policy->timeline, time,
                            [&](const ScalingMoment& moment) { return row.Of(moment); }),
                   "curve");
    svg->EndGroup();
  }
}

// Whose line is which, side by side.
void DrawReplicaKey(const std::vector<Track>& tracks, Svg* svg) {
  double x = 0;
  for (auto track = tracks.rbegin(); track != tracks.rend(); ++track) {
    const std::string name =
        FitText(track->policy->name, 14.2, kTimelineWidth / static_cast<double>(tracks.size()) - 50,
                Keep::kBeginning);
    svg->BeginGroup(track->css, track->policy->name);
    svg->Line({x, 12}, {x + 22, 12}, "curve");
    svg->Text({x + 28, 16}, name, "name");
    svg->EndGroup();
    x += 28 + TextWidth(name, 14.2) + 22;
  }
}

}  // namespace

std::string ReplicasFigure(const ScalingSummary& summary, int load) {
  const std::vector<Track> tracks = TracksOf(summary, load);
  const TimeAxis time(tracks.back().policy->timeline);
  std::vector<ReplicaRow> rows = ReplicaRowsOf(summary, tracks);
  const size_t columns = rows.size() > 4 ? 2 : 1, lines = (rows.size() + columns - 1) / columns;
  const double width = (kTimelineWidth - kReplicaGap * static_cast<double>(columns - 1)) /
                       static_cast<double>(columns);
  std::string description = "Replicas, at least to at most:";
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t column = i / lines, line = i % lines;
    rows[i].corner = {static_cast<double>(column) * (width + kReplicaGap),
                      8 + kReplicaKey + static_cast<double>(line) * kReplicaRow};
    description += fmt::format(" {} {} to {};", summary.nodes[rows[i].workload].name, rows[i].low,
                               rows[i].high);
  }
  Svg svg(kTimelineWidth, 8 + kReplicaKey + static_cast<double>(lines) * kReplicaRow,
          "Replicas of every workload", description);
  DrawReplicaKey(tracks, &svg);
  for (const ReplicaRow& row : rows)
    DrawReplicaRow(row, tracks, time, summary.nodes[row.workload].name, width, &svg);
  return std::move(svg).Finish();
}

}  // namespace rudderfish
