// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "evaluation/calibration.h"
#include "evaluation/routing_calibration.h"

// Any bytes as a file of `calibrate`, of both kinds: refused in one line, or settings that survive
// being written.

namespace rudderfish {
namespace {

template <class Parse, class Write>
void Try(const YamlNode& root, Parse parse, Write write) {
  const auto calibration = parse(root);
  if (!calibration) {
    CHECK(!calibration.error().message.empty());
    return;
  }
  const auto again = ParseYaml(write(*calibration), "written.yaml");
  CHECK(again.has_value());
  CHECK(parse(*again).value() == *calibration);
}

}  // namespace
}  // namespace rudderfish

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto root = rudderfish::ParseYaml(text, "fuzz.yaml");
  if (!root) return 0;
  rudderfish::Try(*root, rudderfish::ParseCalibration, rudderfish::CalibrationYaml);
  rudderfish::Try(*root, rudderfish::ParseRoutingCalibration, rudderfish::RoutingCalibrationYaml);
  return 0;
}
