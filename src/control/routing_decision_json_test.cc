// SPDX-License-Identifier: Apache-2.0
#include "control/routing_decision_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rudderfish {
namespace {

TEST(RoutingDecisionJson, ReadsBackWhatItWrites) {
  const double infinite = std::numeric_limits<double>::infinity();
  const RoutingDecision decision{
      .route = "shop",
      .target = "httproute shop/web, rule 0",
      .mode = "shadow",
      .policy = "lp",
      .baseline = "locality",
      .objective = "cost",
      .regions = {{.region = "eu",
                   .now = 0.5,
                   .wanted = 0.9,
                   .allowed = 0.6,
                   .baseline = 0.55,
                   .one_more = {0.1, 0, 0.2, 0.3, 0.4}},
                  {.region = "us",
                   .now = 0.5,
                   .wanted = 0.1,
                   .allowed = 0.4,
                   .baseline = 0.45,
                   .is_healthy = false,
                   .one_more = {0, 0, 0, infinite, 0}}},
      .reasons = {"a share changes by at most 10 points in one step, not by 40"},
      .takes_back = true,
      .gain = 0.25,
      .gain_over_baseline = -0.125,
      .predicted_now_ms = 80,
      .predicted_ms = 70.5,
      .measured_now_ms = 81.25,
      .demand_per_s = 120,
      .request = "PATCH /apis\n\n[]",
      .verdict = {.allowed = true, .reason = ""}};
  const auto read = RoutingDecisionFrom(ToJson(decision), "row 1");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(ToJson(*read), ToJson(decision));
  EXPECT_TRUE(read->takes_back);
  EXPECT_EQ(read->regions[1].region, "us");
  EXPECT_FALSE(read->regions[1].is_healthy);
  EXPECT_TRUE(std::isinf(read->regions[1].one_more[3]));
  EXPECT_EQ(read->gain_over_baseline, -0.125);
  EXPECT_EQ(read->measured_now_ms, 81.25);
}

TEST(RoutingDecisionJson, OfVmsThereAreNoShares) {
  const auto read = RoutingDecisionFrom(
      ToJson(RoutingDecision{.route = "capacity/eu", .capacity = RoutedCapacity{"VM", 2, 9, 4}}),
      "row 1");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(read->capacity.has_value());
  EXPECT_EQ(read->capacity->now, 2);
  EXPECT_EQ(read->capacity->wanted, 9);
  EXPECT_EQ(read->capacity->allowed, 4);
  EXPECT_FALSE(
      RoutingDecisionFrom(ToJson(RoutingDecision{.route = "shop"}), "row 1")->capacity.has_value());
}

TEST(RoutingDecisionJson, KeepsWhatWasNotMeasured) {
  const auto read = RoutingDecisionFrom(ToJson(RoutingDecision{.route = "shop"}), "row 1");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->measured_now_ms.has_value());
  EXPECT_FALSE(read->gain_over_baseline.has_value());
}

TEST(RoutingDecisionJson, NamesWhatIsWrong) {
  const auto read = RoutingDecisionFrom(R"({"route": 5})", "rudderfish.db, row 7");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, ::testing::HasSubstr("rudderfish.db, row 7"));
  EXPECT_THAT(read.error().message, ::testing::HasSubstr("route"));
}

}  // namespace
}  // namespace rudderfish
