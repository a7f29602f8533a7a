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
#include "run/capacity.h"

// The section `decisions.routing` of rudderfish.yaml: which share of requests each region serves,
// and on which routes that is set. A part of run/config.h.

namespace rudderfish {

// One data path whose backends are regions.
struct RouteConfig {
  std::string name;
  std::string service;  // Of several that share nodes; empty: there is one.
  std::string origin;   // The region whose users come by it; empty: those of all regions.
  DataPath path;
  std::optional<OtherCluster> cluster;  // Of its object; none: that of the whole configuration.
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
  std::vector<CapacityConfig> capacity;  // Of regions whose nodes or pods are decided on, too.

  bool NeedsCluster() const;
  std::vector<XdsService> XdsServices() const;  // Of its routes.
};

// Relative paths are relative to `folder`. Looks at no other file.
Result<RoutingConfig> ParseRouting(const YamlNode& node, const std::filesystem::path& folder);

}  // namespace rudderfish
