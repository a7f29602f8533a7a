// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/state.h"
#include "compat/reach_request.h"
#include "model/placement.h"

// What REACH's wire does not say but a decision needs: workloads, layers, kinds of node, calls,
// latencies; and the State that it makes of a request. Immutable: any thread may use it.

namespace rudderfish {

// What to do about a node of no known kind (a control plane), a pod there, or a service that is no
// workload. Ignored as REACH's own server does, no pod is moved to or from such a node. Refusing is
// for those to whom they are a mistake.
enum class ReachStrangers { kIgnore, kRefuse };

struct ReachWorld {
  std::shared_ptr<const Catalog> catalog;
  std::shared_ptr<const CallGraph> calls;
  Network network;
  std::map<std::string, KindId, std::less<>> kind_of_node;  // Nodes known by name.
  std::vector<double> background_mbytes_per_s;              // [kind] Of a node; empty: none.
  ReachStrangers strangers = ReachStrangers::kIgnore;

  // By name, or else by the longest name of a kind that the name begins with, as <kind>-<anything>;
  // kNone if there is none.
  KindId KindOf(std::string_view node) const;
};

// Which pods may go where, by the request's pod_deployable: a bit for every pair.
class ReachMask {
 public:
  void Reset(const State& state);
  void Allow(PodId pod, NodeId node) { bits_[Index(pod, node)] = true; }
  bool Allows(PodId pod, NodeId node) const { return bits_[Index(pod, node)]; }

  // The first pod of the workload on move.from that may go to move.to, or kNone.
  PodId PodFor(const State& state, const Move& move) const;

 private:
  size_t Index(PodId pod, NodeId node) const { return static_cast<size_t>(pod) * nodes_ + node; }

  int nodes_ = 0;
  std::vector<bool> bits_;            // [pod][node]
  std::vector<int32_t> hosts_begin_;  // [workload][node] into hosts_
  std::vector<PodId> hosts_;          // Bound pods by workload and node, ascending.
};

// Kind kInvalidArgument where a request contradicts itself, kFailedPrecondition where it does not
// fit this world. Pending pods are in the state, without a node. Pods that pod_deployable does not
// name may go nowhere. Returns what was left out as the world does not know it: a sentence each.
Result<std::vector<std::string>> BuildReachState(const ReachWorld& world,
                                                 const ReachRequest& request, State* state,
                                                 ReachMask* mask);

}  // namespace rudderfish
