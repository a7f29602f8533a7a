// SPDX-License-Identifier: Apache-2.0
#include "cluster/state.h"

#include <fmt/format.h>

#include "base/check.h"

namespace rudderfish {

void MovePod(PodId pod, NodeId to, State* state) {
  const NodeId from = state->pods.node[pod];
  CHECK_NE(from, kNone);
  const Resources& requests = state->workload_of(pod).requests;
  state->nodes.free[from] += requests;
  state->nodes.free[to] -= requests;
  state->pods.node[pod] = to;
  ++state->version;
}

void BindPod(PodId pod, NodeId node, State* state) {
  CHECK_EQ(state->pods.node[pod], kNone);
  state->nodes.free[node] -= state->workload_of(pod).requests;
  state->pods.node[pod] = node;
  ++state->version;
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
  std::vector<Resources> free = state.nodes.allocatable;
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    CHECK_LT(state.pods.workload[pod], state.catalog->workload_count());
    const NodeId node = state.pods.node[pod];
    CHECK_LT(node, nodes);
    if (node != kNone) free[node] -= state.workload_of(pod).requests;
  }
  for (NodeId node = 0; node < nodes; ++node) {
    CHECK_LT(state.nodes.kind[node], state.catalog->kind_count());
    CHECK_EQ(free[node].cpu_millis, state.nodes.free[node].cpu_millis);
    CHECK_EQ(free[node].memory_bytes, state.nodes.free[node].memory_bytes);
  }
}

}  // namespace rudderfish
