// SPDX-License-Identifier: Apache-2.0
#include "kube/node_volumes.h"

namespace rudderfish::kube {
namespace {

void TakeOut(const std::string& key, const std::string& name,
             std::map<std::string, std::set<std::string>>* index) {
  const auto at = index->find(key);
  if (at == index->end()) return;
  at->second.erase(name);
  if (at->second.empty()) index->erase(at);
}

}  // namespace

void NodeVolumes::PutCsiNode(const CsiNode& node) {
  nodes_[node.name] = node;
  completed_.insert(node.name);
}

void NodeVolumes::RemoveCsiNode(const std::string& name) {
  nodes_.erase(name);
  completed_.insert(name);
}

void NodeVolumes::PutAttachment(const VolumeAttachment& attachment) {
  RemoveAttachment(attachment.name);
  attachments_[attachment.name] = attachment;
  by_node_[attachment.node].insert(attachment.name);
  by_volume_[attachment.volume].insert(attachment.name);
  attached_to_.insert(attachment.node);
}

void NodeVolumes::RemoveAttachment(const std::string& name) {
  const auto at = attachments_.find(name);
  if (at == attachments_.end()) return;
  attached_to_.insert(at->second.node);
  TakeOut(at->second.node, name, &by_node_);
  TakeOut(at->second.volume, name, &by_volume_);
  attachments_.erase(at);
}

void NodeVolumes::NoteVolume(const std::string& name) {
  const auto at = by_volume_.find(name);
  if (at == by_volume_.end()) return;
  for (const std::string& attachment : at->second)
    attached_to_.insert(attachments_.at(attachment).node);
}

SchedulingNode NodeVolumes::Complete(SchedulingNode node) const {
  const auto at = nodes_.find(node.name);
  if (at == nodes_.end()) return node;
  node.volume_limits = at->second.limits;
  node.migrated_plugins = at->second.migrated_plugins;
  return node;
}

// Of volumes that are not there, or are of in-tree types, it counts none.
std::vector<CsiVolume> NodeVolumes::AttachedTo(const std::string& node) const {
  std::set<CsiVolume> all;
  const auto names = by_node_.find(node);
  if (names == by_node_.end()) return {};
  for (const std::string& name : names->second) {
    const VolumeAttachment& attachment = attachments_.at(name);
    const auto volume = references_.volumes.find(attachment.volume);
    const bool counts = !attachment.attacher.empty() && volume != references_.volumes.end() &&
                        volume->second.attached && !volume->second.is_in_tree;
    if (counts) all.insert({attachment.attacher, volume->second.attached->handle});
  }
  return {all.begin(), all.end()};
}

}  // namespace rudderfish::kube
