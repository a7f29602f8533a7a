// SPDX-License-Identifier: Apache-2.0
#include "evaluation/limit_check.h"

#include <algorithm>
#include <string_view>

#include "policy/registry.h"
#include "sim/routing_evaluation.h"
#include "sim/scaling_evaluation.h"

namespace rudderfish {
namespace {

// Each gives up all else for one of the limits.
constexpr std::string_view kExtremes[] = {
    "lp:use=25,spot=0,headroom=0.97,foreign=0,moving=0,down=40min,late_price=512",
    "locality:use=25,spot=0,down=40min",
    "lp:use=95,full=100,down=0s,tolerance=0,foreign=0,moving=0,late_price=0,carbon_price=400",
    "greenest:use=95,full=100,down=0s,tolerance=0",
    "carbon-aware:use=95,full=100,down=0s,tolerance=0",
    "lp:use=95,spot=100,full=100,down=0s,tolerance=0,late_price=0,carbon_price=0",
    "cheapest:use=95,spot=100,full=100,down=0s,tolerance=0",
    "lp:use=40,foreign=0,moving=0,late_price=0,carbon_price=0,provider_price=1",
};
constexpr int kLimitEpisodes = 4;
constexpr double kNear = 0.95;  // Of the least that was reached, a limit may be within reach.

struct CheckedLimit {
  std::string_view key;
  double most, least;
};

}  // namespace

Result<void> CheckLimits(const std::shared_ptr<const RegionWorld>& world,
                         const std::vector<int>& variants, ThreadPool* pool) {
  const RoutingLimits& limits = world->network->limits;
  if (!limits.any()) return {};
  const ServiceLaws laws = LawsOf(*world);
  const int each = static_cast<int>(variants.size()) * kLimitEpisodes;
  std::vector<RoutingMeans> reached(std::size(kExtremes));
  pool->ParallelFor(static_cast<int>(std::size(kExtremes)), [&](int index, int) {
    const auto policy = MakeRoutingRule(kExtremes[index]).value();
    RegionSimulator simulator(world, laws);
    for (int i = 0; i < each; ++i) {
      const RegionVariant& variant = world->variants[variants[i / kLimitEpisodes]];
      reached[index].Add(
          RunRouting(*policy, {variant, CalibrationSeed(0) + static_cast<uint64_t>(i)}, &simulator),
          1.0 / each);
    }
  });
  const auto least = [&](auto figure) {
    double smallest = RoutingLimits::kNone;
    for (const RoutingMeans& one : reached) smallest = std::min(smallest, figure(one));
    return smallest;
  };
  using Of = const RoutingMeans&;
  const CheckedLimit all[] = {
      {"late_percent", limits.late_percent, least([](Of one) { return 100 * one.late_share; })},
      {"carbon_kg_per_hour", limits.carbon_kg_per_h,
       least([](Of one) { return one.carbon_kg_per_h; })},
      {"dollars_per_hour", limits.dollars_per_h, least([](Of one) { return one.dollars_per_h; })},
      {"provider_percent", limits.provider_percent,
       least([](Of one) { return 100 * one.provider_share; })},
  };
  for (const CheckedLimit& one : all) {
    if (one.most >= kNear * one.least) continue;
    return Fail(ErrorCode::kFailedPrecondition,
                "regions.limits.{}: {:.4g} cannot be kept: rules that do nothing else reach {:.4g}",
                one.key, one.most, one.least);
  }
  return {};
}

}  // namespace rudderfish
