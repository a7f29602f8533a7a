// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "telemetry/call_inference.h"
#include "telemetry/span_reader.h"

// Any bytes as traces of Jaeger or OTLP: refused with a reason, or a call graph whose times are
// finite, whatever the spans say of their parents and clocks.

namespace {

void CheckCall(const rudderfish::InferredCall& call, int depth) {
  CHECK_LT(depth, 1000);
  for (const auto& [speed, time] : call.own_ms) CHECK(std::isfinite(time.mean) && time.mean >= 0);
  CHECK(std::isfinite(call.per_request) && call.per_request >= 0);
  for (const auto& group : call.groups) {
    for (const auto& callee : group) CheckCall(callee, depth + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;  // NOLINT(google-build-using-namespace)
  SpanSet set;
  const auto read = ReadSpans({reinterpret_cast<const char*>(data), size}, "fuzz", &set);
  if (!read) {
    CHECK(!read.error().message.empty());
    return 0;
  }
  SpanPlaces places;
  for (size_t source = 0; source < set.sources.size(); ++source) {
    places.sources.push_back({.workload = static_cast<WorkloadId>(source % 3),
                              .speed = static_cast<int>(source % 2),
                              .clock = source % 2 == 0 ? "a" : "b"});
  }
  const auto graph = InferCalls(places, {}, &set);
  if (!graph) {
    CHECK(!graph.error().message.empty());
    return 0;
  }
  for (const InferredEndpoint& endpoint : graph->endpoints) CheckCall(endpoint.client, 0);
  return 0;
}
