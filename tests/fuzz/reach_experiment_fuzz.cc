// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "compat/reach_csv.h"
#include "compat/reach_settings.h"

// Any bytes as REACH's .env file and as the answer of its entry service: refused in one line, or
// values within their bounds; and as a cell of its CSV, which stays one.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto settings =
      rudderfish::ParseReachSettings(text, ".env", [](const std::string&) { return std::nullopt; });
  if (settings) {
    CHECK(settings->polling_period >= std::chrono::milliseconds(10));
    CHECK(settings->alpha > 0 && settings->alpha <= 1);
    CHECK(settings->waiting_retries >= 1 && settings->steps_max >= 1);
  } else {
    CHECK(settings.error().message.find('\n') == std::string::npos);
  }
  if (const auto ms = rudderfish::ReachEntryLatencyMs(text)) CHECK(*ms >= 0);
  const std::string line = rudderfish::CsvLine({std::string(text), "end"});
  CHECK(line.ends_with(",end\n"));
  const std::string name = rudderfish::ReachNodeName(text);
  CHECK(name.find(',') == std::string::npos);
  return 0;
}
