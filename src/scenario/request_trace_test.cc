// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "scenario/traffic.h"

namespace rudderfish {
namespace {

constexpr SimTime kTraceMinute{60'000'000'000};

constexpr std::string_view kTraceHead = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

TEST(RequestTrace, CountsArrivalsAndReplaysThem) {
  std::string text(kTraceHead);
  for (int minute = 0; minute < 10; ++minute) {
    for (int i = 0; i < (minute < 5 ? 60 : 12); ++i) {
      text += "2023-11-16 23:5" + std::to_string(minute) + ":" + (i < 10 ? "0" : "") +
              std::to_string(i) + ".5,100,10\n";
    }
  }
  text += "2023-11-17 00:00:00.5,100,10\n";
  const Result<RequestTrace> trace = ReadRequestTrace(text, "a.csv", kTraceMinute);
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_EQ(trace->counts, (std::vector<double>{60, 60, 60, 60, 60, 12, 12, 12, 12, 12}));

  Traffic traffic;
  traffic.shape = Traffic::Shape::kReplay;
  traffic.trace = std::make_shared<const RequestTrace>(*trace);
  const RateCurve curve = DrawCurve(traffic, 10 * kTraceMinute, 1);
  EXPECT_NEAR(curve.MeanOf(0, 600), .6, .01);
  EXPECT_NEAR(curve.Peak(), 1, 1e-9);
  EXPECT_NEAR(*std::min_element(curve.per_s.begin(), curve.per_s.end()), .2, 1e-9);
  traffic.scale_per_s = 30;
  traffic.time_warp = 2;
  EXPECT_NEAR(DrawCurve(traffic, 10 * kTraceMinute, 1).MeanOf(0, 600), 30, .5);
  traffic.upto = .4;  // Only the part of high load.
  const RateCurve high = DrawCurve(traffic, 60 * kTraceMinute, 3);
  EXPECT_NEAR(*std::min_element(high.per_s.begin(), high.per_s.end()), 50, 1e-9);
}

TEST(RequestTrace, RefusesWhatIsNoTraceWithItsPlace) {
  const auto refusal = [](std::string_view rows) {
    const auto read =
        ReadRequestTrace(std::string(kTraceHead) + std::string(rows), "a.csv", kTraceMinute);
    return read ? std::string("accepted") : read.error().message;
  };
  EXPECT_EQ(refusal("2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:02,1,1\n"),
            "a.csv:3:1: `TIMESTAMP`: earlier than the row before; sort the trace by time");
  EXPECT_EQ(refusal("2023-11-31 18:17:03,1,1\n"),
            "a.csv:2:1: `TIMESTAMP`: expected a time such as 2023-11-16 18:17:03.9799600");
  EXPECT_EQ(refusal("2023-11-16 18:17:03,-1,1\n").substr(0, 12), "a.csv:2:21: ");
  EXPECT_EQ(refusal(""), "a.csv: expected at least one request, found none");
  const auto columns =
      ReadRequestTrace("TIMESTAMPS,ContextTokens,GeneratedTokens\n", "a.csv", kTraceMinute);
  ASSERT_FALSE(columns.has_value());
  EXPECT_NE(columns.error().message.find("is it \"TIMESTAMPS\"?"), std::string::npos);
}

}  // namespace
}  // namespace rudderfish
