// SPDX-License-Identifier: Apache-2.0
#include "control/scheduling_room.h"

#include <optional>

namespace rudderfish {
namespace {

PodLife LifeOf(const ObservedPod& pod) {
  return pod.is_terminating ? PodLife::kTerminating : PodLife::kServing;
}

}  // namespace

void SchedulingRoom::PutNode(const SchedulingNode& node) {
  if (!tables_.PutNode(node)) return;  // A heartbeat.
  events_.NoteOn(node.name, kMayEndByNode);
  refusals_.NoteFreed();
}

void SchedulingRoom::RemoveNode(const std::string& name) {
  tables_.RemoveNode(name);
  events_.Note(kMayEndByNode & ~kOfOneNode & ~kNoNode);  // Domains of topology have become fewer.
  refusals_.NoteFreed();
}

void SchedulingRoom::PutAttachments(const std::string& node,
                                    const std::vector<CsiVolume>& volumes) {
  if (tables_.PutAttachments(node, volumes) != SchedulingTables::Attachments::kFewer) return;
  events_.NoteOn(node, kMayEndByDetaching);
  refusals_.NoteFreed();
}

void SchedulingRoom::PutNamespace(const std::string& name, const Labels& labels) {
  if (!tables_.PutNamespace(name, labels)) return;
  events_.Note(kMayEndByNode & ~kOfOneNode & ~kNoNode);  // Namespaces that are selected.
  refusals_.NoteFreed();
}

void SchedulingRoom::Assume(const std::string& key, const std::shared_ptr<const PodClass>& shape,
                            const std::string& node) {
  tables_.Place(key, shape, node, PodLife::kServing);
  events_.NoteOn(node, MayEndByPlacing(*shape));
  refusals_.NotePlaced();
}

void SchedulingRoom::Update(const std::string& key, const ObservedPod& pod,
                            const std::string& node) {
  if (tables_.Place(key, pod.shape, node, LifeOf(pod))) NoteOtherHold(node);
}

void SchedulingRoom::Move(const std::string& key, const std::string& node) {
  const std::optional<SchedulingTables::Taken> taken = tables_.Take(key);
  if (!taken) return;
  tables_.Place(key, taken->shape, node, taken->life);
  NoteOtherHold(taken->node);
  NoteOtherHold(node);
  to_look_at_.insert(node);
}

bool SchedulingRoom::Settle(const std::string& key, const ObservedPod& pod) {
  const bool was_there = tables_.NodeOf(key) == pod.node;
  if (!was_there) Free(key);  // Of a node that we assumed it on.
  const bool is_news = tables_.Place(key, pod.shape, pod.node, LifeOf(pod));
  if (pod.is_terminating) {  // No longer counted for spread.
    events_.Note(MaskOf(Rejection::kSpread));
    refusals_.NoteFreed();
  }
  if (was_there && is_news) NoteOtherHold(pod.node);
  if (was_there) return false;
  events_.NoteOn(pod.node, MayEndByPlacing(*pod.shape));
  refusals_.NotePlaced();
  to_look_at_.insert(pod.node);
  return true;
}

void SchedulingRoom::Free(const std::string& key) {
  const std::string_view node = tables_.NodeOf(key);
  if (node.empty()) return;
  events_.NoteOn(node, kMayEndByLeaving);
  tables_.Remove(key);
  refusals_.NoteFreed();
}

// A pod holds, or is to others, what it did not before.
void SchedulingRoom::NoteOtherHold(std::string_view node) {
  events_.NoteOn(node, kMayEndByLeaving | kMayEndByPlacing);
  refusals_.NoteFreed();
  refusals_.NotePlaced();
}

void SchedulingRoom::Wake(const ClusterEvents::ShapeOf& shape_of, SchedulingQueue* queue,
                          Instant now) {
  events_.Wake(shape_of, &tables_, queue, now);
}

SchedulingRoom::Overfull SchedulingRoom::TakeOverfull() {
  Overfull overfull;
  for (const std::string& node : to_look_at_) {
    std::vector<std::string> what = tables_.OvercommittedOn(node);
    if (!what.empty()) overfull.emplace_back(node, std::move(what));
  }
  to_look_at_.clear();
  return overfull;
}

}  // namespace rudderfish
