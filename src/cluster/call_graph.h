// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/ids.h"

// Who calls whom to answer a request. An endpoint is a tree of calls: a call runs on its workload,
// then its groups run in parallel (the slowest counts) and the calls within a group one after
// another (their times add up).
//
// Calls stand in preorder: every call comes after its caller, so a pass from the last to the first
// sees callees before callers. The root of an endpoint is the client's own call.

namespace rudderfish {

struct Call {
  WorkloadId workload = 0;
  CallId caller = kNone;   // kNone for the root of an endpoint.
  double data_mbytes = 0;  // Sent with the call from caller to callee.
  int first_group = 0;     // Its groups are [first_group, last_group) of CallGraph::groups.
  int last_group = 0;
};

struct CallGroup {
  int first = 0;  // Its calls are [first, last) of CallGraph::sequence, in order.
  int last = 0;
};

struct Endpoint {
  std::string name;
  CallId root = 0;  // Its calls are [root, end).
  CallId end = 0;
  double rate_per_second = 0;
  double qos_ms = 0;  // Target for the mean latency.
};

struct CallGraph {
  std::string name;  // The pattern: chain, aggregator_parallel ...
  std::vector<Call> calls;
  std::vector<CallGroup> groups;
  std::vector<CallId> sequence;
  std::vector<Endpoint> endpoints;
  int kind_count = 0;
  std::vector<double> execution_ms;  // [call][kind]; 0 for roots.

  double ExecutionMs(CallId call, KindId kind) const {
    return execution_ms[call * kind_count + kind];
  }
  int call_count() const { return static_cast<int>(calls.size()); }
};

}  // namespace rudderfish
