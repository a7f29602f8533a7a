// SPDX-License-Identifier: Apache-2.0
#include "cluster/state.h"

#include <fmt/format.h>

#include <bit>

#include "base/check.h"

namespace rudderfish {

namespace {

void Take(PodId pod, NodeId node, State* state) {
  const Workload& workload = state->workload_of(pod);
  state->nodes.free[node] -= workload.requests;
  state->pods.node[pod] = node;
  if (workload.devices.count == 0) return;
  CHECK(!state->nodes.devices.empty());
  Devices& devices = state->nodes.devices[node];
  const DeviceSet picked = devices.Pick(workload.devices);
  CHECK_NE(picked, 0);  // Devices cannot be overcommitted.
  devices.Take(picked, workload.devices.millis);
  state->pods.devices[pod] = picked;
}

void GiveBack(PodId pod, State* state) {
  const Workload& workload = state->workload_of(pod);
  const NodeId node = state->pods.node[pod];
  state->nodes.free[node] += workload.requests;
  state->pods.node[pod] = kNone;
  if (workload.devices.count == 0) return;
  state->nodes.devices[node].GiveBack(state->pods.devices[pod], workload.devices.millis);
  state->pods.devices[pod] = 0;
}

}  // namespace

void MovePod(PodId pod, NodeId to, State* state) {
  CHECK_NE(state->pods.node[pod], kNone);
  GiveBack(pod, state);
  Take(pod, to, state);
  ++state->version;
}

void BindPod(PodId pod, NodeId node, State* state) {
  CHECK_EQ(state->pods.node[pod], kNone);
  Take(pod, node, state);
  ++state->version;
}

void UnbindPod(PodId pod, State* state) {
  CHECK_NE(state->pods.node[pod], kNone);
  GiveBack(pod, state);
  ++state->version;
}

PodId AddPod(WorkloadId workload, State* state) {
  Pods& pods = state->pods;
  pods.workload.push_back(workload);
  pods.node.push_back(kNone);
  if (!state->nodes.devices.empty()) pods.devices.push_back(0);
  ++state->version;
  return pods.size() - 1;
}

void RemovePod(PodId pod, State* state) {
  if (state->pods.node[pod] != kNone) GiveBack(pod, state);
  Pods& pods = state->pods;
  pods.workload[pod] = pods.workload.back();
  pods.workload.pop_back();
  pods.node[pod] = pods.node.back();
  pods.node.pop_back();
  if (!pods.devices.empty()) {
    pods.devices[pod] = pods.devices.back();
    pods.devices.pop_back();
  }
  ++state->version;
}

bool HasRoom(const State& state, WorkloadId workload, NodeId node) {
  const Workload& asked = state.catalog->workloads[workload];
  if (!state.nodes.free[node].Fits(asked.requests) || !state.nodes.IsReady(node)) return false;
  if (!Contains(asked.node_kinds, state.nodes.kind[node])) return false;
  if (asked.devices.count == 0) return true;
  return !state.nodes.devices.empty() && state.nodes.devices[node].Fits(asked.devices);
}

std::string PodName(const State& state, PodId pod) {
  if (state.names != nullptr && !state.names->pods.empty()) return state.names->pods[pod];
  int ordinal = 1;
  for (PodId other = 0; other < pod; ++other)
    ordinal += state.pods.workload[other] == state.pods.workload[pod];
  return fmt::format("{}-{}", state.workload_of(pod).name, ordinal);
}

const std::string& NodeName(const State& state, NodeId node) {
  CHECK(state.names != nullptr);
  return state.names->nodes[node];
}

void CheckConsistent(const State& state) {
  CHECK(state.catalog != nullptr);
  const int nodes = state.nodes.size();
  CHECK_EQ(state.nodes.free.size(), state.nodes.kind.size());
  CHECK_EQ(state.nodes.allocatable.size(), state.nodes.kind.size());
  CHECK_EQ(state.nodes.background_mbytes_per_s.size(), state.nodes.kind.size());
  CHECK_EQ(state.pods.node.size(), state.pods.workload.size());
  CHECK(state.pods.held.empty() || state.pods.held.size() == state.pods.workload.size());
  const bool has_devices = !state.nodes.devices.empty();
  if (has_devices) CHECK_EQ(state.nodes.devices.size(), state.nodes.kind.size());
  CHECK_EQ(state.pods.devices.size(), has_devices ? state.pods.node.size() : 0);
  CHECK(state.nodes.lost.empty() || state.nodes.lost.size() == state.nodes.kind.size());
  std::vector<Resources> free = state.nodes.allocatable;
  std::vector<Devices> devices;
  for (const Devices& left : state.nodes.devices) devices.push_back(Devices::Of(left.count));
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    CHECK_GE(state.pods.workload[pod], 0);
    CHECK_LT(state.pods.workload[pod], state.catalog->workload_count());
    const NodeId node = state.pods.node[pod];
    CHECK_LT(node, nodes);
    const Workload& workload = state.workload_of(pod);
    if (has_devices) {
      const DeviceSet has = state.pods.devices[pod];
      CHECK_EQ(std::popcount(has), node == kNone ? 0 : workload.devices.count);
      if (node != kNone) devices[node].Take(has, workload.devices.millis);
    }
    if (node == kNone) continue;
    CHECK(state.nodes.IsReady(node));
    free[node] -= workload.requests;
  }
  for (NodeId node = 0; node < nodes; ++node) {
    CHECK_LT(state.nodes.kind[node], state.catalog->kind_count());
    CHECK_EQ(free[node].cpu_millis, state.nodes.free[node].cpu_millis);
    CHECK_EQ(free[node].memory_bytes, state.nodes.free[node].memory_bytes);
    if (has_devices) CHECK(devices[node] == state.nodes.devices[node]);
  }
}

}  // namespace rudderfish
