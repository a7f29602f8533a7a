// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling.h"

#include <fmt/format.h>

#include <algorithm>

namespace rudderfish::kube {
namespace {

// Volumes that can be used on some nodes only, or that nothing is known of.
void AddVolumes(const Mirror& mirror, const Pod& pod, std::vector<std::string>* reasons) {
  for (const std::string& name : pod.shape->claims) {
    const PersistentVolumeClaim* claim = mirror.claims.Find({pod.meta.key.object_namespace, name});
    const PersistentVolume* volume =
        claim == nullptr ? nullptr : mirror.volumes.Find({"", claim->volume});
    if (volume == nullptr) {
      reasons->push_back(fmt::format("uses the claim {}, whose volume is not known", name));
    } else if (volume->node_bound) {
      reasons->push_back(fmt::format("uses the claim {}, whose volume is bound to nodes", name));
    }
  }
}

// visit(opt_out, whose): of the pod, and of those that control it: "its Deployment ".
template <class Visit>
void ForOptOuts(const Mirror& mirror, const Pod& pod, Visit visit) {
  for (const OptOut& opt_out : pod.shape->opt_outs) visit(opt_out, "");
  ObjectRef owner = pod.shape->owner;
  for (int height = 0; height < 3; ++height) {  // Deeper than any chain of the API server's own.
    const PodController* known =
        mirror.FindController(owner.kind, {pod.meta.key.object_namespace, owner.name});
    if (known == nullptr) return;
    for (const OptOut& opt_out : known->opt_outs)
      visit(opt_out, fmt::format("its {} ", owner.kind));
    owner = known->owner;
  }
}

}  // namespace

NodeLoads LoadOfNodes(const Mirror& mirror) {
  NodeLoads loads;
  for (const auto& [key, pod] : mirror.pods.objects()) {
    if (!pod.occupies()) continue;
    NodeLoad& load = loads[pod.node];
    load.requested += pod.shape->requests;
    ++load.pods;
  }
  return loads;
}

std::string WhyClosed(const Node& node, const NodeLoad& load,
                      std::span<const PodToleration> tolerations) {
  if (node.unschedulable) return "cordoned";
  if (!node.ready) return "not ready";
  for (const NodeTaint& taint : node.taints) {
    if (taint.effect != TaintEffect::kPreferNoSchedule && !Tolerate(tolerations, taint))
      return fmt::format("tainted {}:{}", taint.key, NameOf(taint.effect));
  }
  if (load.pods >= node.pods_max) return fmt::format("full with {} pods", load.pods);
  return {};
}

std::string_view NameOf(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kNoSchedule:
      return "NoSchedule";
    case TaintEffect::kPreferNoSchedule:
      return "PreferNoSchedule";
    case TaintEffect::kNoExecute:
      break;
  }
  return "NoExecute";
}

std::string WhyNotOnAll(const PodShape& shape, std::span<const Node* const> nodes) {
  if (shape.nodes.empty()) return "";
  const auto allowed = std::count_if(nodes.begin(), nodes.end(), [&](const Node* node) {
    return shape.nodes.Allows(node->meta.key.name, node->labels);
  });
  if (allowed == std::ssize(nodes)) return "";
  return fmt::format("its node selector or node affinity allows {} of {} nodes", allowed,
                     nodes.size());
}

std::vector<std::string> WhyNotMovable(const Mirror& mirror, const Pod& pod, int64_t now) {
  std::vector<std::string> reasons = pod.shape->obstacles;
  ForOptOuts(mirror, pod, [&](const OptOut& opt_out, const std::string& whose) {
    if (opt_out.HoldsAt(pod.started_at, now)) reasons.push_back(whose + opt_out.why);
  });
  const std::string& kind = pod.shape->owner.kind;
  if (kind.empty()) {
    reasons.push_back("no controller would recreate it");
  } else if (kind != "ReplicaSet" && kind != "Deployment") {
    reasons.push_back(fmt::format("a {} starts no replacement while the old pod runs", kind));
  }
  AddVolumes(mirror, pod, &reasons);
  return reasons;
}

bool MayBecomeMovable(const Mirror& mirror, const Pod& pod) {
  bool may = false;
  ForOptOuts(mirror, pod,
             [&](const OptOut& opt_out, const std::string&) { may |= opt_out.for_s.has_value(); });
  return may;
}

}  // namespace rudderfish::kube
