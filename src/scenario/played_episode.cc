// SPDX-License-Identifier: Apache-2.0
#include "scenario/played_episode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace rudderfish {
namespace {

constexpr size_t kLongestLabel = 63;  // Of DNS, which names of Services are.

Result<void> CheckLabel(std::string_view what, std::string_view name) {
  const bool is_one = !name.empty() && name.size() <= kLongestLabel && name.front() != '-' &&
                      name.back() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                      });
  if (is_one) return {};
  return Invalid("{} `{}`: cannot be a name in Kubernetes, which has a-z, 0-9 and - in at most {}",
                 what, name, kLongestLabel);
}

// Workloads that send requests and are never called: the users.
std::vector<bool> ClientsOf(const Catalog& catalog, const CallGraph& graph) {
  std::vector<bool> clients(catalog.workloads.size(), false);
  for (const Endpoint& endpoint : graph.endpoints)
    clients[graph.calls[endpoint.root].workload] = true;
  for (const Call& call : graph.calls) {
    if (call.caller != kNone) clients[call.workload] = false;
  }
  return clients;
}

void NameNodes(const State& state, PlayedEpisode* played) {
  const Catalog& catalog = *state.catalog;
  std::vector<int> counts(catalog.layers.size(), 0);
  played->application.kind_nodes.assign(
      catalog.kinds.size(), LabelSelector{.requirements = {{.key = "kubernetes.io/hostname",
                                                            .op = LabelRequirement::Operator::kIn,
                                                            .values = {}}}});
  for (NodeId n = 0; n < state.nodes.size(); ++n) {
    const LayerId layer = state.kind_of(n).layer;
    std::string name = fmt::format("{}-{}", catalog.layers[layer].name, ++counts[layer]);
    played->application.kind_nodes[state.nodes.kind[n]].requirements[0].values.push_back(name);
    played->node_names.emplace_back(std::move(name), state.nodes.kind[n]);
  }
  for (size_t layer = 0; layer < counts.size(); ++layer) {
    if (counts[layer] == 0) continue;
    played->layers += fmt::format("{}{}:{}", played->layers.empty() ? "" : ",",
                                  catalog.layers[layer].name, counts[layer]);
  }
}

std::string LinksText(const State& state) {
  const Catalog& catalog = *state.catalog;
  std::vector<double> slowest(catalog.layers.size(), 0);
  for (NodeId n = 0; n < state.nodes.size(); ++n) {
    const NodeKind& kind = state.kind_of(n);
    double& value = slowest[kind.layer];
    value = value == 0 ? kind.bandwidth_mbytes_per_s : std::min(value, kind.bandwidth_mbytes_per_s);
  }
  std::string text;
  for (LayerId from = 0; from < catalog.layer_count(); ++from) {
    for (LayerId to = 0; to < catalog.layer_count(); ++to) {
      if (slowest[from] == 0 || slowest[to] == 0) continue;
      text +=
          fmt::format("{} -> {} delay {:.0f}us rate {:.0f}kbit\n", catalog.layers[from].name,
                      catalog.layers[to].name, std::round(1000 * state.network.LatencyMs(from, to)),
                      8000 * std::min(slowest[from], slowest[to]));
    }
  }
  return text;
}

}  // namespace

Result<PlayedEpisode> PlayedEpisodeOf(const Scenario& scenario, const State& state) {
  TRY(CheckMovesPods(scenario, scenario.name));
  TRY(CheckLabel("scenario", scenario.name));
  PlayedEpisode played;
  Application& application = played.application;
  application.name = scenario.name;
  application.calls = state.calls;
  application.network = state.network;
  application.kind_costs = scenario.kind_costs;
  NameNodes(state, &played);
  played.links = LinksText(state);

  const std::vector<bool> clients = ClientsOf(*state.catalog, *state.calls);
  auto catalog = std::make_shared<Catalog>(*state.catalog);
  played.workloads.resize(catalog->workloads.size());
  for (PlayedWorkload& workload : played.workloads) workload.replicas = 0;
  for (const WorkloadId w : state.pods.workload) ++played.workloads[w].replicas;
  for (WorkloadId w = 0; w < catalog->workload_count(); ++w) {
    Workload& workload = catalog->workloads[w];
    TRY(CheckLabel("workload", workload.name));
    played.workloads[w].requests = workload.requests;
    const bool is_outside = clients[w] && !scenario.starts[w].initial_layers.empty();
    application.external_layers.push_back(is_outside ? scenario.starts[w].initial_layers[0]
                                                     : kNone);
    application.objects.push_back(is_outside ? WorkloadObject{}
                                             : WorkloadObject{.kind = "Deployment",
                                                              .object_namespace = scenario.name,
                                                              .name = workload.name});
    workload.movable = workload.movable && !is_outside;
    workload.requests = {};  // An application has those of the pods that are there.
  }
  application.catalog = std::move(catalog);
  return played;
}

}  // namespace rudderfish
