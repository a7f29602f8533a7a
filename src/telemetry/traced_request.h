// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/ids.h"
#include "telemetry/spans.h"

// One trace as the calls between workloads that it shows. Spans of one workload below each other
// are one call, so those of a proxy beside it, of several services in one pod and of its own
// functions are folded; so are those of what is no workload. What a call executes is its time less
// the time in which at least one of its own calls was under way. Pure functions.

namespace rudderfish {

// What the names in spans stand for.
struct SpanPlace {
  WorkloadId workload = kNone;  // kNone: of no workload that is known.
  int speed = kNone;            // Which kind of processor; kNone: not known.
  bool is_outside = false;      // A client, not a part of the cluster.
  std::string clock;            // Whose time its spans have.
};

struct SpanPlaces {
  std::vector<SpanPlace> sources;                           // [SpanSet::sources]
  std::map<std::string, WorkloadId, std::less<>> services;  // Names that clients call.
};

struct TracedCall {
  WorkloadId workload = kNone;
  int speed = kNone;
  int caller = kNone;                // TracedRequest::calls; kNone for the client.
  int64_t start_ns = 0, end_ns = 0;  // As its caller saw it, where the caller tells.
  double own_ms = 0;
  double network_ms = -1;        // The client's span less the server's; -1: not known.
  int64_t request_bytes = -1;    // -1: not known.
  bool is_from_outside = false;  // Only its caller's span is there: own_ms has the network in it.
};

// Who calls whom without waiting for an answer.
struct AsynchronousCall {
  WorkloadId caller = kNone, callee = kNone;
  auto operator<=>(const AsynchronousCall&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct TracedRequest {
  int32_t operation = kNone;  // SpanSet::words
  int64_t start_ns = 0;
  double duration_ms = 0;
  std::vector<TracedCall> calls;  // The client, then the others after their callers.
  std::vector<AsynchronousCall> asynchronous;
  Counts folded;  // What the calls do not show, by reason.
};

// Nothing, and why, of a trace that does not show a whole request. REQUIRES: LinkSpans(set).
std::optional<TracedRequest> ReadRequest(const SpanSet& set, SpanRange range,
                                         const SpanPlaces& places, std::string* reason);

}  // namespace rudderfish
