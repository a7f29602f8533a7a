// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

// What a node of some kind costs to run. Plain values of a fixed size; pure functions.
//
// A node without pods sleeps. Of one with pods the watts follow from how much of its CPU is used:
//
//   without a curve   idle + (busy - idle) * utilisation: the linear curve of Fan, Weber, Barroso,
//                     "Power provisioning for a warehouse-sized computer", ISCA 2007
//   with one          linear between points that were measured, from idle to busy, as
//                     SPECpower_ssj2008 reports them: average active power at each tenth of the
//                     full load and at active idle (Standard Performance Evaluation Corporation,
//                     "Power and Performance Benchmark Methodology", V2.2)

namespace rudderfish {

struct PowerPoint {
  double utilisation = 0;  // Of the node's CPU; above 0, below 1.
  double watts = 0;

  bool operator==(const PowerPoint&) const = default;
};

// Between idle and busy. Points stand in ascending order of utilisation; their watts may fall.
struct PowerCurve {
  static constexpr int kPointsMax = 16;

  std::array<PowerPoint, kPointsMax> points{};  // The first `count`; others are as they began.
  int count = 0;

  // REQUIRES: count < kPointsMax; above the last.
  void Add(const PowerPoint& point) { points[static_cast<size_t>(count++)] = point; }

  const PowerPoint* begin() const { return points.data(); }
  const PowerPoint* end() const { return points.data() + count; }
  bool operator==(const PowerCurve&) const = default;
};

struct NodeCosts {
  double idle_watts = 0;
  double busy_watts = 0;  // At full use of CPU.
  double price_per_hour = 0;
  double asleep_watts = 0;
  PowerCurve curve;  // No points: a line from idle to busy.

  bool has_curve() const { return curve.count > 0; }

  // Of a node that has pods. Above full use a line goes on, what was measured stays at busy.
  double AwakeWatts(double utilisation) const {
    if (!has_curve()) return idle_watts + (busy_watts - idle_watts) * utilisation;
    const double use = std::min(utilisation, 1.0);
    PowerPoint from{0, idle_watts}, to{1, busy_watts};
    for (const PowerPoint& point : curve) {
      if (use <= point.utilisation) {
        to = point;
        break;
      }
      from = point;
    }
    return from.watts +
           (to.watts - from.watts) * (use - from.utilisation) / (to.utilisation - from.utilisation);
  }

  // The most that it draws at any use: busy, unless a curve goes higher.
  double MostWatts() const {
    double most = busy_watts;
    for (const PowerPoint& point : curve) most = std::max(most, point.watts);
    return most;
  }

  bool operator==(const NodeCosts&) const = default;
};

}  // namespace rudderfish
