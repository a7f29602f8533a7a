// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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
  const Result<RequestTrace> trace = ReadRequestTrace(text, "a.csv", "azure-llm", kTraceMinute);
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_EQ(trace->counts, (std::vector<double>{60, 60, 60, 60, 60, 12, 12, 12, 12, 12}));

  Traffic traffic;
  traffic.shape = Traffic::Shape::kReplay;
  traffic.trace = std::make_shared<const RequestTrace>(*trace);
  traffic.held_out = .1;  // The last minute.
  const RateCurve curve = DrawCurve(traffic, EpisodeUse::kLearning, 10 * kTraceMinute, 1);
  const double mean = (5 * 1 + 4 * .2) / 9;
  EXPECT_NEAR(curve.MeanOf(0, 540), mean, .01);
  EXPECT_NEAR(curve.Peak(), 1, 1e-9);
  EXPECT_NEAR(*std::min_element(curve.per_s.begin(), curve.per_s.end()), .2, 1e-9);
  traffic.scale_per_s = 30;  // Of the whole trace.
  traffic.time_warp = 2;
  EXPECT_NEAR(DrawCurve(traffic, EpisodeUse::kLearning, 10 * kTraceMinute, 1).MeanOf(0, 270),
              30 * mean / .6, .5);
  traffic.upto = .4;  // Only the part of high load.
  traffic.held_out = .25;
  const RateCurve high = DrawCurve(traffic, EpisodeUse::kLearning, 60 * kTraceMinute, 3);
  EXPECT_NEAR(*std::min_element(high.per_s.begin(), high.per_s.end()), 50, 1e-9);
}

Traffic ReplayOf(std::vector<double> counts) {
  Traffic traffic;
  traffic.shape = Traffic::Shape::kReplay;
  traffic.trace = std::make_shared<const RequestTrace>(RequestTrace{.counts = std::move(counts)});
  return traffic;
}

std::pair<size_t, size_t> Ends(const TracePart& part) { return {part.first, part.last}; }

// No policy is evaluated on minutes that it has learned from, even if an episode wraps around.
TEST(RequestTrace, EpisodesToLearnOnAreFromBeforeThoseToBeJudgedBy) {
  const Traffic traffic = ReplayOf({60, 60, 60, 60, 60, 600, 600, 600, 600, 600});
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const RateCurve learned = DrawCurve(traffic, EpisodeUse::kLearning, 30 * kTraceMinute, seed);
    const RateCurve judged = DrawCurve(traffic, EpisodeUse::kEvaluation, 30 * kTraceMinute, seed);
    EXPECT_NEAR(learned.Peak(), 1, 1e-9);
    EXPECT_NEAR(*std::min_element(judged.per_s.begin(), judged.per_s.end()), 10, 1e-9);
  }
}

TEST(RequestTrace, APartIsSplitWhereItSays) {
  Traffic traffic = ReplayOf(std::vector<double>(20, 1));
  using Bins = std::pair<size_t, size_t>;
  EXPECT_EQ(Ends(PartFor(traffic, EpisodeUse::kLearning)), Bins(0, 10));
  EXPECT_EQ(Ends(PartFor(traffic, EpisodeUse::kEvaluation)), Bins(10, 20));
  traffic.from = .5;
  traffic.held_out = .2;
  EXPECT_EQ(Ends(PartFor(traffic, EpisodeUse::kLearning)), Bins(10, 18));
  EXPECT_EQ(Ends(PartFor(traffic, EpisodeUse::kEvaluation)), Bins(18, 20));
  traffic.held_out = .001;  // One bin at least, on either side.
  EXPECT_EQ(Ends(PartFor(traffic, EpisodeUse::kEvaluation)), Bins(19, 20));
  traffic.held_out = .999;
  EXPECT_EQ(Ends(PartFor(traffic, EpisodeUse::kLearning)), Bins(10, 11));
  traffic.from = .97;
  EXPECT_FALSE(HasPartForEach(traffic));
  EXPECT_TRUE(HasPartForEach(ReplayOf({3, 4})));
  EXPECT_FALSE(HasPartForEach(ReplayOf({3})));
}

// The trace of 2024 writes offsets, and whole seconds without a fraction.
TEST(RequestTrace, ReadsOffsetsFromUtc) {
  const auto trace = ReadRequestTrace(std::string(kTraceHead) +
                                          "2024-05-10 00:00:00.684217+00:00,1833,100\n"
                                          "2024-05-10 00:01:01+00:00,2630,36\n"
                                          "2024-05-10 02:01:02.5+02:00,1,1\n"
                                          "2024-05-09 23:31:03-00:30,1,1\n"
                                          "2024-05-10 00:02:05Z,1,1\n",
                                      "a.csv", "azure-llm", kTraceMinute);
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_EQ(trace->counts, (std::vector<double>{1, 3})) << "the last bin is cut";
}

TEST(RequestTrace, SortsWhatIsNotSorted) {
  const std::string early = "2024-05-10 00:00:00,1,1\n", late = "2024-05-10 00:01:30,1,1\n";
  const std::string last = "2024-05-10 00:03:30,1,1\n";
  const auto sorted = ReadRequestTrace(std::string(kTraceHead) + early + late + last, "a.csv",
                                       "azure-llm", kTraceMinute);
  const auto unsorted = ReadRequestTrace(std::string(kTraceHead) + late + last + early, "a.csv",
                                         "azure-llm", kTraceMinute);
  ASSERT_TRUE(unsorted.has_value()) << unsorted.error().message;
  EXPECT_EQ(unsorted->counts, sorted->counts);
}

TEST(RequestTrace, RefusesWhatIsNoTraceWithItsPlace) {
  const auto refusal = [](std::string_view rows) {
    const auto read = ReadRequestTrace(std::string(kTraceHead) + std::string(rows), "a.csv",
                                       "azure-llm", kTraceMinute);
    return read ? std::string("accepted") : read.error().message;
  };
  EXPECT_EQ(refusal("2023-11-31 18:17:03,1,1\n"),
            "a.csv:2:1: `TIMESTAMP`: expected a time such as 2023-11-16 18:17:03.9799600 or "
            "2024-05-10 00:00:00+00:00");
  EXPECT_EQ(refusal("2024-05-10 00:00:00+00,1,1\n").substr(0, 11), "a.csv:2:1: ");
  EXPECT_EQ(refusal("2024-05-10 00:00:00+24:00,1,1\n").substr(0, 11), "a.csv:2:1: ");
  EXPECT_EQ(refusal("2023-11-16 18:17:03,-1,1\n").substr(0, 12), "a.csv:2:21: ");
  EXPECT_EQ(refusal(""), "a.csv: expected at least one request, found none");
  const auto columns = ReadRequestTrace("TIMESTAMPS,ContextTokens,GeneratedTokens\n", "a.csv",
                                        "azure-llm", kTraceMinute);
  ASSERT_FALSE(columns.has_value());
  EXPECT_NE(columns.error().message.find("is it \"TIMESTAMPS\"?"), std::string::npos);
}

TEST(RequestTrace, PodsOfAlibabaCountByTheirCreation) {
  const auto trace = ReadRequestTrace(
      "name,cpu_milli,creation_time,deletion_time\n"
      "a,1000,0,900\nb,1000,600,900\nc,1000,630,900\nd,1000,660,900\ne,1000,730,900\n",
      "a.csv", "openb", kTraceMinute);
  ASSERT_TRUE(trace) << trace.error().message;
  // What is there at 0 came before; the last minute is not whole.
  EXPECT_EQ(trace->counts, (std::vector<double>{2, 1}));
  EXPECT_EQ(ReadRequestTrace("name,creation_time\na,soon\n", "a.csv", "openb", kTraceMinute)
                .error()
                .message,
            "a.csv:2:3: `creation_time`: expected an integer from 0 to 4000000000, found \"soon\"");
}

TEST(RequestTrace, EventsOfGoogleCountWhereTheySubmit) {
  const auto trace = ReadRequestTrace(
      "time,type,collection_id\n0,0,1\n600000000,0,1\n601000000,3,1\n610000000,SUBMIT,2\n"
      "660000000,0,3\n9223372036854775807,0,4\n730000000,0,5\n",
      "a.csv", "google-2019", kTraceMinute);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->counts, (std::vector<double>{2, 1}));
  EXPECT_FALSE(
      ReadRequestTrace("time,type\n9000000000000000000,0\n", "a.csv", "google-2019", kTraceMinute));
}

}  // namespace
}  // namespace rudderfish
