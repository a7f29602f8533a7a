// SPDX-License-Identifier: Apache-2.0
#include "model/node_room.h"

#include <algorithm>

namespace rudderfish {

bool HasRoomFor(const SchedulingRules& rules, PodClassId pod, NodeId node) {
  const CompiledPod& compiled = rules.compiled(pod);
  const NodeTable& nodes = rules.nodes();
  if (!compiled.on_node.empty()) {
    const CompiledPod::OnNode& there = compiled.on_node[node];
    if (there.early != Rejection::kNone || there.late != Rejection::kNone) return false;
  }
  const PodAmounts& amounts = compiled.pod->amounts;
  const auto fits = [&](int row, int64_t amount) {
    return amount <= 0 || amount <= nodes.free(row)[node];
  };
  return nodes.pods_free()[node] >= 1 && fits(NodeTable::kCpu, amounts.requests.cpu_millis) &&
         fits(NodeTable::kMemory, amounts.requests.memory_bytes) &&
         fits(NodeTable::kEphemeral, amounts.ephemeral_bytes) &&
         std::all_of(compiled.asks.begin(), compiled.asks.end(),
                     [&](const auto& ask) { return fits(ask.first, ask.second); });
}

}  // namespace rudderfish
