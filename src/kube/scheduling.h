// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kube/mirror.h"

// What objects say together about where pods can run, in numbers and in words for people: what is
// taken of a node, why it takes no more, why a pod is not moved. As kube-scheduler counts it, as
// far as it is modelled; what is not is a reason to leave a pod where it is.

namespace rudderfish::kube {

// Of all pods that take room on a node, of any owner.
struct NodeLoad {
  Resources requested;
  int pods = 0;
};

using NodeLoads = std::unordered_map<std::string, NodeLoad>;  // By name; also of unknown nodes.

NodeLoads LoadOfNodes(const Mirror& mirror);

// Why no new pod may be put on a node, for pods with these tolerations; empty if it may, as far as
// resources allow. Taints of effect PreferNoSchedule keep no pod away.
std::string WhyClosed(const Node& node, const NodeLoad& load,
                      std::span<const PodToleration> tolerations);

std::string_view NameOf(TaintEffect effect);

// Why pods of this shape may not be put on each of these nodes; empty if they may. Nodes that take
// no pods now count, too: a plan of several moves may make room there.
std::string WhyNotOnAll(const PodShape& shape, std::span<const Node* const> nodes);

// Why this pod is left where it is whatever the nodes, one thing an entry; empty if it may be
// moved. `now`: Unix seconds; what its owners have said may end with time.
std::vector<std::string> WhyNotMovable(const Mirror& mirror, const Pod& pod, int64_t now);

// Whether that answer may change though nothing else does.
bool MayBecomeMovable(const Mirror& mirror, const Pod& pod);

}  // namespace rudderfish::kube
