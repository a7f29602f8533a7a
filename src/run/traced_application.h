// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/application.h"
#include "telemetry/call_inference.h"

// An application whose calls and execution times are those that traces show. A call that is made
// 0.3 times a request has 0.3 of its work and payload, so that load is right. What traces do not
// show stays as the application has it: layers, latencies, kinds of node, rates and targets of
// endpoints that are the same. A pure function.

namespace rudderfish {

// Where an execution time comes from.
struct TracedTime {
  std::string endpoint;
  int call_number = 0;
  std::string call;  // Its workload, with as many spaces before it as it is deep.
  std::string cpu_type;
  double execution_ms = 0;  // As written.
  TimeSummary seen;         // Count 0: of no span, but by `ratio` of what was seen elsewhere.
  double ratio = 1;
  double per_request = 0;
  TimeSummary network_ms;
  std::string order;  // Of its own calls.
  bool is_from_outside = false;
};

struct TracedApplication {
  std::shared_ptr<const Application> application;
  std::vector<TracedTime> times;
};

// `sampled`: the share of requests that is traced. kFailedPrecondition if no workload
// could be the client of an endpoint.
Result<TracedApplication> WithTracedCalls(const Application& application,
                                          const InferredGraph& graph, double sampled);

// A table for people.
std::string TracedTimesText(const TracedApplication& traced);

// Of how many traces, from when to when, and what of them was left out; a line each.
std::string TracesText(const InferredGraph& graph, const Counts& spans_left_out);

}  // namespace rudderfish
