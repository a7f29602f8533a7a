// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "telemetry/spans.h"

// Traces of Jaeger's query API: the services that it knows, and of each the newest traces of a
// time. A trace comes with each of its services and is taken once. Waits for the answers. One
// thread.

namespace rudderfish {

struct JaegerQuery {
  std::string url;       // "http://jaeger:16686"
  double from_unix = 0;  // Seconds.
  double to_unix = 0;
  int traces_max = 1000;  // Of each service.
  int services_max = 500;
  std::set<std::string> preferred;  // If it knows any of these services, they alone are asked for.
  Duration deadline = std::chrono::seconds(30);  // Of each request.
  size_t body_limit_bytes = 256 << 20;
  std::stop_token stop;  // Gives up once it is asked to.
};

struct JaegerAnswer {
  int services = 0;
  std::vector<std::string> cut;  // Services that had more traces than were asked for.
};

// Adds to `set`. kUnavailable if it does not answer, or not as Jaeger does, or was told to stop;
// kFailedPrecondition if it has no trace of that time.
Result<JaegerAnswer> FetchSpans(const JaegerQuery& query, SpanSet* set);

}  // namespace rudderfish
