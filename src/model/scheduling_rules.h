// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cluster/ids.h"
#include "cluster/scheduling.h"
#include "model/host_ports.h"
#include "model/node_table.h"
#include "model/pod_counts.h"
#include "model/volume_limits.h"

// Where a pod may run, by the rules of kube-scheduler's default profile of v1.36 (the plugins are
// named beside each rejection): the same nodes, and for the others the same reason, as the first
// plugin in its order that rejects a node gives it. docs/scheduling-rules.md says what is modelled
// and how that is proven.
//
// Incremental: pods of equal shape are one class; what depends on class and node alone is computed
// when a class is first asked about, what depends on other pods is counted as they come and go.
// Filter then takes a few passes over columns, and allocates nothing once its result has its size.
// One thread.

namespace rudderfish {

// In the order in which kube-scheduler asks; the last three are ours alone.
enum class Rejection : uint8_t {
  kNone,
  kPod,                   // Whatever the nodes: RejectionOfPod says why.
  kNotNamed,              // NodeAffinity: its terms name nodes, and not this one.
  kUnschedulable,         // NodeUnschedulable
  kTaint,                 // TaintToleration
  kNodeAffinity,          // NodeAffinity
  kHostPort,              // NodePorts
  kResources,             // NodeResourcesFit: Feasibility::short_of says which.
  kClaimInUse,            // VolumeRestrictions: a claim with ReadWriteOncePod.
  kVolumeLimit,           // NodeVolumeLimits
  kVolumeAffinity,        // VolumeBinding
  kVolumeZone,            // VolumeZone
  kSpreadLabel,           // PodTopologySpread: the node lacks a topology key.
  kSpread,                // PodTopologySpread
  kAffinity,              // InterPodAffinity
  kAntiAffinity,          // InterPodAffinity
  kExistingAntiAffinity,  // InterPodAffinity: of pods that run already.
  kUnreadPod,             // A pod there is not read in full (PodClass::holds_unknown).
  kUnknownVolumes,        // A pod there attaches what is not known (PodClass::attaches_unknown).
  kTooFar,                // LimitLatency
};
inline constexpr int kRejectionCount = 20;

// What Filter says of one class of pods and all nodes. Reused from call to call.
struct Feasibility {
  // [node] Of short_of, bit 0: pods, 1: cpu, 2: memory, 3: ephemeral storage, 4 and on: the scalars
  // of the class in order, the first kScalarsMax.
  std::vector<Rejection> rejection;
  std::vector<uint32_t> short_of;
  int feasible = 0;

  std::vector<int64_t> by_domain;  // Filter's working space.
  std::vector<int32_t> in_use;     // The same. [node] Of a driver's volumes.

  bool IsFeasible(NodeId node) const { return rejection[node] == Rejection::kNone; }
};

// A class as the rules ask for it: names resolved to rows, matchers and masks.
struct CompiledPod {
  struct Spread {
    PodCounts::MatcherId matcher = kNone;  // kNone: counts no pod.
    int key_row = 0;
    int64_t skew_max = 1, domains_min = 1;
    bool by_host = false;  // Its key is kubernetes.io/hostname.
    bool selects_self = false;
    bool needs_affinity = true, needs_tolerance = false;  // For a node to be counted.
  };
  struct Others {  // All terms of one topology together.
    PodCounts::MatcherId matcher = kNone;
    int key_row = 0;
  };
  struct OnNode {  // What follows from class and node alone; small, for there are many.
    Rejection early = Rejection::kNone;  // Of what is asked before ports and resources.
    Rejection late = Rejection::kNone;   // Of volumes.
    bool fits_affinity = true;           // Node selector and required node affinity.
    bool is_tolerated = true;            // Its taints of effect NoSchedule and NoExecute.
    uint8_t image_score = 0;             // 0 to 100.
    uint16_t avoided = 0;                // Taints of effect PreferNoSchedule, not tolerated.
    int32_t preference = 0;              // Sum of the weights of preferred node affinity.
  };

  std::shared_ptr<const PodClass> pod;
  NodeTable::Holding holding;
  std::vector<std::pair<int, int64_t>> asks;  // Row and amount of scalars, of what is asked about.
  std::vector<OnNode> on_node;                // Empty: of a class that nothing is asked about.
  bool names_no_node = false;                 // "pod affinity terms conflict"
  bool is_asked_about = false;                // Or has been: what follows of other pods is there.
  std::vector<HostPorts::Use> ports;
  std::vector<int> claims, exclusive_claims;
  std::vector<int> attached;                  // By CSI drivers: rows of VolumeLimits.
  PodCounts::MatcherId attracted_by = kNone;  // All terms of required affinity together.
  std::vector<int> attracted_keys;
  bool attracts_itself = false;
  std::vector<Others> repelled_by, preferred;
  std::vector<Spread> must_spread, may_spread;
  bool spread_needs_all_keys = true;  // Of may_spread: false for the system's defaults.
};

class SchedulingRules {
 public:
  // Forgets everything. Names of nodes are unique; labels of namespaces decide what namespace
  // selectors select.
  void Reset(std::vector<SchedulingNode> nodes, PodCounts::NamespaceLabels namespaces);

  // The node of that name has changed: labels, taints, what it offers. Costs a look at each class.
  void ReplaceNode(NodeId id, SchedulingNode node);

  // A namespace has appeared, or has other labels. False: that changes what is known, and takes a
  // Reset.
  bool PutNamespace(const std::string& name, const Labels& labels) {
    return counts_.PutNamespace(name, labels);
  }

  // The id of this class and all that are equal to it, valid until Reset: for questions about it,
  // until ForgetQuestions.
  PodClassId Register(const std::shared_ptr<const PodClass>& pod);

  // The same id, for Assume and Forget alone: what follows for each node is not computed.
  PodClassId RegisterPlaced(const std::shared_ptr<const PodClass>& pod);

  // Gives back what Register has computed for each node. Ids stay; who asks registers again.
  void ForgetQuestions();
  int question_count() const { return questions_; }  // Classes for which there is such.

  // A pod of that class has been put on a node, or has left it. A pod that begins to end is
  // forgotten as serving and assumed as terminating.
  void Assume(PodClassId pod, NodeId node, PodLife life = PodLife::kServing);
  void Forget(PodClassId pod, NodeId node, PodLife life = PodLife::kServing);

  // What VolumeAttachments say is attached to a node. Sorted, each once.
  void SetAttached(NodeId node, std::span<const CsiVolume> volumes) {
    volume_limits_.SetAttached(node, volumes);
  }

  void Filter(PodClassId pod, Feasibility* out) const;

  // Rejects besides, of what Filter has found feasible, the nodes that are not known to be within
  // the pod's hard limit of latency.
  void LimitLatency(PodClassId pod, Feasibility* out) const;

  // Why no node will do, whatever the nodes; empty: that depends on them.
  std::string_view RejectionOfPod(PodClassId pod) const;

  // kube-scheduler's words. A node that lacks several resources counts once for each.
  std::vector<std::pair<std::string, int>> CountReasons(PodClassId pod,
                                                        const Feasibility& feasibility) const;
  // "0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods."
  std::string Message(PodClassId pod, const Feasibility& feasibility) const;

  const NodeTable& nodes() const { return nodes_; }
  const PodCounts& counts() const { return counts_; }
  const CompiledPod& compiled(PodClassId pod) const { return classes_[pod]; }
  int class_count() const { return static_cast<int>(classes_.size()); }

 private:
  void CompileClaims(CompiledPod* made);
  void Change(PodClassId pod, NodeId node, int sign);
  void FilterResources(const CompiledPod& pod, Feasibility* out) const;
  void FilterUnread(Feasibility* out) const;

  NodeTable nodes_;
  PodCounts counts_;
  VolumeLimits volume_limits_;
  std::deque<CompiledPod> classes_;
  int questions_ = 0;
  std::unordered_multimap<size_t, PodClassId> classes_by_hash_;
  std::unordered_map<const PodClass*, PodClassId> classes_by_address_;
  HostPorts ports_;
  std::unordered_map<std::string, int> claims_;  // "namespace/name" to a row of claim_users_.
  std::vector<int64_t> claim_users_;
  std::vector<int32_t> unread_by_node_;  // Pods that hold what cannot be read.
  int64_t unread_ = 0;
};

// "node(s) were unschedulable"; of kPod and kResources nothing.
std::string_view WordsOf(Rejection rejection);

}  // namespace rudderfish
