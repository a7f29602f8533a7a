// SPDX-License-Identifier: Apache-2.0
#include "scenario/load.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "scenario/scenario.h"

namespace rudderfish {
namespace {

// [kind] Nodes on which pods of a workload may be: in its layers, or where it may be moved.
std::vector<int> NodesFor(const Scenario& scenario, WorkloadId workload) {
  const Catalog& catalog = *scenario.catalog;
  const std::vector<LayerId>& layers = scenario.starts[workload].initial_layers;
  std::vector<int> nodes(catalog.kind_count(), 0);
  for (const NodeGroup& group : scenario.node_groups) {
    if (std::binary_search(layers.begin(), layers.end(), catalog.kinds[group.kind].layer))
      nodes[group.kind] += group.count;
  }
  return nodes;
}

int NodeCountFor(const Scenario& scenario, WorkloadId workload) {
  const std::vector<int> nodes = NodesFor(scenario, workload);
  return std::accumulate(nodes.begin(), nodes.end(), 0);
}

}  // namespace

int Load::LoadNamed(std::string_view name) const {
  const auto at = std::find_if(loads.begin(), loads.end(),
                               [&](const NamedTraffic& one) { return one.name == name; });
  return at == loads.end() ? kNone : static_cast<int>(at - loads.begin());
}

RateCurve DrawCurve(const Load& load, EpisodeUse use, int position, uint64_t seed) {
  return WithSessions(DrawCurve(load.loads[position].traffic, use, load.duration, seed),
                      load.sessions);
}

double LateMaxOf(const Scenario& scenario) {
  if (scenario.load == nullptr) return ServiceLimit().late_max;
  return LateMaxOf(scenario.load->limit, *scenario.patterns[0]);
}

ServedApplication ApplicationOf(const Scenario& scenario, int pattern) {
  CHECK(scenario.load != nullptr);
  const Load& load = *scenario.load;
  const std::shared_ptr<const CallGraph>& graph =
      pattern == 0 && load.limited != nullptr ? load.limited : scenario.patterns[pattern];
  const auto seconds = [](SimTime time) { return static_cast<double>(time.count()) / 1e9; };
  ServedApplication application{.calls = graph,
                                .network_ms = seconds(load.network) * 1000,
                                .timeout_s = seconds(load.timeout),
                                .retries = load.retries,
                                .retry_delay_s = seconds(load.retry_delay),
                                .limits = load.limits};
  for (WorkloadId w = 0; w < scenario.catalog->workload_count(); ++w) {
    const PodService& pods = load.pods[w];
    const int fewest = static_cast<int>(scenario.starts[w].replicas.min());
    application.workloads.push_back(
        {.name = scenario.catalog->workloads[w].name,
         .slots = pods.slots,
         .discipline = pods.discipline,
         .queue_limit = pods.queue_limit,
         .service = pods.service,
         .balancing = pods.balancing,
         .choices = pods.choices,
         .replicas = std::clamp(fewest, pods.replicas_min, pods.replicas_max),
         .replicas_min = pods.replicas_min,
         .replicas_max = pods.replicas_max,
         .start_low_s = seconds(pods.start_delay.a),
         .start_high_s = seconds(pods.start_delay.b),
         .image_nodes = pods.image_pull.b.count() > 0 ? NodeCountFor(scenario, w) : 0,
         .pull_low_s = seconds(pods.image_pull.a),
         .pull_high_s = seconds(pods.image_pull.b),
         .probe_delay_s = seconds(pods.probe_delay),
         .probe_period_s = seconds(pods.probe_period),
         .cpu_millis = scenario.catalog->workloads[w].requests.cpu_millis,
         .memory_bytes = scenario.catalog->workloads[w].requests.memory_bytes,
         .scaled = false});
  }
  for (CallId id = 0; id < graph->call_count(); ++id) {
    const Call& call = graph->calls[id];
    double sum_ms = 0;
    int nodes = 0;
    if (call.caller != kNone) {
      application.workloads[call.workload].scaled = true;
      const std::vector<int> counts = NodesFor(scenario, call.workload);
      for (KindId kind = 0; kind < scenario.catalog->kind_count(); ++kind) {
        sum_ms += counts[kind] * graph->ExecutionMs(id, kind);
        nodes += counts[kind];
      }
    }
    application.service_ms.push_back(nodes > 0 ? sum_ms / nodes : 0);
  }
  for (ServedWorkload& workload : application.workloads) {
    if (!workload.scaled) workload.replicas = 0;
  }
  return application;
}

}  // namespace rudderfish
