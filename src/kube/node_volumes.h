// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/scheduling.h"
#include "kube/pod_volumes.h"
#include "kube/volume_reader.h"

// What CSINodes and VolumeAttachments say of nodes, whichever of these, the nodes and the volumes
// they name is heard of first; and of which nodes that is news. Not thread safe.

namespace rudderfish::kube {

class NodeVolumes {
 public:
  // REQUIRES: `references` outlive this.
  explicit NodeVolumes(const VolumeReferences* references) : references_(*references) {}

  void PutCsiNode(const CsiNode& node);
  void RemoveCsiNode(const std::string& name);
  void PutAttachment(const VolumeAttachment& attachment);
  void RemoveAttachment(const std::string& name);
  void NoteVolume(const std::string& name);  // It has changed.

  // The node as its CSINode completes it.
  SchedulingNode Complete(SchedulingNode node) const;

  // What is attached to it, as kube-scheduler counts it. Sorted, each once.
  std::vector<CsiVolume> AttachedTo(const std::string& node) const;

  // Nodes whose CSINode, and to which what is attached, has changed since this was asked last.
  std::set<std::string> TakeCompleted() { return std::exchange(completed_, {}); }
  std::set<std::string> TakeAttachedTo() { return std::exchange(attached_to_, {}); }

 private:
  const VolumeReferences& references_;
  std::map<std::string, CsiNode> nodes_;
  std::map<std::string, VolumeAttachment> attachments_;               // By their names.
  std::map<std::string, std::set<std::string>> by_node_, by_volume_;  // Names of attachments.
  std::set<std::string> completed_, attached_to_;
};

}  // namespace rudderfish::kube
