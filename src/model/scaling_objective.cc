// SPDX-License-Identifier: Apache-2.0
#include "model/scaling_objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/suggest.h"
#include "base/units.h"

namespace rudderfish {
namespace {

constexpr std::string_view kTerms[] = {"cost", "late", "changes"};
constexpr std::string_view kLimits[] = {"late", "p50", "p90", "p95", "p99", "endpoint"};
constexpr double kLeastCost = 1e-6, kMostScalingWeight = 1e6;
constexpr double kMostResponseMs = 1e9;

double RateOfAll(const CallGraph& calls) {
  double sum = 0;
  for (const Endpoint& endpoint : calls.endpoints) sum += endpoint.rate_per_second;
  return sum;
}

// "1%" or 0.01.
Result<double> ReadShare(const YamlNode& node) {
  TRY_ASSIGN(std::string text, node.AsString());
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (percent) value /= 100;
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= kLeastLateMax) ||
      !(value <= kMostLateMax)) {
    return node.Expected(fmt::format("a share of requests from {}% to {}%, such as 1%",
                                     100 * kLeastLateMax, 100 * kMostLateMax));
  }
  return value;
}

// "300ms", or "qos" for 0.
Result<double> ReadResponseMs(const YamlNode& node) {
  TRY_ASSIGN(const std::string text, node.AsString());
  if (text == "qos") return 0.0;
  const Result<double> ms = ParseDurationMs(text);
  if (!ms || !(*ms > 0) || *ms > kMostResponseMs)
    return node.Expected("a time such as 300ms, or qos, that of every endpoint");
  return *ms;
}

Result<int> ReadEndpoint(const YamlNode& node, const CallGraph& calls) {
  TRY_ASSIGN(const std::string name, node.AsString());
  std::vector<std::string_view> known;
  for (const Endpoint& endpoint : calls.endpoints) known.push_back(endpoint.name);
  const auto at = std::find(known.begin(), known.end(), name);
  if (at == known.end()) {
    return node.Refuse(fmt::format("no endpoint is called \"{}\"; there are {}{}", name,
                                   fmt::join(known, ", "), DidYouMean(name, known)));
  }
  const auto position = static_cast<int>(at - known.begin());
  if (calls.endpoints[position].rate_per_second <= 0)
    return node.Refuse(fmt::format("{} gets no requests: its rate is 0", name));
  return position;
}

}  // namespace

std::shared_ptr<const CallGraph> LimitedCalls(std::shared_ptr<const CallGraph> calls,
                                              const ServiceLimit& limit) {
  if (limit.response_ms <= 0 && limit.endpoint == kNone) return calls;
  auto limited = std::make_shared<CallGraph>(*calls);
  for (size_t e = 0; e < limited->endpoints.size(); ++e) {
    Endpoint& endpoint = limited->endpoints[e];
    const bool counts = limit.endpoint == kNone || limit.endpoint == static_cast<int>(e);
    if (!counts) endpoint.qos_ms = kNoTargetMs;
    if (counts && limit.response_ms > 0) endpoint.qos_ms = limit.response_ms;
  }
  return limited;
}

double LateMaxOf(const ServiceLimit& limit, const CallGraph& calls) {
  if (limit.endpoint == kNone) return limit.late_max;
  return limit.late_max * calls.endpoints[limit.endpoint].rate_per_second / RateOfAll(calls);
}

std::string GoalText(const ScalingObjective& objective, const ServiceLimit& limit,
                     const CallGraph& calls, double late_max) {
  if (objective.late)
    return fmt::format("late or failed requests at a weight of {:.4g}", objective.late_price());
  std::string text = fmt::format("at most {:.4g} % late or failed", 100 * late_max);
  const double of_limit = LateMaxOf(limit, calls);
  if (std::abs(late_max - of_limit) > 1e-9 * of_limit) return text;  // Another one was asked for.
  std::string target;
  if (limit.percentile > 0) {
    target = limit.response_ms > 0 ? fmt::format(" at most {:.4g} ms", limit.response_ms)
                                   : std::string(" within qos");
    target =
        fmt::format("p{} of {}{}", limit.percentile,
                    limit.endpoint == kNone ? "all" : calls.endpoints[limit.endpoint].name, target);
  } else if (limit.endpoint != kNone) {
    target =
        fmt::format("{:.4g} % of {}", 100 * limit.late_max, calls.endpoints[limit.endpoint].name);
  }
  return target.empty() ? text : fmt::format("{} ({})", text, target);
}

Result<ScalingObjective> ParseScalingObjective(const YamlNode& node) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  ScalingObjective objective;
  for (const auto& [name, value] : map.Entries()) {
    if (name == kTerms[0]) {
      TRY_ASSIGN(objective.cost, value.AsDouble(kLeastCost, kMostScalingWeight));
    } else if (name == kTerms[1]) {
      TRY_ASSIGN(objective.late, value.AsDouble(kLeastCost, kMostScalingWeight));
    } else if (name == kTerms[2]) {
      TRY_ASSIGN(objective.changes, value.AsDouble(0, kMostScalingWeight));
    } else {
      return value.Refuse(fmt::format("unknown scaling term \"{}\"; there are {}{}", name,
                                      fmt::join(kTerms, ", "), DidYouMean(name, kTerms)));
    }
  }
  return objective;
}

Result<ServiceLimit> ParseServiceLimit(const YamlNode& node, const CallGraph& calls) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  ServiceLimit limit;
  int kinds = 0;
  for (const auto& [name, value] : map.Entries()) {
    if (std::find(std::begin(kLimits), std::end(kLimits), name) == std::end(kLimits)) {
      return value.Refuse(fmt::format("no limit is called \"{}\"; there are {}{}", name,
                                      fmt::join(kLimits, ", "), DidYouMean(name, kLimits)));
    }
    if (name == "endpoint") {
      TRY_ASSIGN(limit.endpoint, ReadEndpoint(value, calls));
      continue;
    }
    ++kinds;
    if (name == "late") {
      TRY_ASSIGN(limit.late_max, ReadShare(value));
      continue;
    }
    TRY_ASSIGN(limit.response_ms, ReadResponseMs(value));
    for (const int percentile : kLimitPercentiles) {
      if (name == fmt::format("p{}", percentile)) limit.percentile = percentile;
    }
    limit.late_max = (100 - limit.percentile) / 100.0;
  }
  if (kinds != 1) return node.Expected("one limit, as {late: 1%} or {p95: 300ms}");
  if (LateMaxOf(limit, calls) < kLeastLateMax) {
    return node.Refuse(
        fmt::format("is {:.2g}% of all requests, and less than {}% cannot be counted",
                    100 * LateMaxOf(limit, calls), 100 * kLeastLateMax));
  }
  return limit;
}

}  // namespace rudderfish
