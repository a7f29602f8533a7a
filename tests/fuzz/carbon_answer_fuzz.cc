// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "telemetry/carbon_client.h"

// Any bytes as the answer of a service that knows carbon intensities: refused in one line, or an
// amount within bounds.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using rudderfish::CarbonService;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const rudderfish::CarbonZone zone{.region = "eu", .zone = "DE", .answer = ""};
  for (const auto service : {CarbonService::kElectricityMaps, CarbonService::kCarbonAwareSdk}) {
    const auto read = rudderfish::ReadCarbonAnswer(service, text, zone);
    if (read) {
      CHECK(read->g_per_kwh >= 0 && read->g_per_kwh <= 5000);
    } else {
      CHECK(read.error().message.find('\n') == std::string::npos);
    }
  }
  return 0;
}
