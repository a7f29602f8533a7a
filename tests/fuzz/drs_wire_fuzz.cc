// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "compat/drs.h"

// Any bytes as what one of DRS's monitors answers, and as the form that its scheduler posts: read,
// or refused in one line. A state that is read is written as text that reads the same.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto state = ParseDrsState(text)) {
    const std::string written = DrsStateText(*state);
    const auto again = ParseDrsState(written);
    CHECK(again.has_value());
    CHECK_EQ(DrsStateText(*again), written);
  } else {
    CHECK(state.error().message.find('\n') == std::string::npos);
  }
  if (const auto field = FormField(text, "podname")) {
    CHECK(field->size() <= text.size());
  } else {
    CHECK(field.error().message.find('\n') == std::string::npos);
  }
  return 0;
}
