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
                      std::span<const Toleration> tolerations) {
  if (node.unschedulable) return "cordoned";
  if (!node.ready) return "not ready";
  for (const Taint& taint : node.taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    const bool tolerated =
        std::any_of(tolerations.begin(), tolerations.end(),
                    [&](const Toleration& toleration) { return toleration.Tolerates(taint); });
    if (!tolerated) return fmt::format("tainted {}:{}", taint.key, taint.effect);
  }
  if (load.pods >= node.pods_max) return fmt::format("full with {} pods", load.pods);
  return {};
}

std::vector<std::string> WhyNotMovable(const Mirror& mirror, const Pod& pod) {
  std::vector<std::string> reasons = pod.shape->obstacles;
  const std::string& kind = pod.shape->owner.kind;
  if (kind.empty()) {
    reasons.push_back("nothing would start it anew: it has no controller");
  } else if (kind != "ReplicaSet" && kind != "Deployment") {
    reasons.push_back(fmt::format("a {} starts no replacement beside the old pod", kind));
  }
  AddVolumes(mirror, pod, &reasons);
  return reasons;
}

}  // namespace rudderfish::kube
