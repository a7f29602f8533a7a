// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "scenario/trace_reader.h"

// Any bytes as the pods and as the nodes of a trace: refused in one line, or pods in the order of
// time that are of known workloads.

namespace {

constexpr std::string_view kScenario = R"(rudderfish: scenario/v1
name: replay
layers: {all: {}}
latency: {all: {all: 1ms}}
node_types:
  cpu: {layer: all, cpu_type: any, bandwidth: 1Gbit}
  T4: {layer: all, cpu_type: any, bandwidth: 1Gbit}
arrivals: {trace: {format: openb, pods: pods.csv, nodes: nodes.csv}}
)";

void CheckRefusal(const rudderfish::Error& error) {
  CHECK(!error.message.empty());
  CHECK(error.message.find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const rudderfish::Scenario bare = *rudderfish::ParseScenario(kScenario, "replay.yaml");
  rudderfish::Scenario scenario = bare;
  if (const auto read = rudderfish::ReadOpenbNodes(text, "nodes.csv", &scenario); !read) {
    CheckRefusal(read.error());
  }
  scenario = bare;
  const auto read = rudderfish::ReadOpenbPods(text, "pods.csv", &scenario);
  if (!read) {
    CheckRefusal(read.error());
    return 0;
  }
  rudderfish::SimTime previous{0};
  for (const rudderfish::TracePod& pod : *scenario.arrivals->trace_pods) {
    CHECK(pod.at >= previous && pod.lifetime.count() >= 0);
    CHECK_LT(pod.workload, scenario.catalog->workload_count());
    previous = pod.at;
  }
  return 0;
}
