// SPDX-License-Identifier: Apache-2.0
#include "control/node_objective.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {

bool IsKnownLive(ObjectiveTerm term) {
  return term == ObjectiveTerm::kBalance || term == ObjectiveTerm::kUtilisation;
}

void NodeObjective::Sums::Add(const Node& node, double sign) {
  for (int r = 0; r < kKinds; ++r) {
    const double share = node.capacity[r] > 0 ? node.used[r] / node.capacity[r] : 0;
    utilisation[r] += sign * share;
    squares[r] += sign * share * share;
    used[r] += sign * node.used[r];
    capacity[r] += sign * node.capacity[r];
    if (node.pods <= 0) continue;
    active_used[r] += sign * node.used[r];
    active_capacity[r] += sign * node.capacity[r];
  }
  pods += static_cast<int64_t>(sign) * node.pods;
  if (node.pods > 0) active += static_cast<int64_t>(sign);
}

void NodeObjective::Read(const NodeTable& nodes) {
  constexpr std::array<int, kKinds> kRows = {NodeTable::kCpu, NodeTable::kMemory};
  nodes_.resize(static_cast<size_t>(nodes.size()));
  sums_ = {};
  for (NodeId n = 0; n < nodes.size(); ++n) {
    Node& node = nodes_[n];
    for (int r = 0; r < kKinds; ++r) {
      const int64_t allocatable = nodes.allocatable(kRows[r])[n];
      node.capacity[r] = static_cast<double>(allocatable);
      node.used[r] = static_cast<double>(allocatable - nodes.free(kRows[r])[n]);
    }
    node.pods = nodes.node(n).pods_max - nodes.pods_free()[n];
    sums_.Add(node, 1);
  }
}

ClusterTerms NodeObjective::After(std::span<const PodChange> changes) const {
  Sums sums = sums_;
  for (size_t i = 0; i < changes.size(); ++i) {
    CHECK_LT(static_cast<size_t>(changes[i].node), nodes_.size());
    const auto is_same = [&](const PodChange& other) { return other.node == changes[i].node; };
    if (std::any_of(changes.begin(), changes.begin() + static_cast<long>(i), is_same)) continue;
    Node node = nodes_[changes[i].node];
    sums.Add(node, -1);
    for (size_t j = i; j < changes.size(); ++j) {
      if (!is_same(changes[j])) continue;
      node.used[0] += changes[j].pods * static_cast<double>(changes[j].held.cpu_millis);
      node.used[1] += changes[j].pods * static_cast<double>(changes[j].held.memory_bytes);
      node.pods += changes[j].pods;
    }
    sums.Add(node, 1);
  }
  return TermsOf(sums);
}

ClusterTerms NodeObjective::TermsOf(const Sums& sums) const {
  ClusterTerms terms;
  const auto ratio = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  const auto nodes = static_cast<double>(std::max<size_t>(nodes_.size(), 1));
  for (int r = 0; r < kKinds; ++r) {
    const double mean = sums.utilisation[r] / nodes;
    terms.utilisation_sd[r] = std::sqrt(std::max(sums.squares[r] / nodes - mean * mean, 0.0));
    terms.mean_node_utilisation[r] = mean;
    terms.utilisation[r] = ratio(sums.used[r], sums.capacity[r]);
    terms.active_utilisation[r] = ratio(sums.active_used[r], sums.active_capacity[r]);
  }
  terms.ready_nodes = static_cast<int>(nodes_.size());
  terms.active_nodes = static_cast<int>(sums.active);
  terms.bound_pods = static_cast<int>(sums.pods);
  return terms;
}

}  // namespace rudderfish
