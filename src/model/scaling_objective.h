// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/yaml.h"
#include "cluster/call_graph.h"
#include "cluster/ids.h"

// What scaling an application is to make small, and what it is to keep: terms by weight, and late
// requests either as one of them or as a limit.
//
//   objective: {cost: 1, changes: 0.25}             late requests as `limit` says; so if absent
//   objective: {cost: 1, changes: 0.25, late: 20}   late requests by weight, no limit
//
//   cost      core-hours / those of the pods that the mean of the load needs
//   late      requests later than their endpoint's qos, or failed / all requests
//   changes   requested cores of pods that come or go / those of all pods that the mean of the load
//             needs, each counted for one decision interval
//
//   limit: {late: 1%}                        of all requests; so if absent
//   limit: {p95: qos}                        the 95th percentile of responses over their qos
//   limit: {p95: 300ms, endpoint: checkout}  that of one endpoint's responses
//
// A percentile of responses is at most a bound where no more than the rest are later than it. So
// every limit is one on the share of late requests, with other targets (LimitedCalls, LateMaxOf),
// and is kept at the least cost by the same multiplier, the price of late requests: at the least
// price at which it is kept nothing is cheaper (H. Everett, "Generalized Lagrange multiplier method
// for solving problems of optimum allocation of resources", Operations Research 11, 1963).

namespace rudderfish {

// What may be asked for as a share of late requests.
inline constexpr double kLeastLateMax = 1e-5, kMostLateMax = 0.5;

struct ScalingObjective {
  double cost = 1, changes = 0.25;
  std::optional<double> late;  // None: a limit.

  // Of late requests and of changes, over that of cost. REQUIRES: late, of the first.
  double late_price() const { return *late / cost; }
  double change_price() const { return changes / cost; }

  bool operator==(const ScalingObjective&) const = default;
};

struct ServiceLimit {
  int percentile = 0;      // Of responses; 0: the limit is `late_max`.
  double late_max = 0.01;  // Share of the requests that count.
  double response_ms = 0;  // Later is late; 0: than the qos of the endpoint.
  int endpoint = kNone;    // Whose requests count; kNone: all.

  bool operator==(const ServiceLimit&) const = default;
};

inline constexpr int kLimitPercentiles[] = {50, 90, 95, 99};

// A target that nothing misses, but who fails: of endpoints whose requests do not count.
inline constexpr double kNoTargetMs = 1e10;

// The same calls, with what is late by the limit as their qos.
std::shared_ptr<const CallGraph> LimitedCalls(std::shared_ptr<const CallGraph> calls,
                                              const ServiceLimit& limit);

// How many of all requests may be late, as a share.
double LateMaxOf(const ServiceLimit& limit, const CallGraph& calls);

// In words, for people: "at most 5 % late or failed (p95 of checkout at most 300 ms)", or "late or
// failed requests at a weight of 20". `late_max`: what is trained for, a share of all requests.
std::string GoalText(const ScalingObjective& objective, const ServiceLimit& limit,
                     const CallGraph& calls, double late_max);

// Refuse, in one line: unknown terms, naming the nearest, weights that are negative, of cost 0 (all
// pods there may be would be best), limits of no or two kinds, out of range, or of an endpoint that
// `calls` does not have or that gets no requests.
Result<ScalingObjective> ParseScalingObjective(const YamlNode& node);
Result<ServiceLimit> ParseServiceLimit(const YamlNode& node, const CallGraph& calls);

}  // namespace rudderfish
