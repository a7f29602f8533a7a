// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "policy/placement_facts.h"

// Any bytes as what a checkpoint says of its world: refused in one line, or facts that are written
// and read as the same.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto facts = rudderfish::ParseFacts(text, "fuzz");
  if (!facts) {
    CHECK(!facts.error().message.empty());
    CHECK(facts.error().message.find('\n') == std::string::npos);
    return 0;
  }
  CHECK_EQ(facts->types.size(), facts->laws.costs.size());
  CHECK_LE(facts->laws.shapes.total_weight, rudderfish::PodShapes::kMaxWeight);
  const auto again = rudderfish::ParseFacts(rudderfish::FactsText(*facts), "again");
  CHECK(again.has_value());
  CHECK(*again == *facts);
  return 0;
}
