// SPDX-License-Identifier: Apache-2.0
#include "model/host_ports.h"

#include <algorithm>

namespace rudderfish {

void HostPorts::Reset() {
  ports_.clear();
  port_rows_.clear();
  addresses_ = {{"0.0.0.0", kAnyAddress}};
}

std::vector<HostPorts::Use> HostPorts::Compile(std::span<const HostPort> ports) {
  std::vector<Use> uses;
  for (const HostPort& wanted : ports) {
    const auto [row, is_new] = port_rows_.emplace(std::pair(wanted.port, wanted.protocol),
                                                  static_cast<int>(ports_.size()));
    if (is_new) ports_.emplace_back();
    const auto address = addresses_.emplace(wanted.ip, static_cast<int>(addresses_.size())).first;
    uses.push_back({row->second, address->second});
  }
  std::sort(uses.begin(), uses.end());
  uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
  return uses;
}

bool HostPorts::Conflict(std::span<const Use> a, std::span<const Use> b) {
  return std::any_of(a.begin(), a.end(), [&](const Use& use) {
    // Uses of one port are sorted by address, and kAnyAddress is the first.
    const auto first = std::lower_bound(b.begin(), b.end(), Use{use.port, kAnyAddress});
    if (first == b.end() || first->port != use.port) return false;
    return use.address == kAnyAddress || first->address == kAnyAddress ||
           std::binary_search(first, b.end(), use);
  });
}

void HostPorts::Add(NodeId node, int sign, Nodes* nodes) {
  auto at = std::lower_bound(nodes->begin(), nodes->end(), node,
                             [](const auto& one, NodeId n) { return one.first < n; });
  if (at == nodes->end() || at->first != node) at = nodes->insert(at, {node, 0});
  at->second += sign;
  if (at->second == 0) nodes->erase(at);
}

void HostPorts::Change(std::span<const Use> uses, NodeId node, int sign) {
  for (const Use& use : uses) {
    Add(node, sign, &ports_[use.port].any);
    Add(node, sign, &ports_[use.port].by_address[use.address]);
  }
}

}  // namespace rudderfish
