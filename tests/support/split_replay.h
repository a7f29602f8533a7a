// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "scenario/scenario.h"

// A scenario whose load replays a trace of two rates: in its first half one, in its second another.

namespace rudderfish::testing {

// `text`: of a scenario with `{replay: {format: azure-llm, file: none.csv}}` as its last load.
inline std::shared_ptr<const Scenario> SplitReplay(std::string_view text, double first_per_s,
                                                   double second_per_s) {
  constexpr int kBins = 40;
  constexpr double kBinS = 60;
  Result<Scenario> scenario = ParseScenario(text, "replay.yaml");
  CHECK(scenario.has_value());
  auto load = std::make_shared<Load>(*scenario->load);
  RequestTrace trace{.bin_s = kBinS, .counts = std::vector<double>(kBins, first_per_s * kBinS)};
  std::fill(trace.counts.begin() + kBins / 2, trace.counts.end(), second_per_s * kBinS);
  load->loads.back().traffic.trace = std::make_shared<const RequestTrace>(std::move(trace));
  scenario->load = std::move(load);
  return std::make_shared<const Scenario>(*std::move(scenario));
}

}  // namespace rudderfish::testing
