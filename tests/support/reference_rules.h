// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/scheduling_rules.h"

// The rules of scheduling a second time: each asked of a pod and a node from the texts, pod by pod,
// with nothing kept between two questions and in no order. Slow, and as plain as can be.

namespace rudderfish::testing {

struct ReferenceCluster {
  struct Placed {
    const PodClass* pod;
    int node;
    PodLife life;
  };

  std::vector<SchedulingNode> nodes;
  std::unordered_map<std::string, Labels> namespaces;
  std::vector<Placed> placed;
  std::map<int, std::set<CsiVolume>> attachments;  // VolumeAttachments, by node.

  static const std::string* Value(const SchedulingNode& node, const std::string& key) {
    return FindLabel(node.labels, key);
  }

  bool Selects(const PodAffinityTerm& term, const PodClass& pod) const {
    bool in = std::count(term.namespaces.begin(), term.namespaces.end(), pod.object_namespace) > 0;
    const auto at = namespaces.find(pod.object_namespace);
    if (term.namespace_selector && at != namespaces.end())
      in |= term.namespace_selector->Matches(at->second);
    return in && term.selector && term.selector->Matches(pod.labels);
  }

  bool FitsAffinity(const PodClass& pod, const SchedulingNode& node) const {
    for (const auto& [key, value] : pod.node_selector) {
      if (Value(node, key) == nullptr || *Value(node, key) != value) return false;
    }
    return !pod.required_nodes || AnyMatches(*pod.required_nodes, node.name, node.labels);
  }

  static bool Untolerated(const PodClass& pod, const SchedulingNode& node) {
    return std::any_of(node.taints.begin(), node.taints.end(), [&](const NodeTaint& taint) {
      return taint.effect != TaintEffect::kPreferNoSchedule && !Tolerate(pod.tolerations, taint);
    });
  }

  bool SharesDomain(const std::string& key, const SchedulingNode& a, int b) const {
    const std::string *here = Value(a, key), *there = Value(nodes[b], key);
    return here != nullptr && there != nullptr && *here == *there;
  }

  bool BreaksAffinity(const PodClass& pod, const SchedulingNode& node) const {
    if (pod.required_pods.empty()) return false;
    const auto all_select = [&](const PodClass& other) {
      return std::all_of(pod.required_pods.begin(), pod.required_pods.end(),
                         [&](const auto& term) { return Selects(term, other); });
    };
    bool any_somewhere = false, every_term_here = true;
    for (const PodAffinityTerm& term : pod.required_pods) {
      if (Value(node, term.topology_key) == nullptr) return true;
      bool here = false;
      for (const Placed& other : placed) {
        if (!all_select(*other.pod)) continue;
        any_somewhere |= Value(nodes[other.node], term.topology_key) != nullptr;
        here |= SharesDomain(term.topology_key, node, other.node);
      }
      every_term_here &= here;
    }
    return !every_term_here && (any_somewhere || !all_select(pod));
  }

  bool BreaksAntiAffinity(const PodClass& pod, const SchedulingNode& node) const {
    for (const PodAffinityTerm& term : pod.forbidden_pods) {
      for (const Placed& other : placed) {
        if (Selects(term, *other.pod) && SharesDomain(term.topology_key, node, other.node))
          return true;
      }
    }
    return false;
  }

  bool BreaksAntiAffinityOfOthers(const PodClass& pod, const SchedulingNode& node) const {
    for (const Placed& other : placed) {
      for (const PodAffinityTerm& term : other.pod->forbidden_pods) {
        if (Selects(term, pod) && SharesDomain(term.topology_key, node, other.node)) return true;
      }
    }
    return false;
  }

  bool Counts(const PodClass& pod, const SpreadConstraint& constraint,
              const SchedulingNode& node) const {
    for (const SpreadConstraint& other : pod.spread) {
      if (other.when == constraint.when && Value(node, other.topology_key) == nullptr) return false;
    }
    constexpr auto kHonor = SpreadConstraint::Policy::kHonor;
    return (constraint.node_affinity != kHonor || FitsAffinity(pod, node)) &&
           (constraint.node_taints != kHonor || !Untolerated(pod, node));
  }

  bool BreaksSpread(const PodClass& pod, const SchedulingNode& node) const {
    for (const SpreadConstraint& constraint : pod.spread) {
      if (constraint.when == SpreadConstraint::When::kScheduleAnyway) continue;
      const std::string* here = Value(node, constraint.topology_key);
      if (here == nullptr) return true;
      std::map<std::string, int64_t> by_value;
      for (const SchedulingNode& other : nodes) {
        if (Counts(pod, constraint, other)) by_value[*Value(other, constraint.topology_key)];
      }
      const bool selects_all = constraint.selector && constraint.selector->requirements.empty();
      for (const Placed& other : placed) {
        if (selects_all || other.life == PodLife::kTerminating ||
            other.pod->object_namespace != pod.object_namespace ||
            !Counts(pod, constraint, nodes[other.node])) {
          continue;
        }
        if (constraint.selector && constraint.selector->Matches(other.pod->labels))
          ++by_value[*Value(nodes[other.node], constraint.topology_key)];
      }
      int64_t least = by_value.empty() ? 0 : by_value.begin()->second;
      for (const auto& [value, count] : by_value) least = std::min(least, count);
      if (static_cast<int64_t>(by_value.size()) < constraint.domains_min) least = 0;
      const bool self = constraint.selector && constraint.selector->Matches(pod.labels);
      if (by_value[*here] + self - least > constraint.skew_max) return true;
    }
    return false;
  }

  bool LacksRoom(const PodClass& pod, int number) const {
    const SchedulingNode& node = nodes[number];
    Resources held;
    int64_t pods = 0, bytes = 0;
    std::map<std::string, int64_t> scalars, room;
    for (const Placed& other : placed) {
      if (other.node != number) continue;
      ++pods;
      held += other.pod->amounts.held;
      bytes += other.pod->amounts.ephemeral_bytes;
      for (const auto& [name, amount] : other.pod->amounts.scalars) scalars[name] += amount;
    }
    for (const auto& [name, amount] : node.scalars) room[name] = amount;
    const PodAmounts& asked = pod.amounts;
    bool lacks = pods >= node.pods_max;
    const auto ask = [&](int64_t amount, int64_t free) { lacks |= amount > 0 && amount > free; };
    ask(asked.requests.cpu_millis, node.allocatable.cpu_millis - held.cpu_millis);
    ask(asked.requests.memory_bytes, node.allocatable.memory_bytes - held.memory_bytes);
    ask(asked.ephemeral_bytes, node.ephemeral_bytes - bytes);
    for (const auto& [name, amount] : asked.scalars) ask(amount, room[name] - scalars[name]);
    return lacks;
  }

  bool PortIsTaken(const PodClass& pod, int number) const {
    for (const Placed& other : placed) {
      if (other.node != number) continue;
      for (const HostPort& theirs : other.pod->host_ports) {
        for (const HostPort& mine : pod.host_ports) {
          const bool all = mine.ip == "0.0.0.0" || theirs.ip == "0.0.0.0";
          if (mine.port == theirs.port && mine.protocol == theirs.protocol &&
              (all || mine.ip == theirs.ip)) {
            return true;
          }
        }
      }
    }
    return false;
  }

  bool ExceedsVolumeLimits(const PodClass& pod, int number) const {
    std::set<CsiVolume> in_use, attached;
    for (const Placed& other : placed) {
      if (other.node == number)
        in_use.insert(other.pod->attached.begin(), other.pod->attached.end());
    }
    if (const auto at = attachments.find(number); at != attachments.end()) attached = at->second;
    attached.insert(in_use.begin(), in_use.end());
    return std::any_of(
        nodes[number].volume_limits.begin(), nodes[number].volume_limits.end(),
        [&](const VolumeLimit& limit) {
          const auto is_of = [&](const CsiVolume& volume) { return volume.driver == limit.driver; };
          const auto more = std::count_if(
              pod.attached.begin(), pod.attached.end(),
              [&](const CsiVolume& volume) { return is_of(volume) && !in_use.contains(volume); });
          const auto here = std::count_if(attached.begin(), attached.end(), is_of);
          return more > 0 && here + more > limit.volumes_max;
        });
  }

  static bool CannotUseVolumes(const PodClass& pod, const SchedulingNode& node) {
    return std::any_of(pod.volumes.begin(), pod.volumes.end(), [&](const BoundVolume& volume) {
      const auto& plugins = node.migrated_plugins;
      const bool is_migrated = volume.migrated && std::count(plugins.begin(), plugins.end(),
                                                             volume.migrated->plugin) > 0;
      const auto& terms = is_migrated ? volume.migrated->node_affinity : volume.node_affinity;
      return terms && !AnyMatches(*terms, "", node.labels);
    });
  }

  static bool IsInAnotherZone(const PodClass& pod, const SchedulingNode& node) {
    // The labels of old, and those of today that stand in for them.
    const std::map<std::string, std::string> today = {
        {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
        {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"}};
    bool says = false;
    for (const auto& [old, current] : today)
      says |= Value(node, old) != nullptr || Value(node, current) != nullptr;
    return says && std::any_of(pod.volumes.begin(), pod.volumes.end(), [&](const auto& volume) {
             return std::any_of(volume.zones.begin(), volume.zones.end(), [&](const auto& zone) {
               const std::string* here = Value(node, zone.key);
               if (here == nullptr && today.contains(zone.key))
                 here = Value(node, today.at(zone.key));
               return here == nullptr ||
                      std::count(zone.values.begin(), zone.values.end(), *here) == 0;
             });
           });
  }

  bool ClaimIsInUse(const PodClass& pod) const {
    return std::any_of(placed.begin(), placed.end(), [&](const Placed& other) {
      return other.pod->object_namespace == pod.object_namespace &&
             std::any_of(pod.exclusive_claims.begin(), pod.exclusive_claims.end(),
                         [&](const std::string& claim) {
                           return std::count(other.pod->claims.begin(), other.pod->claims.end(),
                                             claim) > 0;
                         });
    });
  }

  bool AttachesUnknown(const PodClass& pod, int number) const {
    return !pod.attached.empty() && !nodes[number].volume_limits.empty() &&
           std::any_of(placed.begin(), placed.end(), [&](const Placed& other) {
             return other.node == number && other.pod->attaches_unknown;
           });
  }

  bool HoldsUnknown(int number) const {
    return std::any_of(placed.begin(), placed.end(), [&](const Placed& other) {
      return other.node == number && other.pod->holds_unknown;
    });
  }

  // All that reject the node, whichever would be asked first.
  std::set<Rejection> Rejections(const PodClass& pod, int number) const {
    const SchedulingNode& node = nodes[number];
    std::set<Rejection> all;
    const NodeTaint cordon{"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule};
    if (node.unschedulable && !Tolerate(pod.tolerations, cordon))
      all.insert(Rejection::kUnschedulable);
    if (Untolerated(pod, node)) all.insert(Rejection::kTaint);
    if (!FitsAffinity(pod, node)) all.insert(Rejection::kNodeAffinity);
    if (PortIsTaken(pod, number)) all.insert(Rejection::kHostPort);
    if (LacksRoom(pod, number)) all.insert(Rejection::kResources);
    if (ClaimIsInUse(pod)) all.insert(Rejection::kClaimInUse);
    if (CannotUseVolumes(pod, node)) all.insert(Rejection::kVolumeAffinity);
    if (IsInAnotherZone(pod, node)) all.insert(Rejection::kVolumeZone);
    if (ExceedsVolumeLimits(pod, number)) all.insert(Rejection::kVolumeLimit);
    if (BreaksSpread(pod, node)) all.insert(Rejection::kSpread);
    if (BreaksAffinity(pod, node)) all.insert(Rejection::kAffinity);
    if (BreaksAntiAffinity(pod, node)) all.insert(Rejection::kAntiAffinity);
    if (BreaksAntiAffinityOfOthers(pod, node)) all.insert(Rejection::kExistingAntiAffinity);
    if (HoldsUnknown(number)) all.insert(Rejection::kUnreadPod);
    if (AttachesUnknown(pod, number)) all.insert(Rejection::kUnknownVolumes);
    return all;
  }
};

}  // namespace rudderfish::testing
