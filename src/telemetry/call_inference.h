// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "telemetry/clock_offsets.h"
#include "telemetry/spans.h"
#include "telemetry/traced_request.h"

// Who calls whom to answer a request, from many traces of it: a tree of calls for each operation
// that requests begin with. The first, second ... call of a workload by the same caller are
// different calls; where there are 2.4 on average, two are kept, and the second has 1.4 times the
// work. Calls that overlap in most traces are made in parallel. A pure function.

namespace rudderfish {

struct TimeSummary {
  int64_t count = 0;
  double mean = 0, p50 = 0, p95 = 0;
};

TimeSummary Summarise(std::vector<float> values);

struct InferredCall {
  WorkloadId workload = kNone;
  double per_request = 0;             // Calls for one request to the endpoint.
  std::map<int, TimeSummary> own_ms;  // By speed (SpanPlace); kNone where it is not known.
  TimeSummary network_ms;             // Both ways, with the payload.
  double request_bytes = -1;          // Mean; -1: not known.
  bool is_from_outside = false;       // Some times are its caller's, with the network in them.

  // Groups in parallel, the calls of a group one after another, and how surely: the share of
  // traces that agree, of the pair that they agree on least. 1 where there is nothing to order.
  std::vector<std::vector<InferredCall>> groups;
  double certainty = 1;
};

struct InferredEndpoint {
  std::string operation;
  int64_t traces = 0;
  TimeSummary duration_ms;  // Of the first span.
  InferredCall client;      // Workload kNone where the client reports no spans.
};

struct InferredGraph {
  std::vector<InferredEndpoint> endpoints;  // Those of most traces first.
  std::map<AsynchronousCall, int64_t> asynchronous;
  std::vector<ClockOffset> clocks;
  Counts traces_left_out;
  Counts folded;  // Spans, and endpoints, that are not shown.
  int64_t traces = 0;
  int64_t first_ns = 0, last_ns = 0;  // When the first and the last of them began.
};

struct InferenceLimits {
  int endpoints = 50;
  double least_share = 0.01;  // Of the traces that an endpoint has, or of requests a call is in.
};

// kFailedPrecondition if no trace shows a whole request; the message says why. Spans are sorted and
// their times are put on one clock.
Result<InferredGraph> InferCalls(const SpanPlaces& places, const InferenceLimits& limits,
                                 SpanSet* set);

}  // namespace rudderfish
