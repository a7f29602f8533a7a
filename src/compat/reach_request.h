// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What REACH's migrator (arXiv 2510.06675) sends to its policy server, POST /get_action:
//
//   {"cluster_state": {
//      "nodes": {NODE: {"node_name", "cpu_availability": MILLICORES, "memory_availability": GIB}},
//      "services": {SERVICE: {"service_name", "pods": [{"node_name", "pod_name"}]}}},
//    "pod_deployable": {POD: [NODE, ...]}}
//
// Availability is what is free after the requests of all pods. A pod whose node_name is empty is
// pending. Keys that are not named here are ignored, as REACH's own server does. A plain value; all
// names still as text.

namespace rudderfish {

struct ReachRequest {
  struct Node {
    std::string name;
    double cpu_millis = 0;
    double memory_gib = 0;
  };
  struct Pod {
    std::string name;
    std::string node;  // Empty: pending.
  };
  struct Service {
    std::string name;
    std::vector<Pod> pods;  // In the order of the request.
  };
  struct Deployable {
    std::string pod;
    std::vector<std::string> nodes;
  };

  std::vector<Node> nodes;             // By name.
  std::vector<Service> services;       // By name.
  std::vector<Deployable> deployable;  // By pod.
};

// Errors name the place: "request: cluster_state.nodes.a.cpu_availability: expected a number ...".
Result<ReachRequest> ParseReachRequest(std::string_view body);

}  // namespace rudderfish
