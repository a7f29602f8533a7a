// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/scheduling_observer.h"
#include "control/cluster_events.h"
#include "control/pod_refusals.h"
#include "control/scheduling_tables.h"

// Which room there is in a cluster, as a Scheduler knows it: who takes it where, by what the
// cluster shows and by what is assumed; and of each change whose refusal it may end, so that those
// are looked at again, and no others. One thread.

namespace rudderfish {

class SchedulingRoom {
 public:
  void PutNode(const SchedulingNode& node);
  void RemoveNode(const std::string& name);
  void PutAttachments(const std::string& node, const std::vector<CsiVolume>& volumes);
  void PutNamespace(const std::string& name, const Labels& labels);
  void RemoveNamespace(const std::string& name) { tables_.RemoveNamespace(name); }

  // A pod is given that node.
  void Assume(const std::string& key, const std::shared_ptr<const PodClass>& shape,
              const std::string& node);
  // It has it still, and may have become another.
  void Update(const std::string& key, const ObservedPod& pod, const std::string& node);
  // What it takes, it takes there.
  void Move(const std::string& key, const std::string& node);
  // The cluster shows it on its node. True: that is new here.
  bool Settle(const std::string& key, const ObservedPod& pod);
  // What it took is there for others.
  void Free(const std::string& key);

  // Wakes those of the queue whom a change since the last time may concern.
  void Wake(const ClusterEvents::ShapeOf& shape_of, SchedulingQueue* queue, Instant now);
  bool has_changed() const { return !events_.empty(); }

  // Nodes that others than we have put pods on since the last time and that hold more than they
  // have: what of.
  using Overfull = std::vector<std::pair<std::string, std::vector<std::string>>>;
  Overfull TakeOverfull();

  SchedulingTables& tables() { return tables_; }
  PodRefusals& refusals() { return refusals_; }

 private:
  void NoteOtherHold(std::string_view node);

  SchedulingTables tables_;
  ClusterEvents events_;
  PodRefusals refusals_;
  std::set<std::string> to_look_at_;  // Nodes that somebody else has put a pod on.
};

}  // namespace rudderfish
