// SPDX-License-Identifier: Apache-2.0
#include "control/cluster_events.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/node_room.h"

namespace rudderfish {
namespace {

constexpr size_t kNodesMax = 256;  // Beyond it nodes are not looked at one by one.

enum class Help : uint8_t { kNone, kMay, kInVain };
using ChangedNodes = std::vector<std::pair<NodeId, RejectionMask>>;

Help HelpOf(const SchedulingRules& rules, PodClassId pod, RejectionMask refused_by,
            const ChangedNodes& nodes) {
  Help help = Help::kNone;
  for (const auto& [node, may_end] : nodes) {
    if ((may_end & refused_by) == 0) continue;
    if (HasRoomFor(rules, pod, node)) return Help::kMay;
    help = Help::kInVain;
  }
  return help;
}

}  // namespace

void ClusterEvents::NoteOn(std::string_view node, RejectionMask may_end) {
  anywhere_ |= may_end & ~kOfOneNode;
  const RejectionMask there = may_end & kOfOneNode;
  if (there == 0) return;
  const auto at = on_nodes_.find(node);
  if (at != on_nodes_.end()) {
    at->second |= there;
  } else if (on_nodes_.size() < kNodesMax) {
    on_nodes_.emplace(node, there);
  } else {
    anywhere_ |= there;
  }
}

void ClusterEvents::Wake(const ShapeOf& shape_of, SchedulingTables* tables, SchedulingQueue* queue,
                         Instant now) {
  const RejectionMask anywhere = std::exchange(anywhere_, 0);
  const auto on_nodes = std::exchange(on_nodes_, {});
  if (queue->asleep() == 0) return;
  ChangedNodes there;
  SchedulingRules& rules = tables->Rules();
  for (const auto& [name, may_end] : on_nodes) {
    if (const NodeId node = rules.nodes().Find(name); node != kNone)
      there.emplace_back(node, may_end);
  }
  // Of pods of one class that were refused for the same.
  std::unordered_map<const PodClass*, std::pair<RejectionMask, Help>> known;
  queue->WakeIf(
      [&](const std::string& key, RejectionMask* refused_by) {
        if ((*refused_by & anywhere) != 0) return true;
        if (there.empty()) return false;
        const std::shared_ptr<const PodClass>& shape = shape_of(key);
        auto& [of, help] = known[shape.get()];
        if (std::exchange(of, *refused_by) != *refused_by)
          help = HelpOf(rules, rules.RegisterPlaced(shape), *refused_by, there);
        // What it was refused for has ended there, and something else refuses it.
        if (help == Help::kInVain) *refused_by |= kOfOneNode;
        return help == Help::kMay;
      },
      now);
}

}  // namespace rudderfish
