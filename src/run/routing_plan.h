// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/routing_policy.h"
#include "run/routing_config.h"
#include "scenario/region_world.h"

// What a configuration of routing names, opened and checked: the regions, their services, and who
// decides.

namespace rudderfish {

struct RoutingPlan {
  RoutingConfig config;
  std::shared_ptr<const RegionWorld> world;
  ServiceLaws laws;
  std::shared_ptr<const RoutingPolicy> policy, baseline;  // Null: there is no baseline.
  std::string policy_name, baseline_name;                 // As journals call them.
  std::string objective;                                  // In words.

  static Result<RoutingPlan> Make(const RoutingConfig& config);

  int RegionOf(std::string_view name) const;  // -1: none is called so.
  int ServiceOf(const RouteConfig& route) const;
  int services() const { return static_cast<int>(laws.size()); }
  std::string ServiceName(int service) const;  // Empty: there is one.
  int PodsOfNode(int service) const;  // That a question about it takes for nodes of their own.
  // Whether requests that come by a route may be served in a region.
  bool Allows(const RouteConfig& route, int region) const;
  std::string Describe() const;  // What would be done, for people: --dry-run.
};

}  // namespace rudderfish
