// SPDX-License-Identifier: Apache-2.0
#include "node/node_report.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/metrics.h"

namespace rudderfish {
namespace {

void AddCounters(const NodeReport& report, MetricRegistry* registry) {
  if (!report.counters) return;
  const NodeCounters& now = *report.counters;
  const MetricLabels labels{{"node", report.node}};
  const auto count = [&](std::string_view name, std::string_view help, double value) {
    registry->AddCounter(name, help, labels).Add(value);
  };
  const auto bytes = [](uint64_t value) { return static_cast<double>(value); };
  count("rudderfish_node_cpu_busy_seconds_total",
        "Time of all cores together that was neither idle nor waiting for a disk.",
        static_cast<double>(now.cpu.busy_ticks) / report.ticks_per_second);
  registry->AddGauge("rudderfish_node_cpu_cores", "Cores of the node.", labels).Set(now.cpu.cores);
  registry->AddGauge("rudderfish_node_memory_bytes", "Memory of the node.", labels)
      .Set(static_cast<double>(now.memory.total_bytes));
  registry
      ->AddGauge("rudderfish_node_memory_available_bytes",
                 "Memory that can be had without swapping.", labels)
      .Set(static_cast<double>(now.memory.available_bytes));
  count("rudderfish_node_network_receive_bytes_total", "Bytes received by the node.",
        bytes(now.received_bytes));
  count("rudderfish_node_network_transmit_bytes_total", "Bytes sent by the node.",
        bytes(now.transmitted_bytes));
  count("rudderfish_node_disk_read_bytes_total", "Bytes read from the disks of the node.",
        bytes(now.read_bytes));
  count("rudderfish_node_disk_written_bytes_total", "Bytes written to the disks of the node.",
        bytes(now.written_bytes));
}

// `kind`: "" or "user_"; `label`: "peer" or "user".
void AddTrips(const Prober::Target& target, std::string_view kind, const MetricLabels& labels,
              Instant now, MetricRegistry* registry) {
  const auto name = [&](std::string_view rest) {
    return fmt::format("rudderfish_node_{}{}", kind, rest);
  };
  registry->AddCounter(name("probes_total"), "Probes that were answered.", labels)
      .Add(static_cast<double>(target.trips.count()));
  registry->AddCounter(name("probe_failures_total"), "Probes without an answer in time.", labels)
      .Add(static_cast<double>(target.trips.failures()));
  const auto recent = target.trips.Recent(now);
  if (!recent) return;
  registry->AddGauge(name("round_trip_mean_seconds"), "Mean of recent round trips.", labels)
      .Set(recent->mean);
  registry->AddGauge(name("round_trip_p50_seconds"), "Median of recent round trips.", labels)
      .Set(recent->p50);
  registry
      ->AddGauge(name("round_trip_p99_seconds"), "99th percentile of recent round trips.", labels)
      .Set(recent->p99);
}

using Targets = std::vector<std::shared_ptr<Prober::Target>>;

void AddTargets(const NodeReport& report, const Targets& targets, std::string_view kind,
                const std::string& label, Instant now, MetricRegistry* registry) {
  std::map<std::pair<std::string, ProbeProtocol>, const Prober::Target*> shown;
  for (const auto& target : targets) {
    const std::string& name = target->node.empty() ? target->target.name : target->node;
    const Prober::Target*& best = shown[{name, target->target.protocol}];
    if (best == nullptr || !best->trips.Recent(now)) best = target.get();
  }
  for (const auto& [key, target] : shown) {
    const std::string protocol(kProbeProtocolNames[static_cast<size_t>(key.second)]);
    AddTrips(*target, kind, {{"node", report.node}, {label, key.first}, {"protocol", protocol}},
             now, registry);
  }
}

}  // namespace

std::string NodeReportText(const NodeReport& report, Instant now) {
  MetricRegistry registry;
  AddCounters(report, &registry);
  const MetricLabels labels{{"node", report.node}};
  registry.AddGauge("rudderfish_node_peers", "Other agents that are known.", labels)
      .Set(static_cast<double>(report.peers));
  registry
      .AddGauge("rudderfish_node_peers_probed",
                "Agents that this one probes; the others of its pairs probe it.", labels)
      .Set(static_cast<double>(report.peers_probed));
  AddTargets(report, report.peer_targets, "", "peer", now, &registry);
  AddTargets(report, report.user_targets, "user_", "user", now, &registry);
  return registry.Text();
}

}  // namespace rudderfish
