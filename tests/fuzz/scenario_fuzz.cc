// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "scenario/scenario.h"

// Any bytes as a scenario file: refused in one line, or a scenario that survives being written.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto scenario = rudderfish::ParseScenario(text, "fuzz.yaml");
  if (!scenario) {
    CHECK(!scenario.error().message.empty());
    return 0;
  }
  const std::string written = rudderfish::ToYaml(*scenario);
  const auto again = rudderfish::ParseScenario(written, "written.yaml");
  CHECK(again.has_value());
  CHECK(rudderfish::ToYaml(*again) == written);
  return 0;
}
