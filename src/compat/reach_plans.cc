// SPDX-License-Identifier: Apache-2.0
#include "compat/reach_plans.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace rudderfish {
namespace {

uint64_t Mix(uint64_t key, std::string_view text) {
  for (const char c : text) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  key = (key ^ (key >> 29) ^ 0xFF) * 0x9E3779B97F4A7C15ull;
  return key ^ (key >> 32);
}

// By names: ids are another request's.
uint64_t PodKey(const State& state, WorkloadId workload, NodeId node) {
  return Mix(Mix(0xCBF29CE484222325ull, state.catalog->workloads[workload].name),
             state.names->nodes[node]);
}

// A sum over pods, so that neither their order nor their names matter: Kubernetes gives a pod that
// is moved another name.
uint64_t PlacementKey(const State& state) {
  uint64_t key = 0;
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (state.pods.node[pod] == kNone) continue;
    key += PodKey(state, state.pods.workload[pod], state.pods.node[pod]);
  }
  return key;
}

WorkloadId WorkloadNamed(const State& state, const std::string& name) {
  const auto& workloads = state.catalog->workloads;
  const auto found = std::find_if(workloads.begin(), workloads.end(),
                                  [&](const Workload& w) { return w.name == name; });
  return found == workloads.end() ? kNone : static_cast<WorkloadId>(found - workloads.begin());
}

NodeId NodeNamed(const State& state, const std::string& name) {
  const auto& nodes = state.names->nodes;
  const auto found = std::find(nodes.begin(), nodes.end(), name);
  return found == nodes.end() ? kNone : static_cast<NodeId>(found - nodes.begin());
}

}  // namespace

std::vector<LeftCell> ReachPlan::LeftIn(const State& state) const {
  std::vector<LeftCell> cells;
  for (const Cell& cell : left) {
    const WorkloadId workload = WorkloadNamed(state, cell.workload);
    const NodeId node = NodeNamed(state, cell.node);
    if (workload != kNone && node != kNone) cells.push_back({workload, node});
  }
  return cells;
}

std::vector<Move> ReachPlan::RestIn(const State& state) const {
  std::vector<Move> moves;
  for (const NamedMove& move : rest) {
    moves.push_back({WorkloadNamed(state, move.workload), NodeNamed(state, move.from),
                     NodeNamed(state, move.to)});
    const Move& named = moves.back();
    if (named.workload == kNone || named.from == kNone || named.to == kNone) return {};
  }
  return moves;
}

void ReachPlan::SetRest(const State& state, std::span<const Move> moves) {
  rest.clear();
  for (const Move& move : moves) {
    rest.push_back({state.catalog->workloads[move.workload].name, state.names->nodes[move.from],
                    state.names->nodes[move.to]});
  }
}

ReachPlan ReachPlans::At(const State& state) const {
  const uint64_t key = PlacementKey(state);
  const std::lock_guard lock(mutex_);
  const auto found = plans_.find(key);
  return found == plans_.end() ? ReachPlan{} : found->second;
}

void ReachPlans::Lead(const State& state, const Migrate& move, ReachPlan plan) {
  const WorkloadId workload = state.pods.workload[move.pod];
  const uint64_t key =
      PlacementKey(state) - PodKey(state, workload, move.from) + PodKey(state, workload, move.to);
  ++plan.step;
  plan.left.push_back({state.catalog->workloads[workload].name, state.names->nodes[move.from]});
  const std::lock_guard lock(mutex_);
  if (plans_.insert_or_assign(key, std::move(plan)).second) order_.push_back(key);
  if (order_.size() <= kPlacementsMax) return;
  plans_.erase(order_.front());
  order_.pop_front();
}

}  // namespace rudderfish
