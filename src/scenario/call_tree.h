// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/call_graph.h"

// A call graph as files nest it. Both file formats are read into this; only BuildCallGraph knows
// how a CallGraph is laid out.

namespace rudderfish {

struct CallTree {
  WorkloadId workload = 0;
  double data_mbytes = 0;
  std::vector<double> execution_ms;  // [kind]
  std::vector<std::vector<CallTree>>
      groups;  // Groups in parallel, the calls of a group one after another.
};

struct EndpointTree {
  std::string name;
  double rate_per_second = 0;
  double qos_ms = 0;
  CallTree root;
};

std::shared_ptr<const CallGraph> BuildCallGraph(std::string name, int kind_count,
                                                const std::vector<EndpointTree>& endpoints);

// The way back: BuildCallGraph of all trees gives an equal graph.
EndpointTree TreeOf(const CallGraph& graph, const Endpoint& endpoint);

}  // namespace rudderfish
