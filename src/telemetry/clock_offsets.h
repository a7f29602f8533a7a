// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "telemetry/spans.h"

// How far the clocks of machines are apart, as spans show it: a server's span lies within its
// client's, however their clocks go. Of all calls between two clocks, the ones that were fastest
// bound their difference from above and from below; without more to know, it is the middle of the
// bounds, as in NTP. Clocks are taken to go at one rate. Pure functions.

namespace rudderfish {

struct ClockOffset {
  std::string clock;
  int64_t offset_ns = 0;  // What it shows more than the clock that most spans were timed by.
  bool is_known = false;  // No call connects it with that clock: then offset_ns is 0.
};

// `clocks`: [source] the name of the clock that it reads. REQUIRES: LinkSpans(set).
std::vector<ClockOffset> EstimateClockOffsets(const SpanSet& set,
                                              const std::vector<std::string>& clocks);

// All spans as one clock would have timed them.
void RemoveClockOffsets(const std::vector<std::string>& clocks,
                        const std::vector<ClockOffset>& offsets, SpanSet* set);

}  // namespace rudderfish
