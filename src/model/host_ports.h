// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cluster/ids.h"
#include "cluster/scheduling.h"

// Which ports of which nodes are taken: NodePorts. What is kept and what a question costs grows
// with the nodes that a port is taken on, not with all nodes: a pod may have any number of ports.
// One thread.

namespace rudderfish {

class HostPorts {
 public:
  // A port and protocol, and the address: kAnyAddress conflicts with all.
  struct Use {
    int port = 0, address = 0;

    auto operator<=>(const Use&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  static constexpr int kAnyAddress = 0;

  void Reset();

  // Sorted, each once; valid until Reset.
  std::vector<Use> Compile(std::span<const HostPort> ports);

  static bool Conflict(std::span<const Use> a, std::span<const Use> b);

  void Change(std::span<const Use> uses, NodeId node, int sign);

  // Calls `visit` with each node on which one of the ports is taken, maybe more than once.
  template <class Visit>
  void ForConflicts(std::span<const Use> uses, const Visit& visit) const {
    const auto visit_all = [&](const Nodes& nodes) {
      for (const auto& [node, pods] : nodes) visit(node);
    };
    for (const Use& use : uses) {
      const Port& port = ports_[use.port];
      if (use.address == kAnyAddress) {
        visit_all(port.any);
        continue;
      }
      for (const int address : {use.address, kAnyAddress}) {
        const auto at = port.by_address.find(address);
        if (at != port.by_address.end()) visit_all(at->second);
      }
    }
  }

 private:
  using Nodes = std::vector<std::pair<NodeId, int32_t>>;  // In order, each with its pods.
  struct Port {
    Nodes any;  // Whatever the address.
    std::unordered_map<int, Nodes> by_address;
  };

  static void Add(NodeId node, int sign, Nodes* nodes);

  std::vector<Port> ports_;
  std::map<std::pair<int64_t, std::string>, int> port_rows_;  // By number and protocol.
  std::unordered_map<std::string, int> addresses_;
};

}  // namespace rudderfish
