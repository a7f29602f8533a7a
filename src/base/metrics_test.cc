// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <thread>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

TEST(Metrics, TextHasHelpTypeAndOneLineAMember) {
  MetricRegistry registry;
  registry.AddCounter("rudderfish_moves_total", "Moves made.", {{"kind", "migrate"}}).Add(3);
  registry.AddCounter("rudderfish_moves_total", "Moves made.", {{"kind", "a\\b\"c\nd"}}).Add();
  registry.AddGauge("rudderfish_age_seconds", "Of the state,\nin \\ \"words\".").Set(0.25);
  EXPECT_EQ(registry.Text(),
            "# HELP rudderfish_age_seconds Of the state,\\nin \\\\ \"words\".\n"
            "# TYPE rudderfish_age_seconds gauge\n"
            "rudderfish_age_seconds 0.25\n"
            "# HELP rudderfish_moves_total Moves made.\n"
            "# TYPE rudderfish_moves_total counter\n"
            "rudderfish_moves_total{kind=\"migrate\"} 3\n"
            "rudderfish_moves_total{kind=\"a\\\\b\\\"c\\nd\"} 1\n");
}

TEST(Metrics, HistogramCountsCumulatively) {
  MetricRegistry registry;
  const double bounds[] = {0.1, 1};
  Histogram& histogram =
      registry.AddHistogram("rudderfish_wait_seconds", "Waiting.", bounds, {{"to", "x"}});
  for (double value : {0.05, 0.1, 0.5, 7.0}) histogram.Observe(value);
  EXPECT_EQ(registry.Text(),
            "# HELP rudderfish_wait_seconds Waiting.\n"
            "# TYPE rudderfish_wait_seconds histogram\n"
            "rudderfish_wait_seconds_bucket{to=\"x\",le=\"0.1\"} 2\n"
            "rudderfish_wait_seconds_bucket{to=\"x\",le=\"1\"} 3\n"
            "rudderfish_wait_seconds_bucket{to=\"x\",le=\"+Inf\"} 4\n"
            "rudderfish_wait_seconds_sum{to=\"x\"} 7.65\n"
            "rudderfish_wait_seconds_count{to=\"x\"} 4\n");
}

TEST(Metrics, ValuesThatAreNoNumbersAreSpelledAsPrometheusDoes) {
  MetricRegistry registry;
  Gauge& gauge = registry.AddGauge("rudderfish_x", "X.");
  gauge.Set(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(registry.Text(), HasSubstr("rudderfish_x NaN\n"));
  gauge.Set(-std::numeric_limits<double>::infinity());
  EXPECT_THAT(registry.Text(), HasSubstr("rudderfish_x -Inf\n"));
}

TEST(Metrics, SameNameAndLabelsAreTheSameMetricInAnyOrder) {
  MetricRegistry registry;
  Counter& one = registry.AddCounter("rudderfish_a_total", "A.", {{"b", "1"}, {"c", "2"}});
  EXPECT_EQ(&one, &registry.AddCounter("rudderfish_a_total", "A.", {{"c", "2"}, {"b", "1"}}));
  EXPECT_NE(&one, &registry.AddCounter("rudderfish_a_total", "A.", {{"c", "1"}, {"b", "1"}}));
}

TEST(MetricsDeathTest, NamesFollowTheConventions) {
  MetricRegistry registry;
  registry.AddGauge("rudderfish_a", "A.", {{"b", "1"}});
  EXPECT_DEATH(registry.AddCounter("rudderfish_moves", "Moves."), "_total");
  EXPECT_DEATH(registry.AddGauge("rudderfish_moves_total", "Moves."), "_total");
  EXPECT_DEATH(registry.AddGauge("moves", "Moves."), "rudderfish_");
  EXPECT_DEATH(registry.AddGauge("rudderfish_Moves", "Moves."), "IsName");
  EXPECT_DEATH(registry.AddGauge("rudderfish_moves", ""), "help");
  EXPECT_DEATH(registry.AddGauge("rudderfish_a", "A.", {{"c", "1"}}), "first");
  EXPECT_DEATH(registry.AddGauge("rudderfish_a", "B.", {{"b", "1"}}), "help");
}

TEST(Metrics, NothingCountedByThreadsIsLost) {
  constexpr int kThreads = 4, kEach = 20'000;
  MetricRegistry registry;
  Counter& counter = registry.AddCounter("rudderfish_a_total", "A.");
  Histogram& histogram = registry.AddHistogram("rudderfish_b_seconds", "B.", LatencyBounds());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        counter.Add();
        histogram.Observe(0.5);
        if (i % 5000 == 0) {
          EXPECT_THAT(registry.Text(), HasSubstr("rudderfish_b_seconds_count"));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), kThreads * kEach);
  EXPECT_THAT(registry.Text(), HasSubstr("rudderfish_b_seconds_count 80000\n"));
  EXPECT_EQ(histogram.sum(), 0.5 * kThreads * kEach);
}

// What Prometheus' own tool says of the text.
TEST(Metrics, PromtoolFindsNothingToSay) {
  if (std::system("command -v promtool >/dev/null") != 0)
    GTEST_SKIP() << "promtool is not installed (./setup installs it)";
  MetricRegistry registry;
  registry.AddBuild("1.2.3");
  registry.AddCounter("rudderfish_moves_total", "Moves made.", {{"kind", "a\\b\"c\nd"}}).Add(3);
  registry.AddGauge("rudderfish_age_seconds", "Of the \\ state.").Set(0.25);
  registry.AddHistogram("rudderfish_wait_seconds", "Waiting.", LatencyBounds()).Observe(0.3);
  std::FILE* tool = ::popen("promtool check metrics", "w");
  ASSERT_NE(tool, nullptr);
  const std::string text = registry.Text();
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), tool), text.size());
  EXPECT_EQ(::pclose(tool), 0) << text;
}

}  // namespace
}  // namespace rudderfish
