// SPDX-License-Identifier: Apache-2.0
#include "model/node_packing.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace rudderfish {

struct NodePacking::Node {
  int offer = 0;
  Resources free;
};

namespace {

void AddCurved(const NodeCosts& costs, double requested_share,
               std::vector<NodesInUse::Curved>* curved) {
  const bool is_alike = !curved->empty() && curved->back().costs == &costs &&
                        curved->back().use_per_core == requested_share;
  if (!is_alike) curved->push_back({.costs = &costs, .use_per_core = requested_share});
  ++curved->back().nodes;
}

}  // namespace

double NodesInUse::Watts(double used_cores) const {
  double watts = idle_watts + watts_per_core * used_cores;
  for (const Curved& one : curved)
    watts += one.nodes * one.costs->AwakeWatts(one.use_per_core * used_cores);
  return watts;
}

NodePacking::NodePacking(std::vector<NodeOffer> offers, std::vector<Resources> requests)
    : offers_(std::move(offers)), requests_(std::move(requests)), order_(requests_.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) {
    return std::tie(requests_[b].cpu_millis, requests_[b].memory_bytes) <
           std::tie(requests_[a].cpu_millis, requests_[a].memory_bytes);
  });
  for (const NodeOffer& offer : offers_) draws_power_ |= !(offer.costs == NodeCosts());
}

bool NodePacking::Fits(int workload, int offer) const {
  return requests_[workload].cpu_millis <= offers_[offer].allocatable.cpu_millis &&
         requests_[workload].memory_bytes <= offers_[offer].allocatable.memory_bytes;
}

// The first that is left and large enough; beyond those the last that is large enough, if any is.
int NodePacking::OfferFor(int workload, const std::vector<int>& opened) const {
  const int last = static_cast<int>(offers_.size()) - 1;
  int beyond = last;
  for (int offer = 0; offer <= last; ++offer) {
    if (!Fits(workload, offer)) continue;
    if (opened[offer] < offers_[offer].count) return offer;
    beyond = offer;
  }
  return beyond;
}

NodesInUse NodePacking::Pack(std::span<const int> replicas) const {
  CHECK_EQ(replicas.size(), requests_.size());
  if (offers_.empty()) return {};
  std::vector<Node> nodes;
  std::vector<int> opened(offers_.size(), 0);
  for (const int workload : order_) {
    const Resources& pod = requests_[workload];
    if (pod.cpu_millis <= 0 && pod.memory_bytes <= 0) continue;
    int left = replicas[workload];
    const auto fill = [&](Node* node) {
      int64_t room = left;
      if (pod.cpu_millis > 0) room = std::min(room, node->free.cpu_millis / pod.cpu_millis);
      if (pod.memory_bytes > 0) room = std::min(room, node->free.memory_bytes / pod.memory_bytes);
      room = std::max<int64_t>(room, 0);
      node->free.cpu_millis -= room * pod.cpu_millis;
      node->free.memory_bytes -= room * pod.memory_bytes;
      left -= static_cast<int>(room);
    };
    for (Node& node : nodes) fill(&node);
    while (left > 0) {
      const int offer = OfferFor(workload, opened);
      ++opened[offer];
      Node& node = nodes.emplace_back(Node{offer, offers_[offer].allocatable});
      if (Fits(workload, offer)) {
        fill(&node);
      } else {
        node.free = {};  // It alone has it.
        --left;
      }
    }
  }
  NodesInUse use{.nodes = static_cast<int>(nodes.size())};
  double requested = 0;
  for (const Node& node : nodes) {
    const NodeOffer& offer = offers_[node.offer];
    const NodeCosts& costs = offer.costs;
    const auto cores = static_cast<double>(offer.allocatable.cpu_millis) / 1000;
    const double held = cores - static_cast<double>(node.free.cpu_millis) / 1000;
    if (cores > 0) requested += held;
    if (costs.has_curve()) {
      AddCurved(costs, cores > 0 ? held / cores : 0, &use.curved);
      continue;
    }
    use.idle_watts += costs.idle_watts;
    if (cores > 0) use.watts_per_core += held * (costs.busy_watts - costs.idle_watts) / cores;
  }
  if (requested > 0) {
    use.watts_per_core /= requested;
    for (NodesInUse::Curved& one : use.curved) one.use_per_core /= requested;
  }
  for (size_t i = 0; i < offers_.size(); ++i)
    use.idle_watts += std::max(0, offers_[i].count - opened[i]) * offers_[i].costs.asleep_watts;
  return use;
}

}  // namespace rudderfish
