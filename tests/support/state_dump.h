// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cluster/application.h"
#include "cluster/state.h"
#include "tests/support/kube_json.h"

// A State as objects of an API server and the application file's part of it, so that a KubeCluster
// can be made that shows the same State. Every workload is a Deployment; nodes and pods are called
// by their number, so that their order stays.

namespace rudderfish::testing {

inline std::string NumberedName(const char* noun, int number) {
  return fmt::format("{}-{:06}", noun, number);
}

inline std::string NodeObject(const State& state, NodeId node) {
  const Resources& allocatable = state.nodes.allocatable[node];
  return NodeJson{.name = NumberedName("n", node),
                  .cpu = fmt::format("{}m", allocatable.cpu_millis),
                  .memory = fmt::format("{}", allocatable.memory_bytes),
                  .labels = fmt::format(R"({{"kind":"{}"}})", state.kind_of(node).name)}
      .Text();
}

inline std::string PodObject(const State& state, PodId pod) {
  const Resources& requests = state.workload_of(pod).requests;
  return PodJson{.name = NumberedName("p", pod),
                 .owner = state.workload_of(pod).name + "-rs",
                 .node = NumberedName("n", state.pods.node[pod]),
                 .cpu = fmt::format("{}m", requests.cpu_millis),
                 .memory = fmt::format("{}", requests.memory_bytes)}
      .Text();
}

inline std::string DumpOf(const State& state) {
  std::vector<std::string> items;
  for (NodeId node = 0; node < state.nodes.size(); ++node) items.push_back(NodeObject(state, node));
  for (const Workload& workload : state.catalog->workloads) {
    items.push_back(ControllerJson("Deployment", workload.name));
    items.push_back(
        ControllerJson("ReplicaSet", workload.name + "-rs", 1, "Deployment", workload.name));
  }
  for (PodId pod = 0; pod < state.pods.size(); ++pod) items.push_back(PodObject(state, pod));
  return ListJson(items);
}

inline std::shared_ptr<const Application> ApplicationOf(const State& state) {
  auto application = std::make_shared<Application>();
  application->name = "test";
  auto catalog = std::make_shared<Catalog>(*state.catalog);
  for (Workload& workload : catalog->workloads) workload.requests = {};
  application->catalog = std::move(catalog);
  application->calls = state.calls;
  application->network = state.network;
  for (const NodeKind& kind : state.catalog->kinds) {
    application->kind_nodes.push_back(
        {{{.key = "kind", .op = LabelRequirement::Operator::kIn, .values = {kind.name}}}});
  }
  application->kind_costs.resize(state.catalog->kinds.size());
  for (const Workload& workload : state.catalog->workloads) {
    application->objects.push_back({"Deployment", "default", workload.name});
    application->external_layers.push_back(kNone);
  }
  return application;
}

}  // namespace rudderfish::testing
