// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "scenario/traffic.h"

// Any bytes as a trace of requests: refused in one line, or counts of which a curve can be drawn.

namespace {

void TryFormat(std::string_view text, std::string_view format) {
  const auto read = rudderfish::ReadRequestTrace(text, "requests.csv", format,
                                                 rudderfish::SimTime(3'600'000'000'000));
  if (!read) {
    CHECK(!read.error().message.empty());
    CHECK(read.error().message.find('\n') == std::string::npos);
    return;
  }
  CHECK(!read->counts.empty());
  rudderfish::Traffic traffic;
  traffic.shape = rudderfish::Traffic::Shape::kReplay;
  traffic.trace = std::make_shared<const rudderfish::RequestTrace>(*read);
  if (!rudderfish::HasPartForEach(traffic)) return;
  for (const auto use : {rudderfish::EpisodeUse::kLearning, rudderfish::EpisodeUse::kEvaluation}) {
    const auto curve = rudderfish::DrawCurve(traffic, use, rudderfish::SimTime(100'000'000'000), 1);
    for (const double rate : curve.per_s) CHECK(std::isfinite(rate) && rate >= 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::string_view format : rudderfish::kRequestTraceFormats) TryFormat(text, format);
  return 0;
}
