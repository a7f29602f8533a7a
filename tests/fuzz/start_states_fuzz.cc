// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../support/tiny_scenario.h"
#include "base/check.h"
#include "scenario/start_states.h"

// Any bytes as start states of one scenario: refused, or consistent states that survive being
// written.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto scenario = rudderfish::testing::TinyScenario();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto states = rudderfish::ParseStartStates(text, "fuzz.jsonl", *scenario);
  if (!states) {
    CHECK(!states.error().message.empty());
    return 0;
  }
  for (const rudderfish::StartState& start : *states) {
    rudderfish::CheckConsistent(start.state);
    const std::string line = rudderfish::StartStateLine(*scenario, start.state);
    const auto again = rudderfish::ParseStartStates(line, "written.jsonl", *scenario);
    CHECK(again.has_value());
    CHECK(again->front().state.nodes.free == start.state.nodes.free);
    CHECK(again->front().state.pods.node == start.state.pods.node);
  }
  return 0;
}
