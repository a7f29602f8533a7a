// SPDX-License-Identifier: Apache-2.0
#include "telemetry/clock_offsets.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rudderfish {
namespace {

constexpr int64_t kMs = 1'000'000;

// Calls from a to b and from b to c, of machines whose clocks are fast by `b` and `c`.
SpanSet CallsBetweenClocks(int64_t b, int64_t c, bool has_clients) {
  SpanSet set;
  for (const char* name : {"a", "b", "c"}) set.SourceOf({.service = name});
  for (uint64_t i = 0; i < 100; ++i) {
    const int64_t at = 1'000'000 * kMs + static_cast<int64_t>(i) * 100 * kMs;
    const int64_t there = kMs + static_cast<int64_t>(i % 7) * kMs / 10, back = kMs;
    const int64_t fast[] = {0, b, c};
    int64_t start = at, length = 40 * kMs;
    uint64_t parent = 0, id = 1;
    for (int32_t source = 0; source < 3; ++source) {
      set.Add({.trace = {1, i + 1},
               .id = id,
               .parent_id = parent,
               .start_ns = start + fast[source],
               .duration_ns = length,
               .source = source,
               .role = SpanRole::kServer});
      parent = id++;
      start += 2 * kMs;
      length -= 4 * kMs;
      if (has_clients) {
        set.Add({.trace = {1, i + 1},
                 .id = id,
                 .parent_id = parent,
                 .start_ns = start + fast[source],
                 .duration_ns = length,
                 .source = source,
                 .role = SpanRole::kClient});
        parent = id++;
      }
      start += there;
      length -= there + back;
    }
  }
  LinkSpans(&set);
  return set;
}

TEST(ClockOffsets, AreFoundThroughOthers) {
  const std::vector<std::string> clocks = {"a", "b", "c"};
  SpanSet set = CallsBetweenClocks(1500 * kMs, -80 * kMs, true);
  const std::vector<ClockOffset> offsets = EstimateClockOffsets(set, clocks);
  ASSERT_EQ(offsets.size(), 3u);
  EXPECT_NEAR(static_cast<double>(offsets[1].offset_ns - offsets[0].offset_ns), 1500.0 * kMs,
              0.2 * kMs);
  EXPECT_NEAR(static_cast<double>(offsets[2].offset_ns - offsets[0].offset_ns), -80.0 * kMs,
              0.4 * kMs);
  RemoveClockOffsets(clocks, offsets, &set);
  for (const Span& span : set.spans) {
    if (span.parent < 0) continue;
    EXPECT_GE(span.start_ns, set.spans[span.parent].start_ns);
    EXPECT_LE(span.end_ns(), set.spans[span.parent].end_ns());
  }
}

TEST(ClockOffsets, AreNoneWhereNoneNeedBe) {
  const SpanSet set = CallsBetweenClocks(kMs / 2, 0, false);
  for (const ClockOffset& one : EstimateClockOffsets(set, {"a", "b", "c"}))
    EXPECT_EQ(one.offset_ns, 0) << one.clock;
  const SpanSet skewed = CallsBetweenClocks(500 * kMs, 0, false);
  const auto offsets = EstimateClockOffsets(skewed, {"a", "b", "c"});
  EXPECT_NEAR(static_cast<double>(offsets[1].offset_ns - offsets[0].offset_ns), 500.0 * kMs,
              4.0 * kMs);
}

TEST(ClockOffsets, OfOneMachineAreOne) {
  const SpanSet set = CallsBetweenClocks(0, 0, true);
  const std::vector<ClockOffset> offsets = EstimateClockOffsets(set, {"n", "n", "n"});
  ASSERT_EQ(offsets.size(), 1u);
  EXPECT_TRUE(offsets[0].is_known);
}

}  // namespace
}  // namespace rudderfish
