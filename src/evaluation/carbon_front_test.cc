// SPDX-License-Identifier: Apache-2.0
#include "evaluation/carbon_front.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/small_regions.h"

namespace rudderfish {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

TEST(Hypervolume, IsTheShareOfTheAreaThatPointsDominate) {
  const CostPair ideal{0, 0}, reference{10, 10};
  EXPECT_THAT(Hypervolume({}, ideal, reference), DoubleEq(0));
  const CostPair best[] = {{0, 0}};
  EXPECT_THAT(Hypervolume(best, ideal, reference), DoubleEq(1));
  // Two steps: (10 - 2) x (10 - 6) and (10 - 5) x (6 - 3). A dominated point, one on the edge and
  // one beyond the reference add nothing; nor does order.
  const CostPair steps[] = {{5, 3}, {2, 6}, {6, 7}, {10, 1}, {1, 12}};
  EXPECT_THAT(Hypervolume(steps, ideal, reference), DoubleEq(0.47));
}

// Two policies in two episodes: nodes, carbon and grams of a request.
RoutingEvaluation TwoPolicies(double cost_of_second, double carbon) {
  RoutingEvaluation evaluation{.scenario = "x", .episodes = 2};
  evaluation.variants = {"spot"};
  evaluation.policies = {"lp", "mpc"};
  evaluation.foresees = {false, false};
  evaluation.first_member = {0, 1, 2};
  for (const double cost : {1.0, cost_of_second}) {
    for (const double episode : {-0.1, 0.1}) {
      RoutingFigures one{.requests = 100, .nodes = 100 * (cost + episode), .carbon = 5};
      one.carbon_kg = 100 * carbon / 1e9 * cost;
      one.dollars = 100 * 1e-6 * cost;
      one.late_requests = 1;
      evaluation.figures.push_back(one);
    }
  }
  return evaluation;
}

RegionNetwork PricedAt(double carbon_per_kg) {
  RegionNetwork network = testing::SmallRegions();
  network.objective.carbon_per_kg = carbon_per_kg;
  return network;
}

std::vector<PolicyFront> Fronts() {
  std::vector<PolicyFront> fronts;
  // The dearer weight first: points are in the order of weights nevertheless.
  const Json dear = Json::parse(FrontPointsJson(TwoPolicies(0.9, 20), PricedAt(6)).dump()),
             free = Json::parse(FrontPointsJson(TwoPolicies(0.8, 30), PricedAt(0)).dump());
  EXPECT_TRUE(AddFrontPoints(dear, "dear.json", "carbon-6", &fronts).has_value());
  EXPECT_TRUE(AddFrontPoints(free, "free.json", "carbon-0", &fronts).has_value());
  return fronts;
}

TEST(CarbonFront, PointsHaveTheCostWithoutCarbonAndGramsOfAMillion) {
  const std::vector<PolicyFront> fronts = Fronts();
  ASSERT_EQ(fronts.size(), 2);
  ASSERT_EQ(fronts[1].points.size(), 2);
  EXPECT_EQ(fronts[1].policy, "mpc");
  EXPECT_EQ(fronts[1].points[0].variant, "carbon-0");
  EXPECT_THAT(fronts[1].points[0].cost.values,
              ::testing::ElementsAre(DoubleNear(0.7, 1e-12), DoubleNear(0.9, 1e-12)));
  EXPECT_THAT(fronts[1].points[0].carbon.values[0], DoubleNear(24, 1e-9));
  EXPECT_THAT(fronts[1].points[1].carbon.values[0], DoubleNear(18, 1e-9));
  EXPECT_THAT(fronts[1].points[1].late_percent, DoubleNear(1, 1e-12));
  EXPECT_THAT(fronts[1].points[0].dollars_per_million, DoubleNear(0.8, 1e-9));
}

TEST(CarbonFront, TheBetterPolicyHasTheLargerHypervolume) {
  const OrderedJson front = FrontJson(Fronts(), 1);
  const OrderedJson &lp = front["policies"][0], &mpc = front["policies"][1];
  // Corners: cost 0.8 to 1.0 and a tenth of that, carbon 18 to 30 and a tenth.
  EXPECT_THAT(front["reference"]["cost"].get<double>(), DoubleNear(1.02, 1e-9));
  EXPECT_THAT(front["reference"]["carbon_g_per_million"].get<double>(), DoubleNear(31.2, 1e-9));
  // (1.02 - 0.8) x (31.2 - 24) + (1.02 - 0.9) x (24 - 18), of 0.22 x 13.2.
  EXPECT_THAT(mpc["hypervolume"].get<double>(),
              DoubleNear((0.22 * 7.2 + 0.12 * 6) / (0.22 * 13.2), 1e-9));
  EXPECT_THAT(lp["hypervolume"].get<double>(), DoubleNear(0.02 * 11.2 / (0.22 * 13.2), 1e-9));
  EXPECT_GT(lp["difference"].get<double>(), 0.5);
  EXPECT_TRUE(lp["better"].is_null());  // Of two episodes nothing may be said.
  EXPECT_FALSE(mpc.contains("difference"));
  EXPECT_TRUE(mpc["points"][0]["on_front"].get<bool>());
  EXPECT_FALSE(lp["points"][0]["on_front"].get<bool>());
  // 0.1 units a request more for 6 g of a million requests less.
  const double unit = testing::SmallRegions().unit_dollars();
  EXPECT_THAT(mpc["points"][1]["paid_dollars_per_ton"].get<double>(),
              DoubleNear(0.1 * unit / 6 * 1e12, 1e-3));
  EXPECT_THAT(mpc["points"][1]["dollars_per_ton"].get<double>(), DoubleNear(6000, 1e-9));
  EXPECT_TRUE(mpc["points"][0]["paid_dollars_per_ton"].is_null());
  EXPECT_THAT(FrontTable(front), HasSubstr("6000               0.9000"));
}

TEST(CarbonFront, RefusesPointsOfOtherPolicies) {
  std::vector<PolicyFront> fronts = Fronts();
  RoutingEvaluation other = TwoPolicies(0.5, 10);
  other.policies = {"lp", "cheapest"};
  const Json points = Json::parse(FrontPointsJson(other, PricedAt(2)).dump());
  const Result<void> added = AddFrontPoints(points, "front.json", "carbon-2", &fronts);
  ASSERT_FALSE(added.has_value());
  EXPECT_THAT(added.error().message, HasSubstr("expected \"mpc\""));
}

}  // namespace
}  // namespace rudderfish
