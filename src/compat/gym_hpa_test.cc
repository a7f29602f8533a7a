// SPDX-License-Identifier: Apache-2.0
#include "compat/gym_hpa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "compat/gym_hpa_table.h"
#include "compat/gym_hpa_world.h"

// Numbers worked out by hand from the published description of gym-hpa and graph-gym-hpa. Where a
// test is about a mistake that one of those made, its name says what holds here instead.

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

GymHpaReading Reading(int pods, double cpu_millis, double latency_ms = 10) {
  return {.pods = pods, .cpu_millis = cpu_millis, .latency_ms = latency_ms};
}

TEST(GymHpa, DesiredReplicasWeighCpuAndMemory) {
  const GymHpaDeployment& recommendation = GymHpaApplication::OnlineBoutique().deployments[0];
  EXPECT_EQ(recommendation.cpu_target(), 75);
  EXPECT_EQ(recommendation.memory_target(), 165);
  // ceil(0.7 * ceil(369 / 75) + 0.3 * ceil(2 / 165)) = ceil(3.5 + 0.3).
  EXPECT_EQ(GymHpaDesired(recommendation, 369, 2, 8), 4);
  EXPECT_EQ(GymHpaDesired(recommendation, 0, 0, 8), 1);
  EXPECT_EQ(GymHpaDesired(recommendation, 75, 165, 8), 1);
  EXPECT_EQ(GymHpaDesired(recommendation, 76, 165, 8), 2);  // ceil(1.4 + 0.3).
  EXPECT_EQ(GymHpaDesired(recommendation, 1e9, 1e9, 8), 8);
  const GymHpaDeployment& redis = GymHpaApplication::OnlineBoutique().deployments[7];
  EXPECT_EQ(redis.cpu_target(), 52);
  EXPECT_EQ(redis.memory_target(), 150);
  EXPECT_EQ(GymHpaApplication::Redis().deployments[0].cpu_target(), 187);
}

TEST(GymHpa, DesiredReplicasOfTheGraphGenerationTakeTheLarger) {
  EXPECT_EQ(GymHpaDesiredOfLimits(3, 0.75, 0.2, 1, 8), 3);
  EXPECT_EQ(GymHpaDesiredOfLimits(3, 0.2, 0.9, 1, 8), 4);
  EXPECT_EQ(GymHpaDesiredOfLimits(0, 0.9, 0.9, 2, 8), 2);
  EXPECT_EQ(GymHpaDesiredOfLimits(8, 1.0, 0, 1, 8), 8);
}

TEST(GymHpa, MovesAreThoseOfBothGenerations) {
  EXPECT_EQ(GymHpaPairMove(4, 0), (GymHpaMove{4, 0}));
  EXPECT_EQ(GymHpaPairMove(4, 7), (GymHpaMove{4, 7}));
  EXPECT_EQ(GymHpaPairMove(4, 8), (GymHpaMove{4, -1}));
  EXPECT_EQ(GymHpaPairMove(4, 14), (GymHpaMove{4, -7}));
  EXPECT_EQ(GymHpaFlatMove(0).delta, 0);
  EXPECT_EQ(GymHpaFlatMove(1), (GymHpaMove{0, -3}));
  EXPECT_EQ(GymHpaFlatMove(6), (GymHpaMove{0, 3}));
  EXPECT_EQ(GymHpaFlatMove(66), (GymHpaMove{10, 3}));
  std::set<std::pair<int, int>> all;
  for (int action = 1; action < 67; ++action)
    all.emplace(GymHpaFlatMove(action).deployment, GymHpaFlatMove(action).delta);
  EXPECT_EQ(all.size(), 66u);
}

TEST(GymHpa, CostCountsDeploymentsThatHaveWhatIsDesired) {
  GymHpaReward reward(GymHpaApplication::Redis(), GymHpaGoal::kCost);
  std::vector<GymHpaReading> readings = {{.pods = 3, .desired = 3}, {.pods = 1, .desired = 2}};
  EXPECT_EQ(reward.Of(readings, 0, GymHpaBound::kKept), 1);
  EXPECT_EQ(reward.Of(readings, 0, GymHpaBound::kPassed), -1);
}

TEST(GymHpa, LatencyIsThatOfTheFirstDeploymentUpToACap) {
  GymHpaReward boutique(GymHpaApplication::OnlineBoutique(), GymHpaGoal::kLatency);
  GymHpaReward redis(GymHpaApplication::Redis(), GymHpaGoal::kLatency);
  const std::vector<GymHpaReading> slow = {Reading(1, 0, 1009.312)}, slower = {Reading(1, 0, 1e6)};
  EXPECT_EQ(boutique.Of(slow, 0, GymHpaBound::kKept), -1009.312);
  EXPECT_EQ(boutique.Of(slower, 0, GymHpaBound::kKept), -3000);
  EXPECT_EQ(boutique.Of(slow, 0, GymHpaBound::kPassed), -3000);
  EXPECT_EQ(redis.Of(slow, 0, GymHpaBound::kKept), -250);
  EXPECT_EQ(redis.Of(slow, 0, GymHpaBound::kPassed), -250);
}

TEST(GymHpa, SloDistanceIsADifferenceToTheStepBefore) {
  EXPECT_EQ(GymHpaReward::SloDistance(22, 300), 0.5);
  EXPECT_EQ(GymHpaReward::SloDistance(22, 450), 1.5);
  EXPECT_EQ(GymHpaReward::SloDistance(88, 9000), 3);
  GymHpaReward reward(GymHpaApplication::OnlineBoutique(), GymHpaGoal::kSloDistance);
  const std::vector<GymHpaReading> few = {Reading(11, 0)}, many = {Reading(44, 0)};
  // The first is to 3, as long as nothing was reset.
  EXPECT_DOUBLE_EQ(reward.Of(many, 300, GymHpaBound::kKept), (3 - 1) / 3.);
  EXPECT_DOUBLE_EQ(reward.Of(few, 300, GymHpaBound::kKept), 0.75);
  EXPECT_DOUBLE_EQ(reward.Of(many, 300, GymHpaBound::kPassed), -0.3);  // D' stays:
  EXPECT_DOUBLE_EQ(reward.Of(few, 300, GymHpaBound::kKept), 0);
  EXPECT_DOUBLE_EQ(reward.Of(many, 300, GymHpaBound::kKept), -0.75);
  reward.Reset(few, 600);
  EXPECT_DOUBLE_EQ(reward.Of(few, 300, GymHpaBound::kKept), (2.25 - .25) / 2.25);
  EXPECT_EQ(GymHpaReward(GymHpaApplication::Redis(), GymHpaGoal::kSloDistance, -1)
                .Of(few, 0, GymHpaBound::kPassed),
            -1);
}

TEST(GymHpa, ShareOfPodsIsSeenAsAFraction) {
  const std::vector<GymHpaReading> readings = {{.pods = 3, .desired = 6},
                                               {.pods = 8, .desired = 1}};
  const std::vector<GymHpaShares> shares = {{.5, .25}, {1.5, 0}};
  std::vector<float> values(8);
  GymHpaNodeObservation(readings, shares, 8, values);
  EXPECT_THAT(values, ElementsAre(.5f, .25f, .375f, .75f, 1.5f, 0.f, 1.f, .125f));
}

TEST(GymHpa, ValuesOfOneDeploymentStandTogether) {
  const std::vector<GymHpaReading> readings = {{1, 2, 3, 4, 5, 6, 7}, {11, 12, 13, 14, 15, 16, 17}};
  std::vector<float> values(12);
  GymHpaRawObservation(readings, values);
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16));
}

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

// Rows in which each deployment's pods can be told from its CPU.
GymHpaTable AllPods() {
  GymHpaTable table;
  for (int round = 0; round < 3; ++round) {
    for (int a = 1; a <= 8; ++a) {
      for (int b = 1; b <= 8; ++b) {
        // Twice, so that every state may stay as it is.
        for (int twice = 0; twice < 2; ++twice)
          table.rows.push_back({.readings = {Reading(a, a * 100), Reading(b, b * 100)}});
      }
    }
  }
  return table;
}

TEST(GymHpaWorld, EveryDeploymentChoosesAmongTheRows) {
  const GymHpaTable table = AllPods();
  GymHpaWorld world(&GymHpaApplication::Redis(), &table, {});
  world.Reset(1);
  for (int step = 0; step < 25; ++step) {
    const bool moves = step % 3 == 0;
    const int delta = world.readings()[0].pods < 8 ? 1 : -7;
    world.Step({0, moves ? delta : 0});
    EXPECT_EQ(world.readings()[0].cpu_millis, world.readings()[0].pods * 100) << step;
    // Where rows with a change of the first are few, none may have the pods of the second.
    if (moves) continue;
    EXPECT_EQ(world.readings()[1].cpu_millis, world.readings()[1].pods * 100) << step;
  }
}

TEST(GymHpaWorld, OnlyTheLastDoesAsInTheOriginal) {
  const GymHpaTable table = AllPods();
  GymHpaWorld world(&GymHpaApplication::Redis(), &table, {.sampling = GymHpaSampling::kLast});
  std::set<double> first;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    world.Reset(seed);
    world.Step({0, 0});
    const auto& readings = world.readings();
    EXPECT_EQ(readings[1].cpu_millis, readings[1].pods * 100);
    first.insert(readings[0].cpu_millis - readings[0].pods * 100);
  }
  EXPECT_GT(first.size(), 5u);
}

TEST(GymHpaWorld, RowsWithTheSameChangeComeFirst) {
  GymHpaTable table;  // One pod, then two: CPU tells how the two were reached.
  table.rows = {{.readings = {Reading(1, 1)}},
                {.readings = {Reading(2, 12)}},
                {.readings = {Reading(2, 22)}},
                {.readings = {Reading(1, 21)}}};
  GymHpaApplication one{.name = "one", .deployments = {{"a", 100, 100}}};
  GymHpaWorld world(&one, &table, {});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    world.Reset(seed);
    if (world.readings()[0].pods == 2) world.Step({0, -1});
    world.Step({0, 1});
    EXPECT_EQ(world.readings()[0].cpu_millis, 12);
    world.Step({0, 0});
    EXPECT_EQ(world.readings()[0].cpu_millis, 22);
    world.Step({0, 2});  // No row has four: any.
    EXPECT_EQ(world.readings()[0].pods, 4);
  }
}

TEST(GymHpaWorld, AnEpisodeEndsAfterItsLastStepAndNotBefore) {
  const GymHpaTable table = AllPods();
  GymHpaWorld world(&GymHpaApplication::Redis(), &table, {});
  world.Reset(3);
  for (int step = 1; step <= 25; ++step) EXPECT_EQ(world.Step({}).over, step == 25);
}

TEST(GymHpaWorld, TheFirstMoveCountsAndTheSameSeedRepeats) {
  const GymHpaTable table = AllPods();
  GymHpaWorld world(&GymHpaApplication::Redis(), &table, {});
  std::vector<GymHpaReading> before;
  for (int round = 0; round < 2; ++round) {
    world.Reset(9);
    for (const GymHpaReading& reading : world.readings()) {
      EXPECT_EQ(reading.cpu_millis, reading.pods * 100);  // A row, not noise.
    }
    const int pods = world.readings()[0].pods, delta = pods < 8 ? 1 : -1;
    world.Step({0, delta});
    EXPECT_EQ(world.readings()[0].pods, pods + delta);
    if (round == 1) {
      EXPECT_EQ(world.readings(), before);
    }
    before = world.readings();
  }
}

TEST(GymHpaWorld, AMoveBeyondABoundIsNotMadeAndCanBeToldBefore) {
  const GymHpaTable table = AllPods();
  GymHpaWorld world(&GymHpaApplication::Redis(), &table, {});
  world.Reset(2);
  const int pods = world.readings()[0].pods;
  EXPECT_FALSE(world.IsLegal({0, 8}));
  const GymHpaStep step = world.Step({0, 8});
  EXPECT_TRUE(step.beyond_bound);
  EXPECT_EQ(step.reward, -1);
  EXPECT_EQ(world.readings()[0].pods, pods);
  EXPECT_TRUE(world.IsLegal({0, 0}));
}

TEST(GymHpa, ResultsHaveARealLatencyAndOneLineOfNames) {
  const GymHpaResult results[] = {{1, 47.456, 1009.31249, -7.7, 1.3}, {2, 40, 3, 0, 0}};
  EXPECT_EQ(GymHpaResultsCsv(results),
            "episode,avg_pods,avg_latency,reward,execution_time\n"
            "1,47.46,1009.3125,-7.70,1.30\n2,40.00,3.0000,0.00,0.00\n");
  EXPECT_EQ(GymHpaRunName("ppo", "online_boutique", 5000),
            "ppo_env_online_boutique_gym_totalSteps_5000");
}

}  // namespace
}  // namespace rudderfish
