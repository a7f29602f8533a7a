// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "policy/policy_makers.h"
#include "policy/policy_table.h"
#include "policy/routing_rules.h"

// Rules of routing from their options.

namespace rudderfish {
namespace {

constexpr std::string_view kPlannedName = "mpc";

RegionAutoscaling BelowOf(const PolicyOptions& options) {
  return {.use = options.Number("use") / 100,
          .tolerance = options.Number("tolerance"),
          .spot_share = options.Number("spot") / 100,
          .down_s = options.Ms("down") / 1000};
}

std::optional<double> PriceOf(const PolicyOptions& options, std::string_view key) {
  if (!options.IsGiven(key)) return {};
  return options.Number(key);
}

SplitRouting SplitOf(const PolicyOptions& options) {
  return {.foreign = options.Number("foreign"),
          .moving = options.Number("moving"),
          .full = options.Number("full") / 100,
          .headroom = options.Number("headroom"),
          .use = options.Number("use") / 100,
          .prices = {.late = PriceOf(options, "late_price"),
                     .carbon_per_kg = PriceOf(options, "carbon_price"),
                     .provider = options.Number("provider_price")}};
}

PlannedRouting PlannedOf(const PolicyOptions& options) {
  PlannedRouting planned{.split = SplitOf(options), .below = BelowOf(options), .planning = {}};
  planned.planning.rule = {.use = options.Number("use") / 100,
                           .spot_share = options.Number("spot") / 100,
                           .pull = options.Number("pull"),
                           .spread = options.Number("spread"),
                           .hazard_per_h = options.Number("hazard"),
                           .notice = options.Number("notice"),
                           .risk = options.Number("risk")};
  planned.planning.hold_s = options.Ms("hold") / 1000;
  planned.planning.weights = RegionScalingTask::ModelWeights(planned.planning.rule);
  return planned;
}

}  // namespace

Result<PlannedRouting> ReadPlannedRouting(std::string_view text) {
  TRY_ASSIGN(const PolicySpec spec, ParsePolicySpec(text));
  if (spec.name != kPlannedName)
    return Invalid("{}: expected {} with its options", text, kPlannedName);
  TRY_ASSIGN(const PolicyOptions options,
             PolicyOptions::Read(spec, FindPolicy(TaskKind::kRoute, kPlannedName)->options));
  return PlannedOf(options);
}

Result<std::unique_ptr<RoutingPolicy>> MakeStaticRoute(const PolicyOptions& options) {
  if (options.name() == "round-robin")
    return MakeStaticRouting({.home = 0, .evenly = true}, BelowOf(options));
  return MakeStaticRouting({.home = options.Number("home") / 100}, BelowOf(options));
}

Result<std::unique_ptr<RoutingPolicy>> MakeProbedRoute(const PolicyOptions& options) {
  if (options.name() == "power-of-two") return MakeProbedRouting({}, BelowOf(options));
  return MakeProbedRouting({.by = ProbedRouting::By::kHotCold,
                            .probes = static_cast<int>(options.Number("probes")),
                            .hot = options.Number("hot") / 100},
                           BelowOf(options));
}

Result<std::unique_ptr<RoutingPolicy>> MakeRankedRoute(const PolicyOptions& options) {
  using By = RankedRouting::By;
  const std::string& name = options.name();
  const By by = name == "locality"                             ? By::kDistance
                : name == "cheapest"                           ? By::kPrice
                : name == "greenest" || name == "carbon-aware" ? By::kCarbon
                                                               : By::kLatency;
  RankedRouting rule{.by = by, .full = options.Number("full") / 100};
  const bool is_bounded = name == "cheapest" || name == "carbon-aware";
  rule.within_s =
      is_bounded ? options.Ms("within") / 1000 : std::numeric_limits<double>::infinity();
  return MakeRankedRouting(rule, BelowOf(options));
}

Result<std::unique_ptr<RoutingPolicy>> MakeSplitRoute(const PolicyOptions& options) {
  return MakeSplitRouting(SplitOf(options), BelowOf(options));
}

Result<std::unique_ptr<RoutingPolicy>> MakePlannedRoute(const PolicyOptions& options) {
  PlannedRouting planned = PlannedOf(options);
  planned.split.foresees = options.name() == "clairvoyant";
  return MakePlannedRouting(planned);
}

}  // namespace rudderfish
