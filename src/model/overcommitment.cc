// SPDX-License-Identifier: Apache-2.0
#include "model/overcommitment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"

namespace rudderfish {
namespace {

std::string AmountText(std::string_view resource, int64_t amount) {
  amount = std::max<int64_t>(amount, 0);  // A node may claim what it likes.
  if (resource == "cpu") return FormatMillis(amount);
  const bool is_bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  return is_bytes ? FormatMemoryQuantity(amount) : std::to_string(amount);
}

// Ports of the pods on a node that another pod there holds as well, and how many pods hold them.
std::map<std::string, int> ContestedPorts(const SchedulingRules& rules, NodeId node) {
  std::map<std::string, int> contested;
  const auto on_node = rules.counts().on_node(node);
  for (const PodCounts::OnNode& mine : on_node) {
    for (const HostPort& port : rules.compiled(mine.pod).pod->host_ports) {
      int holders = 0;
      for (const PodCounts::OnNode& other : on_node) {
        const std::vector<HostPort>& theirs = rules.compiled(other.pod).pod->host_ports;
        const bool conflicts = std::any_of(
            theirs.begin(), theirs.end(), [&](const HostPort& p) { return p.ConflictsWith(port); });
        if (conflicts) holders += other.count();
      }
      int& most = contested[fmt::format("{}/{}", port.port, port.protocol)];
      most = std::max(most, holders);
    }
  }
  std::erase_if(contested, [](const auto& port) { return port.second < 2; });
  return contested;
}

// What is attached without a pod is on its way out.
std::map<std::string, int64_t> VolumesByDriver(const SchedulingRules& rules, NodeId node) {
  std::set<CsiVolume> volumes;
  for (const PodCounts::OnNode& pods : rules.counts().on_node(node)) {
    const std::vector<CsiVolume>& attached = rules.compiled(pods.pod).pod->attached;
    volumes.insert(attached.begin(), attached.end());
  }
  std::map<std::string, int64_t> by_driver;
  for (const CsiVolume& volume : volumes) ++by_driver[volume.driver];
  return by_driver;
}

}  // namespace

std::vector<std::string> OvercommittedOn(const SchedulingRules& rules, NodeId node) {
  const NodeTable& nodes = rules.nodes();
  std::vector<std::string> all;
  const auto look = [&](std::string_view resource, int64_t has, int64_t free) {
    if (free >= 0) return;
    all.push_back(fmt::format("{} ({} of {})", resource, AmountText(resource, has - free),
                              AmountText(resource, has)));
  };
  look("pods", nodes.node(node).pods_max, nodes.pods_free()[node]);
  const auto look_at_row = [&](std::string_view resource, int row) {
    look(resource, nodes.allocatable(row)[node], nodes.free(row)[node]);
  };
  look_at_row("cpu", NodeTable::kCpu);
  look_at_row("memory", NodeTable::kMemory);
  look_at_row("ephemeral-storage", NodeTable::kEphemeral);
  for (const auto& [resource, has, free] : nodes.ScalarsOn(node)) look(resource, has, free);
  for (const auto& [port, pods] : ContestedPorts(rules, node))
    all.push_back(fmt::format("host port {} (by {} pods)", port, pods));
  const std::map<std::string, int64_t> volumes = VolumesByDriver(rules, node);
  for (const VolumeLimit& limit : nodes.node(node).volume_limits) {
    const auto held = volumes.find(limit.driver);
    if (held == volumes.end() || held->second <= limit.volumes_max) continue;
    all.push_back(
        fmt::format("volumes of {} ({} of {})", limit.driver, held->second, limit.volumes_max));
  }
  return all;
}

}  // namespace rudderfish
