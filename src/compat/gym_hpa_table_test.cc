// SPDX-License-Identifier: Apache-2.0
#include "compat/gym_hpa_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kLine =
    "2022-03-01 12:00:05,3,4,369,2,48,16,1009.312,1,1,18,0,5,8,1009.312\n";

TEST(GymHpaTable, ReadsWhatItWrites) {
  const Result<GymHpaTable> table = ReadGymHpaTable(kLine, "o.csv");
  ASSERT_TRUE(table.has_value()) << table.error().message;
  ASSERT_EQ(table->deployments(), 2);
  EXPECT_EQ(table->rows[0].readings[0], (GymHpaReading{3, 4, 369, 2, 48, 16, 1009.312}));
  EXPECT_EQ(GymHpaLine(table->rows[0]), kLine);
}

TEST(GymHpaTable, ALineOfNamesIsTakenAndBlankOnesPassedOver) {
  std::string names = "date";
  for (const char* name : {"a", "b_c"}) {
    for (const char* field : {"num_pods", "desired_replicas", "cpu_usage", "mem_usage",
                              "traffic_in", "traffic_out", "latency"})
      names += fmt::format(",{}_{}", name, field);
  }
  const Result<GymHpaTable> table =
      ReadGymHpaTable(names + "\r\n\r\n" + std::string(kLine), "o.csv");
  ASSERT_TRUE(table.has_value()) << table.error().message;
  EXPECT_THAT(table->names, ElementsAre("a", "b_c"));
  EXPECT_EQ(table->rows.size(), 1u);
}

TEST(GymHpaTable, MistakesAreNamedByLineAndColumn) {
  const auto message = [](std::string_view text) {
    const Result<GymHpaTable> table = ReadGymHpaTable(text, "o.csv");
    EXPECT_FALSE(table.has_value()) << text;
    return table.has_value() ? "" : table.error().message;
  };
  const std::string good(kLine);
  EXPECT_THAT(message(good + "yesterday" + good.substr(19)),
              HasSubstr("o.csv:2:1: expected a time such as"));
  EXPECT_THAT(message("2022-02-30 12:00:05" + good.substr(19)), HasSubstr("o.csv:1:1"));
  EXPECT_THAT(message("2022-03-01 12:00:05,3.5" + good.substr(21)),
              HasSubstr("o.csv:1:21: `num_pods`: expected a whole number"));
  EXPECT_THAT(message("2022-03-01 12:00:05,3,4,-1" + good.substr(27)),
              HasSubstr("o.csv:1:25: `cpu_usage`"));
  EXPECT_THAT(message("2022-03-01 12:00:05,3,4,nan" + good.substr(27)), HasSubstr("`cpu_usage`"));
  EXPECT_THAT(message(good + good.substr(0, 40) + "\n"),
              HasSubstr("o.csv:2:1: expected 15 columns"));
  EXPECT_THAT(message("2022-03-01 12:00:05,1,2\n"), HasSubstr("78 of Online Boutique or 15"));
  EXPECT_THAT(message("date,a_num_pods,a_desired_replicas,b_cpu_usage,a_mem_usage,a_traffic_in,"
                      "a_traffic_out,a_latency\n"),
              HasSubstr("o.csv:1:36: expected a column of \"a\""));
  EXPECT_THAT(message("date,a_num_pods,a_desired,a_cpu_usage,a_mem_usage,a_traffic_in,"
                      "a_traffic_out,a_latency\n"),
              HasSubstr("expected NAME_desired_replicas"));
  EXPECT_THAT(message(""), HasSubstr("found none"));
}

TEST(GymHpaTable, ResultsHaveARealLatencyAndOneLineOfNames) {
  const GymHpaResult results[] = {{1, 47.456, 1009.31249, -7.7, 1.3}, {2, 40, 3, 0, 0}};
  EXPECT_EQ(GymHpaResultsCsv(results),
            "episode,avg_pods,avg_latency,reward,execution_time\n"
            "1,47.46,1009.3125,-7.70,1.30\n2,40.00,3.0000,0.00,0.00\n");
  EXPECT_EQ(GymHpaRunName("ppo", "online_boutique", 5000),
            "ppo_env_online_boutique_gym_totalSteps_5000");
}

}  // namespace
}  // namespace rudderfish
