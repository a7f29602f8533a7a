// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/application.h"
#include "cluster/catalog.h"
#include "cluster/node_terms.h"
#include "cluster/resources.h"
#include "cluster/scheduling_volumes.h"

// What kube-scheduler looks at when it places a pod: plain values, in its own terms and integers.
// Read from API objects by kube/scheduling_reader.h; what follows: model/scheduling_rules.h.

namespace rudderfish {

enum class TaintEffect : uint8_t { kNoSchedule, kPreferNoSchedule, kNoExecute };

struct NodeTaint {
  std::string key, value;
  TaintEffect effect = TaintEffect::kNoSchedule;

  bool operator==(const NodeTaint&) const = default;
};

struct PodToleration {
  enum class Operator : uint8_t { kEqual, kExists };
  std::string key;  // Empty: of any key.
  Operator op = Operator::kEqual;
  std::string value;                  // Of kEqual.
  std::optional<TaintEffect> effect;  // Nothing: of any effect.

  bool Tolerates(const NodeTaint& taint) const;
  bool operator==(const PodToleration&) const = default;
};

bool Tolerate(std::span<const PodToleration> tolerations, const NodeTaint& taint);

// Extended resources, huge pages. Sorted by name, names once.
using ScalarAmounts = std::vector<std::pair<std::string, int64_t>>;

// That one pod may ask for: which of them a node lacks are bits of a word. What pods hold has no
// limit.
inline constexpr size_t kScalarsMax = 28;

// How much a pod may say that is to be placed, for each costs a look at every node, on the thread
// that places all of them. Of a pod that has a node everything counts, however much it says.
inline constexpr size_t kTopologyKeysMax = 32;  // Of affinity to pods and of topology spread.
inline constexpr size_t kNodeTermsMax = 512;    // Node selector, expressions, tolerations.
inline constexpr size_t kNodeValuesMax = 2048;  // Of those expressions.

struct NodeImage {
  std::string name;  // One entry a name; an image has several.
  int64_t size_bytes = 0;

  bool operator==(const NodeImage&) const = default;
};

// The images of a node, shared by its copies: there are many, and their names are long.
class NodeImages {
 public:
  NodeImages() : NodeImages(std::vector<NodeImage>()) {}
  NodeImages(std::vector<NodeImage> all)  // NOLINT(google-explicit-constructor)
      : all_(std::make_shared<const std::vector<NodeImage>>(std::move(all))) {}
  NodeImages(std::initializer_list<NodeImage> all) : NodeImages(std::vector<NodeImage>(all)) {}

  auto begin() const { return all_->begin(); }
  auto end() const { return all_->end(); }

  bool operator==(const NodeImages& other) const {
    return all_ == other.all_ || *all_ == *other.all_;
  }

 private:
  std::shared_ptr<const std::vector<NodeImage>> all_;
};

struct SchedulingNode {
  std::string name;
  Labels labels;
  std::vector<NodeTaint> taints;
  bool unschedulable = false;
  Resources allocatable;
  int64_t ephemeral_bytes = 0, pods_max = 0;  // Allocatable.
  ScalarAmounts scalars;                      // Allocatable.
  NodeImages images;
  // What its CSINode says: each driver once, and in-tree plugins that drivers have taken over from.
  std::vector<VolumeLimit> volume_limits;
  std::vector<std::string> migrated_plugins;
  std::optional<double> user_ms;  // Round trip to the users; absent: not annotated.
  std::string unread_latency;     // What was said of it instead of a number.

  bool operator==(const SchedulingNode&) const = default;
};

// Which pods of which namespaces. The labels of matchLabelKeys are part of the selector.
struct PodAffinityTerm {
  std::vector<std::string> namespaces;              // Sorted.
  std::optional<LabelSelector> namespace_selector;  // Further namespaces; nothing: none.
  std::optional<LabelSelector> selector;            // Nothing: no pod.
  std::string topology_key;

  bool operator==(const PodAffinityTerm&) const = default;
};

struct PreferredPods {
  PodAffinityTerm term;
  int64_t weight = 0;  // Below 0: anti-affinity.

  bool operator==(const PreferredPods&) const = default;
};

struct SpreadConstraint {
  enum class When : uint8_t { kDoNotSchedule, kScheduleAnyway };
  enum class Policy : uint8_t { kHonor, kIgnore };
  std::string topology_key;
  int64_t skew_max = 1;
  When when = When::kDoNotSchedule;
  std::optional<LabelSelector> selector;  // Nothing: no pod.
  int64_t domains_min = 1;
  Policy node_affinity = Policy::kHonor;
  Policy node_taints = Policy::kIgnore;

  bool operator==(const SpreadConstraint&) const = default;
};

struct HostPort {
  std::string ip, protocol;  // "0.0.0.0": all; "TCP", "UDP", "SCTP".
  int64_t port = 0;

  bool ConflictsWith(const HostPort& other) const;
  bool operator==(const HostPort&) const = default;
};

// The same requests, as each part of kube-scheduler counts them.
struct PodAmounts {
  Resources requests;           // What must fit: from the spec.
  int64_t ephemeral_bytes = 0;  // The same.
  ScalarAmounts scalars;        // The same.
  Resources held;               // What the pod takes once placed: with a resize under way.
  Resources held_assumed;       // The same, with 100m and 200Mi for containers that ask nothing.
  Resources scored_assumed;  // For NodeResourcesFit's score: what is given for the pod as a whole
                             // is left out there, and containers that ask nothing are assumed.

  bool operator==(const PodAmounts&) const = default;
};

// What equal pods have in common: all that decides where they can go and what they are to others.
// Immutable once it is shared.
struct PodClass {
  std::string object_namespace;
  Labels labels;
  PodAmounts amounts;
  std::vector<PodToleration> tolerations;
  Labels node_selector;
  std::optional<std::vector<NodeTerm>> required_nodes;  // Any of them; none at all fits no node.
  std::vector<PreferredNodes> preferred_nodes;
  std::vector<PodAffinityTerm> required_pods, forbidden_pods;  // Affinity, anti-affinity.
  std::vector<PreferredPods> preferred_pods;
  std::vector<SpreadConstraint> spread;
  std::optional<LabelSelector> default_spread;  // Of services and controller; for want of its own.
  std::vector<HostPort> host_ports;
  std::vector<BoundVolume> volumes;
  std::vector<std::string> claims;            // Names, in its namespace.
  std::vector<std::string> exclusive_claims;  // Those of them with ReadWriteOncePod.
  std::vector<CsiVolume> attached;            // By CSI drivers. Sorted, each once.
  std::vector<std::string> images;            // Normalised; once for every container or volume.
  int64_t containers = 0, priority = 0;       // Init containers count, too.
  bool may_preempt = true;                    // Its preemptionPolicy is not Never.
  std::string scheduler;
  std::vector<std::string> gates;
  LatencyLimits latency_limits;  // No rule of kube-scheduler's; heeded by policies of ours.

  std::string rejection;                // Why no node will do, whatever the nodes; empty: none.
  std::vector<std::string> unmodelled;  // What kube-scheduler would look at and we do not.
  // What it takes of a node cannot be read: no other pod joins it there. No API server stores such
  // a pod.
  bool holds_unknown = false;
  bool attaches_unknown = false;  // Nor what is attached for it, beyond `attached`.

  bool operator==(const PodClass&) const = default;
};

size_t HashOf(const PodAffinityTerm& term);
size_t HashOf(const PodClass& pod);

}  // namespace rudderfish
