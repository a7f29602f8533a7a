// SPDX-License-Identifier: Apache-2.0
#include "scenario/scaled.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace rudderfish {
namespace {

Distribution UpTo(const Distribution& replicas, int factor) {
  if (replicas.shape() == Distribution::Shape::kUniform) {
    return Distribution::Uniform(replicas.min(), replicas.max() * factor);
  }
  std::vector<double> values(replicas.values().begin(), replicas.values().end());
  for (double value : std::vector<double>(values)) values.push_back(value * factor);
  return Distribution::Choice(std::move(values));
}

}  // namespace

Scenario Scaled(const Scenario& scenario, int factor) {
  CHECK_GE(factor, 1);
  Scenario scaled = scenario;
  if (factor == 1) return scaled;
  Catalog catalog = *scenario.catalog;
  for (size_t w = 0; w < catalog.workloads.size(); ++w) {
    if (!catalog.workloads[w].movable) continue;
    scaled.starts[w].replicas = UpTo(scenario.starts[w].replicas, factor);
    catalog.workloads[w].replicas_max *= factor;
  }
  for (NodeGroup& group : scaled.node_groups) {
    if (catalog.layers[catalog.kinds[group.kind].layer].accepts_moves) group.count *= factor;
  }
  auto names = std::make_shared<Names>();
  std::vector<int> seen(catalog.kinds.size(), 0);
  for (const NodeGroup& group : scaled.node_groups) {
    for (int i = 0; i < group.count; ++i) {
      names->nodes.push_back(
          fmt::format("{}-{}", catalog.kinds[group.kind].name, ++seen[group.kind]));
    }
  }
  scaled.name = fmt::format("{}, {} times", scenario.name, factor);
  scaled.catalog = std::make_shared<const Catalog>(std::move(catalog));
  scaled.names = std::move(names);
  CHECK_LE(scaled.node_count(), kMaxNodes);
  CHECK_LE(scaled.pod_limit(), kMaxPods);
  return scaled;
}

}  // namespace rudderfish
