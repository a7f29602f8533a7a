// SPDX-License-Identifier: Apache-2.0
#include "model/preemption.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace rudderfish {
namespace {

// Pods of lower priority than one that is asked about, node by node.
class LowerPods {
 public:
  LowerPods(const SchedulingRules& rules, PodClassId pod)
      : rules_(rules), id_(pod), asked_(rules.compiled(pod)) {}

  // Whether some of them are why the node refuses the pod.
  bool AreInTheWay(NodeId node, Rejection rejection) const {
    switch (rejection) {
      case Rejection::kResources:
        return WouldMakeRoom(node);
      case Rejection::kHostPort:
        return Any(node, [&](const auto& lower) { return HoldsPort(lower.pod); });
      case Rejection::kClaimInUse:
        return Any(node, [&](const auto& lower) { return UsesClaim(lower.pod); });
      case Rejection::kVolumeLimit:
        return Any(node, [&](const auto& lower) { return SharesDriver(lower.pod); });
      case Rejection::kSpread:
        return Any(node, [&](const auto& lower) {
          return lower.serving > 0 && IsCounted(asked_.must_spread, lower.pod);
        });
      case Rejection::kAntiAffinity:
        return Any(node,
                   [&](const auto& lower) { return IsCounted(asked_.repelled_by, lower.pod); });
      case Rejection::kExistingAntiAffinity:
        return Any(node, [&](const auto& lower) { return Forbids(lower.pod); });
      default:  // No eviction would end it.
        return false;
    }
  }

 private:
  using OnNode = PodCounts::OnNode;

  template <class Holds>
  bool Any(NodeId node, Holds holds) const {
    const auto pods = rules_.counts().on_node(node);
    return std::any_of(pods.begin(), pods.end(), [&](const OnNode& one) {
      return rules_.compiled(one.pod).pod->priority < asked_.pod->priority && holds(one);
    });
  }

  // Whether all that the pod requests would be free without them.
  bool WouldMakeRoom(NodeId node) const {
    const NodeTable& nodes = rules_.nodes();
    int64_t pods = nodes.pods_free()[node];
    int64_t ephemeral_bytes = nodes.free(NodeTable::kEphemeral)[node];
    Resources room{nodes.free(NodeTable::kCpu)[node], nodes.free(NodeTable::kMemory)[node]};
    std::vector<int64_t> scalars;
    for (const auto& [row, amount] : asked_.asks) scalars.push_back(nodes.free(row)[node]);
    const bool is_lower = Any(node, [](const OnNode&) { return true; });
    if (!is_lower) return false;
    for (const OnNode& lower : rules_.counts().on_node(node)) {
      const CompiledPod& other = rules_.compiled(lower.pod);
      if (other.pod->priority >= asked_.pod->priority) continue;
      const int64_t count = lower.count();
      pods += count;
      room.cpu_millis += count * other.holding.held.cpu_millis;
      room.memory_bytes += count * other.holding.held.memory_bytes;
      ephemeral_bytes += count * other.holding.ephemeral_bytes;
      for (const auto& [row, amount] : other.holding.scalars) {
        for (size_t i = 0; i < scalars.size(); ++i)
          scalars[i] += asked_.asks[i].first == row ? count * amount : 0;
      }
    }
    // Of what a pod does not ask for, it does not matter that too much is held.
    const PodAmounts& asked = asked_.pod->amounts;
    const auto fits = [](int64_t amount, int64_t free) { return amount <= 0 || amount <= free; };
    bool all_fit = pods >= 1 && fits(asked.requests.cpu_millis, room.cpu_millis) &&
                   fits(asked.requests.memory_bytes, room.memory_bytes) &&
                   fits(asked.ephemeral_bytes, ephemeral_bytes);
    for (size_t i = 0; i < scalars.size(); ++i)
      all_fit = all_fit && fits(asked_.asks[i].second, scalars[i]);
    return all_fit;
  }

  bool HoldsPort(PodClassId lower) const {
    return HostPorts::Conflict(rules_.compiled(lower).ports, asked_.ports);
  }

  bool UsesClaim(PodClassId lower) const {
    const std::vector<int>& used = rules_.compiled(lower).claims;
    return std::any_of(used.begin(), used.end(), [&](int claim) {
      return std::find(asked_.exclusive_claims.begin(), asked_.exclusive_claims.end(), claim) !=
             asked_.exclusive_claims.end();
    });
  }

  bool SharesDriver(PodClassId lower) const {
    const std::vector<CsiVolume>& theirs = rules_.compiled(lower).pod->attached;
    return std::any_of(theirs.begin(), theirs.end(), [&](const CsiVolume& volume) {
      const std::vector<CsiVolume>& mine = asked_.pod->attached;
      return std::any_of(mine.begin(), mine.end(),
                         [&](const CsiVolume& other) { return other.driver == volume.driver; });
    });
  }

  template <class Term>
  bool IsCounted(const std::vector<Term>& terms, PodClassId lower) const {
    return std::any_of(terms.begin(), terms.end(), [&](const Term& term) {
      return term.matcher != kNone && rules_.counts().IsCounted(term.matcher, lower);
    });
  }

  bool Forbids(PodClassId lower) const {
    const PodCounts& counts = rules_.counts();
    const auto on_us = counts.burdens_on(id_);
    const auto theirs = counts.burdens_of(lower);
    return std::any_of(on_us.begin(), on_us.end(), [&](const PodCounts::BurdenOn& on) {
      return counts.burden(on.id).effect == PodCounts::Effect::kForbids &&
             std::find(theirs.begin(), theirs.end(), on.id) != theirs.end();
    });
  }

  const SchedulingRules& rules_;
  PodClassId id_;
  const CompiledPod& asked_;
};

}  // namespace

int CountPreemptionNodes(const SchedulingRules& rules, PodClassId pod,
                         const Feasibility& feasibility) {
  const PodClass& asked = *rules.compiled(pod).pod;
  if (!asked.may_preempt || !rules.counts().HasPodsBelow(asked.priority)) return 0;
  const LowerPods lower(rules, pod);
  int count = 0;
  for (NodeId n = 0; n < rules.nodes().size(); ++n)
    count += lower.AreInTheWay(n, feasibility.rejection[n]) ? 1 : 0;
  return count;
}

std::string PreemptionText(const SchedulingRules& rules, PodClassId pod,
                           const Feasibility& feasibility, std::string_view scheduler) {
  const int count = CountPreemptionNodes(rules, pod, feasibility);
  if (count == 0) return "";
  return fmt::format(
      " preemption: {} does not preempt, and pods of lower priority are in the way on {}/{} nodes.",
      scheduler, count, rules.nodes().size());
}

}  // namespace rudderfish
