// SPDX-License-Identifier: Apache-2.0
#include "scenario/call_tree.h"

#include "base/check.h"

namespace rudderfish {
namespace {

// Appends a call and all below it, in preorder.
CallId Append(const CallTree& tree, CallId caller, CallGraph* graph) {
  const CallId call = graph->call_count();
  CHECK_EQ(static_cast<int>(tree.execution_ms.size()), graph->kind_count);
  graph->calls.push_back(
      {.workload = tree.workload, .caller = caller, .data_mbytes = tree.data_mbytes});
  graph->execution_ms.insert(graph->execution_ms.end(), tree.execution_ms.begin(),
                             tree.execution_ms.end());
  // Groups of one call, and calls of one group, stand side by side: room for all of them before
  // going deeper.
  const int first_group = static_cast<int>(graph->groups.size());
  for (const std::vector<CallTree>& group : tree.groups) {
    const int first = static_cast<int>(graph->sequence.size());
    graph->sequence.resize(graph->sequence.size() + group.size());
    graph->groups.push_back({first, static_cast<int>(graph->sequence.size())});
  }
  graph->calls[call].first_group = first_group;
  graph->calls[call].last_group = static_cast<int>(graph->groups.size());
  for (size_t g = 0; g < tree.groups.size(); ++g) {
    const int first = graph->groups[first_group + g].first;
    for (size_t i = 0; i < tree.groups[g].size(); ++i) {
      const CallId callee = Append(tree.groups[g][i], call, graph);
      graph->sequence[first + i] = callee;
    }
  }
  return call;
}

CallTree TreeBelow(const CallGraph& graph, CallId id) {
  const Call& call = graph.calls[id];
  const auto times = graph.execution_ms.begin() + id * graph.kind_count;
  CallTree tree{.workload = call.workload,
                .data_mbytes = call.data_mbytes,
                .execution_ms = {times, times + graph.kind_count},
                .groups = {}};
  for (int g = call.first_group; g < call.last_group; ++g) {
    const CallGroup& group = graph.groups[g];
    std::vector<CallTree>& calls = tree.groups.emplace_back();
    for (int i = group.first; i < group.last; ++i)
      calls.push_back(TreeBelow(graph, graph.sequence[i]));
  }
  return tree;
}

}  // namespace

std::shared_ptr<const CallGraph> BuildCallGraph(std::string name, int kind_count,
                                                const std::vector<EndpointTree>& endpoints) {
  auto graph = std::make_shared<CallGraph>();
  graph->name = std::move(name);
  graph->kind_count = kind_count;
  for (const EndpointTree& tree : endpoints) {
    const CallId root = Append(tree.root, kNone, graph.get());
    graph->endpoints.push_back({.name = tree.name,
                                .root = root,
                                .end = graph->call_count(),
                                .rate_per_second = tree.rate_per_second,
                                .qos_ms = tree.qos_ms});
  }
  return graph;
}

EndpointTree TreeOf(const CallGraph& graph, const Endpoint& endpoint) {
  return {.name = endpoint.name,
          .rate_per_second = endpoint.rate_per_second,
          .qos_ms = endpoint.qos_ms,
          .root = TreeBelow(graph, endpoint.root)};
}

}  // namespace rudderfish
