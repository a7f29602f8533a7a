// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "cloud/data_path.h"
#include "control/mode.h"
#include "policy/routing_policy.h"
#include "run/capacity.h"
#include "scenario/region_world.h"

// The section `decisions.routing` of rudderfish.yaml: which share of requests each region serves,
// and on which routes that is set. A part of run/config.h.

namespace rudderfish {

// One data path whose backends are regions.
struct RouteConfig {
  std::string name;
  std::string service;  // Of several that share nodes; empty: there is one.
  std::string origin;   // The region whose users come by it; empty: those of all regions.
  DataPath path;
  std::vector<RegionBackend> backends;  // The others are called as their regions.
  YamlNode node;                        // For messages.
};

// The server that clients of xDS connect to.
struct XdsConfig {
  XdsListen listen;
  std::filesystem::path kept;  // The file that keeps the weights.
};

struct RoutingConfig {
  Mode mode = Mode::kShadow;       // Where it begins; `promote` and `demote` go on from there.
  std::filesystem::path scenario;  // That describes the regions.
  std::string policy = "lp";       // As MakeRoutingPolicy takes it; paths are complete.
  std::string baseline;            // Asked for comparison; empty: none.
  YamlNode scenario_node, policy_node, baseline_node;            // For messages.
  std::chrono::nanoseconds interval = std::chrono::seconds(30);  // Between two decisions.
  std::chrono::nanoseconds settle = std::chrono::minutes(1);     // Until a change is measured.
  double canary = 0.25;                                          // Share of the routes.
  SplitLimits limits;
  double gain_min = 0.005;  // Of the objective, relative, for which a split is changed.
  std::vector<RouteConfig> routes;
  std::optional<XdsConfig> xds;          // Where a route needs it.
  std::vector<CapacityConfig> capacity;  // Of regions whose nodes are decided on, too.

  bool NeedsCluster() const;
  std::vector<XdsService> XdsServices() const;  // Of its routes.
};

// Relative paths are relative to `folder`. Looks at no other file.
Result<RoutingConfig> ParseRouting(const YamlNode& node, const std::filesystem::path& folder);

// What a configuration of routing names, opened and checked.
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
