// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "telemetry/header_file.h"

// Any bytes as a file of headers or of a token: refused, or lines that cannot end a header early.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto is_one_line = [](std::string_view line) {
    return line.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
  };
  const auto headers = rudderfish::ParseHeaderFile(text, "file");
  if (headers) {
    CHECK(!headers->empty());
    for (const std::string& header : *headers) CHECK(is_one_line(header));
  } else {
    CHECK(is_one_line(headers.error().message));
  }
  const auto token = rudderfish::ParseBearerToken(text, "file");
  CHECK(is_one_line(token ? *token : token.error().message));
  return 0;
}
