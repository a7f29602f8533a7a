// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"
#include "telemetry/signal_query.h"

// One query for all entities where the earlier systems sent one for each; rates where one of them
// summed a counter; the container that a pod's own limits are about, not its sidecars' sum.

namespace rudderfish {
namespace {

struct Preset {
  std::string_view name;
  std::string_view yaml;
};

// Of node-exporter, whose series are named by the address that was scraped.
constexpr std::string_view kNodes = R"(
node_cpu_busy_ratio:
  per: node
  label: instance
  query: >-
    1 - avg by (instance)
    (rate(node_cpu_seconds_total{mode="idle",instance=~"({{addresses}})(:[0-9]+)?"}[1m]))
node_memory_available_bytes:
  per: node
  label: instance
  query: node_memory_MemAvailable_bytes{instance=~"({{addresses}})(:[0-9]+)?"}
node_disk_used_ratio:
  per: node
  label: instance
  query: >-
    1 - node_filesystem_free_bytes{mountpoint="/",instance=~"({{addresses}})(:[0-9]+)?"}
    / node_filesystem_size_bytes{mountpoint="/",instance=~"({{addresses}})(:[0-9]+)?"}
node_network_receive_bytes_per_second:
  per: node
  label: instance
  query: >-
    sum by (instance) (rate(node_network_receive_bytes_total{device!="lo",
    instance=~"({{addresses}})(:[0-9]+)?"}[1m]))
node_network_transmit_bytes_per_second:
  per: node
  label: instance
  query: >-
    sum by (instance) (rate(node_network_transmit_bytes_total{device!="lo",
    instance=~"({{addresses}})(:[0-9]+)?"}[1m]))
node_disk_read_bytes_per_second:
  per: node
  label: instance
  query: >-
    sum by (instance) (rate(node_disk_read_bytes_total{device!~"loop.*|dm-.*|zram.*",
    instance=~"({{addresses}})(:[0-9]+)?"}[1m]))
node_disk_written_bytes_per_second:
  per: node
  label: instance
  query: >-
    sum by (instance) (rate(node_disk_written_bytes_total{device!~"loop.*|dm-.*|zram.*",
    instance=~"({{addresses}})(:[0-9]+)?"}[1m]))
node_tcp_connections:
  per: node
  label: instance
  query: node_netstat_Tcp_CurrEstab{instance=~"({{addresses}})(:[0-9]+)?"}
node_pods:
  per: node
  query: count by (node) (kube_pod_info{node=~"{{nodes}}"})
)";

// Of our own agents (docs/node-agent.md), whose series name nodes as the cluster does. A pair of
// nodes is measured by one of the two and counts for both.
constexpr std::string_view kAgents = R"yaml(
node_cpu_busy_ratio:
  per: node
  query: >-
    sum by (node) (rate(rudderfish_node_cpu_busy_seconds_total{node=~"{{nodes}}"}[1m]))
    / sum by (node) (rudderfish_node_cpu_cores{node=~"{{nodes}}"})
node_memory_available_bytes:
  per: node
  query: sum by (node) (rudderfish_node_memory_available_bytes{node=~"{{nodes}}"})
node_network_receive_bytes_per_second:
  per: node
  query: sum by (node) (rate(rudderfish_node_network_receive_bytes_total{node=~"{{nodes}}"}[1m]))
node_network_transmit_bytes_per_second:
  per: node
  query: sum by (node) (rate(rudderfish_node_network_transmit_bytes_total{node=~"{{nodes}}"}[1m]))
node_disk_read_bytes_per_second:
  per: node
  query: sum by (node) (rate(rudderfish_node_disk_read_bytes_total{node=~"{{nodes}}"}[1m]))
node_disk_written_bytes_per_second:
  per: node
  query: sum by (node) (rate(rudderfish_node_disk_written_bytes_total{node=~"{{nodes}}"}[1m]))
node_round_trip_seconds:
  per: node
  query: >-
    avg by (node) (rudderfish_node_round_trip_mean_seconds{protocol="tcp",node=~"{{nodes}}"}
    or label_replace(rudderfish_node_round_trip_mean_seconds{protocol="tcp",peer=~"{{nodes}}"},
    "node", "$1", "peer", "(.*)"))
node_round_trip_p99_seconds:
  per: node
  query: >-
    max by (node) (rudderfish_node_round_trip_p99_seconds{protocol="tcp",node=~"{{nodes}}"}
    or label_replace(rudderfish_node_round_trip_p99_seconds{protocol="tcp",peer=~"{{nodes}}"},
    "node", "$1", "peer", "(.*)"))
node_user_round_trip_seconds:
  per: node
  query: avg by (node) (rudderfish_node_user_round_trip_mean_seconds{node=~"{{nodes}}"})
)yaml";

// Of the kubelets' cAdvisor, whose series name pods.
constexpr std::string_view kWorkloads = R"(
workload_cpu_cores:
  per: workload
  by: pod
  query: >-
    sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{
    namespace=~"{{namespaces}}",container!="",container!="POD"}[2m]))
workload_memory_bytes:
  per: workload
  by: pod
  query: >-
    sum by (namespace, pod) (container_memory_working_set_bytes{
    namespace=~"{{namespaces}}",container!="",container!="POD"})
workload_network_receive_bytes_per_second:
  per: workload
  by: pod
  query: >-
    sum by (namespace, pod) (rate(container_network_receive_bytes_total{
    namespace=~"{{namespaces}}"}[2m]))
workload_network_transmit_bytes_per_second:
  per: workload
  by: pod
  query: >-
    sum by (namespace, pod) (rate(container_network_transmit_bytes_total{
    namespace=~"{{namespaces}}"}[2m]))
)";

constexpr std::string_view kIstio = R"(
edge_requests_per_second:
  per: edge
  query: >-
    sum by (source_workload, destination_workload)
    (rate(istio_requests_total{reporter="source",source_workload=~"{{workloads}}"}[1m]))
edge_latency_p95_seconds:
  per: edge
  scale: 0.001
  query: >-
    histogram_quantile(0.95, sum by (source_workload, destination_workload, le)
    (rate(istio_request_duration_milliseconds_bucket{reporter="source",
    source_workload=~"{{workloads}}"}[1m])))
)";

// Of muBench's services, which name themselves as their workloads are called.
constexpr std::string_view kMuBench = R"(
workload_request_latency_seconds:
  per: workload
  label: app_name
  scale: 0.001
  query: >-
    sum by (app_name) (increase(mub_request_processing_latency_milliseconds_sum{
    app_name=~"{{workloads}}"}[1m])) / sum by (app_name)
    (increase(mub_request_processing_latency_milliseconds_count{app_name=~"{{workloads}}"}[1m]))
)";

// Of OpenCost, whose series name the region that the provider gives a node. A region of only one
// kind of node has no price of the other one.
constexpr std::string_view kOpenCost = R"(
on_demand_per_h:
  per: region
  query: >-
    avg by (region) (node_total_hourly_cost unless on (node) (kubecost_node_is_spot == 1))
spot_per_h:
  per: region
  query: >-
    avg by (region) (node_total_hourly_cost and on (node) (kubecost_node_is_spot == 1))
)";

// Of Kepler from 0.10 on. Its zones overlap: that of the processors is in most machines.
constexpr std::string_view kKepler = R"yaml(
node_power_watts:
  per: node
  label: instance
  query: >-
    sum by (instance) (kepler_node_cpu_watts{zone="package",
    instance=~"({{addresses}})(:[0-9]+)?"})
)yaml";

constexpr std::string_view kScaphandre = R"yaml(
node_power_watts:
  per: node
  label: instance
  scale: 0.000001
  query: scaph_host_power_microwatts{instance=~"({{addresses}})(:[0-9]+)?"}
)yaml";

constexpr Preset kPresets[] = {{"nodes", kNodes},         {"agents", kAgents},
                               {"workloads", kWorkloads}, {"istio", kIstio},
                               {"mubench", kMuBench},     {"opencost", kOpenCost},
                               {"kepler", kKepler},       {"scaphandre", kScaphandre}};

}  // namespace

std::vector<std::string_view> SignalPresetNames() {
  std::vector<std::string_view> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  return names;
}

Result<std::vector<SignalQuery>> SignalPreset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name != name) continue;
    TRY_ASSIGN(const YamlNode node, ParseYaml(preset.yaml, name));
    return ParseSignalQueries(node);
  }
  return Invalid("no signals are called `{}`{}", name, DidYouMean(name, SignalPresetNames()));
}

}  // namespace rudderfish
