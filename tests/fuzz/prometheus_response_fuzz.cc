// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "telemetry/signal_reading.h"

// Any bytes as an answer of Prometheus: refused with a reason, or finite values of entities that
// were asked about.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;  // NOLINT(google-build-using-namespace)
  static const SignalEntities entities{.nodes = {{"n1", "10.0.0.1"}, {"n2", ""}},
                                       .workloads = {{"a", "d"}, {"b", "d"}},
                                       .edges = {{"a", "b"}}};
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto answer = ParsePrometheusResponse(body);
  if (!answer) {
    CHECK(!answer.error().message.empty());
    return 0;
  }
  const SignalQuery queries[] = {
      {.name = "x", .scope = SignalScope::kNode, .labels = {"instance"}, .scale = 1e9},
      {.name = "x",
       .scope = SignalScope::kEdge,
       .labels = {"from", "to"},
       .duplicates = SignalDuplicates::kMean,
       .reduce = SignalReduce::kMean},
      {.name = "x", .scope = SignalScope::kCluster, .duplicates = SignalDuplicates::kSum}};
  for (const SignalQuery& query : queries) {
    SignalReading reading;
    ReadAnswer(query, {.text = "", .entity = "", .is_batched = true}, entities, *answer, &reading);
    SignalColumn column;
    MergeReadings({reading, reading}, EntityNames(query.scope, entities), 0.1, Instant(),
                  UnixSeconds(), &column);
    for (const auto& [entity, value] : column.values) CHECK(std::isfinite(value.value));
  }
  return 0;
}
