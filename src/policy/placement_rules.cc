// SPDX-License-Identifier: Apache-2.0
#include "policy/placement_rules.h"

#include <fmt/format.h>

#include <limits>

#include "base/suggest.h"

namespace rudderfish {
namespace {

constexpr std::string_view kRuleNames[] = {"round-robin", "least-allocated", "most-allocated",
                                           "greedy"};

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Of CPU and memory, with the pod there.
double FreeShare(const PlacementQuestion& question, NodeId node) {
  const State& state = question.state;
  const Resources left =
      state.nodes.free[node] - state.catalog->workloads[question.workload].requests;
  const Resources& all = state.nodes.allocatable[node];
  return (Share(left.cpu_millis, all.cpu_millis) + Share(left.memory_bytes, all.memory_bytes)) / 2;
}

// The first node of those that may be chosen at which `cost` is least.
template <class Cost>
NodeId Cheapest(const PlacementQuestion& question, Cost cost) {
  NodeId best = kNone;
  double least = std::numeric_limits<double>::infinity();
  for (NodeId node = 0; node < question.state.nodes.size(); ++node) {
    if (!MayRunOn(question, node)) continue;
    const double here = cost(node);
    if (best != kNone && here >= least) continue;
    least = here;
    best = node;
  }
  return best;
}

}  // namespace

NodeId LeastAllocatedNode(const PlacementQuestion& question) {
  return Cheapest(question, [&](NodeId node) { return -FreeShare(question, node); });
}

NodeId MostAllocatedNode(const PlacementQuestion& question) {
  return Cheapest(question, [&](NodeId node) { return FreeShare(question, node); });
}

NodeId NextNode(const PlacementQuestion& question, NodeId start) {
  const int nodes = question.state.nodes.size();
  for (int i = 0; i < nodes; ++i) {
    const NodeId node = (start + i) % nodes;
    if (MayRunOn(question, node)) return node;
  }
  return kNone;
}

NodeId GreedyNode(const PlacementQuestion& question, const Objective& objective) {
  return Cheapest(question, [&](NodeId node) {
    return objective.Cost(question.totals.Try(question.workload, node));
  });
}

std::span<const std::string_view> PlacementRuleNames() { return kRuleNames; }

Result<PlacementRule> PlacementRuleNamed(std::string_view name, const Objective& objective) {
  if (name == "round-robin") {
    return PlacementRule([next = NodeId{0}](const PlacementQuestion& question) mutable {
      const NodeId node = NextNode(question, next);
      if (node != kNone) next = (node + 1) % question.state.nodes.size();
      return node;
    });
  }
  if (name == "least-allocated") return PlacementRule(LeastAllocatedNode);
  if (name == "most-allocated") return PlacementRule(MostAllocatedNode);
  if (name == "greedy") {
    return PlacementRule(
        [objective](const PlacementQuestion& question) { return GreedyNode(question, objective); });
  }
  return Invalid("no placement rule is called \"{}\"{} (there are {})", name,
                 DidYouMean(name, kRuleNames), fmt::join(kRuleNames, ", "));
}

}  // namespace rudderfish
