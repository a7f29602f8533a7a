// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/scheduling.h"
#include "model/scheduling_rules.h"

// A live cluster's nodes and placed pods in SchedulingRules, kept as they come and go. Pods and
// changed nodes are entered one by one, and so are namespaces in which no pod is known; nodes that
// appear or vanish, and other namespaces whose labels change and matter, mark the whole as stale,
// and the next call of Rules rebuilds it, once for all of them. A rebuild also forgets the classes
// of pods that are gone.
//
// Ids of nodes and classes are valid until the next Rules(). One thread.

namespace rudderfish {

class SchedulingTables {
 public:
  bool PutNode(const SchedulingNode& node);  // False: that is as it was.
  void RemoveNode(const std::string& name);
  // What VolumeAttachments say of a node, whether it is known or not.
  enum class Attachments { kAsTheyWere, kMore, kFewer };  // kFewer: or others.
  Attachments PutAttachments(const std::string& node, const std::vector<CsiVolume>& volumes);
  bool PutNamespace(const std::string& name, const Labels& labels);  // False: as it was.
  void RemoveNamespace(const std::string& name);

  // The pod takes room there, wherever it did before. A node that is not known takes it once it is.
  // False: that is as it was.
  bool Place(const std::string& key, const std::shared_ptr<const PodClass>& shape,
             const std::string& node, PodLife life);
  void Remove(const std::string& key);

  // For a question about the cluster without a pod: removes it, and gives what puts it back.
  struct Taken {
    std::shared_ptr<const PodClass> shape;
    std::string node;
    PodLife life = PodLife::kServing;
  };
  std::optional<Taken> Take(const std::string& key);
  void PutBack(const std::string& key, const Taken& taken) {
    Place(key, taken.shape, taken.node, taken.life);
  }

  // Where it takes room; empty: nowhere.
  std::string_view NodeOf(const std::string& key) const;

  // Of a pod that takes room somewhere; null: it does not.
  std::shared_ptr<const PodClass> ShapeOf(const std::string& key) const;

  // Up to date.
  SchedulingRules& Rules();

  // What more is held of on a node than it has (model/overcommitment.h); empty: nothing.
  std::vector<std::string> OvercommittedOn(const std::string& node);

  int node_count() const { return static_cast<int>(nodes_.size()); }
  int pod_count() const { return static_cast<int>(pods_.size()); }
  int64_t rebuilds() const { return rebuilds_; }
  int64_t changes() const { return changes_; }  // Of nodes and of pods on them, until now.

 private:
  struct Placed : Taken {
    PodClassId pod_class = kNone;  // kNone: not entered.
    NodeId at = kNone;
  };

  void Enter(Placed* pod);
  void TakeOut(Placed* pod);
  void Rebuild();

  std::map<std::string, SchedulingNode> nodes_;
  std::map<std::string, std::vector<CsiVolume>> attachments_;  // By node.
  PodCounts::NamespaceLabels namespaces_;
  std::unordered_map<std::string, Placed> pods_;
  SchedulingRules rules_;
  bool is_stale_ = true;
  int classes_max_ = 0;  // Beyond which most of them are of pods that are gone.
  int64_t rebuilds_ = 0, changes_ = 0;
};

}  // namespace rudderfish
