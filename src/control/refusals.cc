// SPDX-License-Identifier: Apache-2.0
#include "control/refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"

namespace rudderfish {
namespace {

bool AcceptsMoves(const State& state, NodeId node) {
  return state.catalog->layers[state.kind_of(node).layer].accepts_moves;
}

std::string Shortage(const Resources& asked, const Resources& free) {
  if (free.cpu_millis < asked.cpu_millis) {
    return fmt::format("asks for {} CPU, {} is free", FormatMillis(asked.cpu_millis),
                       FormatMillis(std::max<int64_t>(free.cpu_millis, 0)));
  }
  return fmt::format("asks for {} of memory, {} is free", FormatBytes(asked.memory_bytes),
                     FormatBytes(std::max<int64_t>(free.memory_bytes, 0)));
}

class RefusalList {
 public:
  RefusalList(int keep, JournalRow* row) : keep_(keep), row_(row) {}

  template <class Reason>
  void Add(const std::string& workload, const std::string& node, const Reason& reason) {
    if (Counts()) row_->refused.push_back({.workload = workload, .node = node, .reason = reason()});
  }

  void AddPod(const std::string& workload, std::string pod, std::string reason) {
    if (!Counts()) return;
    row_->refused.push_back(
        {.workload = workload, .reason = std::move(reason), .pod = std::move(pod)});
  }

 private:
  // Counts one more: whether it is kept.
  bool Counts() {
    ++row_->refused_count;
    return static_cast<int>(row_->refused.size()) < keep_;
  }

  int keep_;
  JournalRow* row_;
};

void ListHeld(const State& state, const Guard& guard, RefusalList* list) {
  if (!guard.WhyNothingMoves().empty()) {
    list->Add("", "", [&] { return guard.WhyNothingMoves(); });
    return;
  }
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (!state.pods.is_held(pod)) continue;
    list->AddPod(state.workload_of(pod).name, PodName(state, pod), guard.WhyHeld(state, pod));
  }
}

}  // namespace

void ListRefusals(const State& state, const Placement& placement, const Guard& guard, int keep,
                  JournalRow* row) {
  if (keep == 0) return;
  RefusalList list(keep, row);
  ListHeld(state, guard, &list);
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    if (AcceptsMoves(state, node)) continue;
    list.Add("", NodeName(state, node), [&] {
      return fmt::format("layer {} accepts no pods that are moved",
                         state.catalog->layers[state.kind_of(node).layer].name);
    });
  }
  for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
    const Workload& workload = state.catalog->workloads[w];
    if (placement.replicas(w) == 0) continue;
    if (!workload.movable) {
      list.Add(workload.name, "", [] { return "may not be moved"; });
      continue;
    }
    const Resources& asked = placement.requests(w);
    for (NodeId node = 0; node < state.nodes.size(); ++node) {
      if (!AcceptsMoves(state, node) || placement.Fits(w, node)) continue;
      if (placement.on_node(w, node) == placement.replicas(w)) continue;  // They are all there.
      list.Add(workload.name, NodeName(state, node),
               [&] { return Shortage(asked, placement.free(node)); });
    }
  }
}

}  // namespace rudderfish
