// SPDX-License-Identifier: Apache-2.0
#include "task/gym_hpa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// Numbers worked out by hand from the published description of gym-hpa and graph-gym-hpa. Where a
// test is about a mistake that one of those made, its name says what holds here instead.

namespace rudderfish {
namespace {

using ::testing::ElementsAre;

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

TEST(GymHpa, DeploymentsRequestWhatWasPublished) {
  using Row = std::tuple<std::string, int, int>;
  const auto rows_of = [](const GymHpaApplication& application) {
    std::vector<Row> rows;
    for (const GymHpaDeployment& one : application.deployments)
      rows.emplace_back(one.name, one.cpu_request_millis, one.memory_request_mib);
    return rows;
  };
  EXPECT_THAT(rows_of(GymHpaApplication::OnlineBoutique()),
              ElementsAre(Row{"recommendationservice", 100, 220},
                          Row{"productcatalogservice", 100, 64}, Row{"cartservice", 200, 64},
                          Row{"adservice", 200, 180}, Row{"paymentservice", 100, 64},
                          Row{"shippingservice", 100, 64}, Row{"currencyservice", 100, 64},
                          Row{"redis-cart", 70, 200}, Row{"checkoutservice", 100, 64},
                          Row{"frontend", 100, 64}, Row{"emailservice", 100, 64}));
  EXPECT_THAT(rows_of(GymHpaApplication::Redis()),
              ElementsAre(Row{"redis-leader", 250, 250}, Row{"redis-follower", 250, 250}));
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

}  // namespace
}  // namespace rudderfish
