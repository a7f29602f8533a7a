// SPDX-License-Identifier: Apache-2.0
#include "learn/scaling_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <regex>
#include <string>

#include "learn/training_worlds.h"
#include "tests/support/small_shop.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What is said of the small shop with something in it replaced; "" if nothing is refused.
std::string SaidOfShop(const std::string& what, const std::string& by, std::vector<int> loads,
                       double late_max = 0.01) {
  const Result<Scenario> scenario =
      ParseScenario(std::regex_replace(testing::kSmallShop, std::regex(what), by), "shop.yaml");
  EXPECT_TRUE(scenario.has_value()) << scenario.error().message;
  const Result<void> checked = CheckLimitCanBeMet(*scenario, loads, late_max);
  return checked ? "" : checked.error().message;
}

// Two pods of web serve 100 requests a second, and 120 come.
TEST(ScalingLimit, TooFewReplicasAreNamedWithTheLoadAndWhatStaysLate) {
  const std::string said = SaidOfShop("web: .replicas: 1 to 10", "web: {replicas: 1 to 2", {0, 1});
  EXPECT_THAT(
      said,
      HasSubstr("small-shop: the load ramp cannot be kept to at most 1 % late or failed: on"));
  EXPECT_THAT(said,
              HasSubstr("% are late or failed with all the pods that there may be, 12 at most, "
                        "at up to 120 requests/s"));
  EXPECT_THAT(said, HasSubstr("raise `load.pods.web.replicas`, 2 at most now, which then are 120 % "
                              "busy, or the limit"));
  EXPECT_EQ(said.find('\n'), said.npos);
  EXPECT_EQ(SaidOfShop("web: .replicas: 1 to 10", "web: {replicas: 1 to 2", {0}), "");
  EXPECT_EQ(SaidOfShop("web: .replicas: 1 to 10", "web: {replicas: 1 to 2", {1}, 0.5), "");
  EXPECT_EQ(SaidOfShop("nothing", "nothing", {0, 1}), "");
}

TEST(ScalingLimit, AQuotaThatIsTooSmallIsNamed) {
  EXPECT_THAT(SaidOfShop("  timeout:", "  quota: {pods: 3}\n  timeout:", {1}),
              HasSubstr("raise `load.quota`, or the limit"));
  EXPECT_EQ(SaidOfShop("  timeout:", "  quota: {pods: 12}\n  timeout:", {1}), "");
}

TEST(ScalingLimit, WhatNoPodsMendIsNamed) {
  EXPECT_THAT(SaidOfShop("qos: 300ms", "qos: 60ms", {0}),
              HasSubstr("where more pods do not help: raise `qos` of the endpoints, or"));
}

// There `qos` changes nothing.
TEST(ScalingLimit, ALimitOfAPercentileIsNamedAsItWasGiven) {
  const std::string said = SaidOfShop("  timeout:", "  limit: {p95: 2ms}\n  timeout:", {0}, 0.05);
  EXPECT_THAT(said, HasSubstr("kept to at most 5 % late or failed (p95 of all at most 2 ms): on"));
  EXPECT_THAT(said, HasSubstr("where more pods do not help: raise the limit"));
  EXPECT_THAT(said, Not(HasSubstr("qos")));
}

// For a second more come than can be served: they wait a little, and are in time.
TEST(ScalingLimit, ABurstThatHardlyAnybodyIsLateForIsNotRefused) {
  const std::string flash =
      "ramp: {flash: {low: 20, high: 108, at: 5m to 6m, rise: 1s, hold: 2s, fall: 1s}}";
  const std::string few = std::regex_replace(
      testing::kSmallShop, std::regex("web: .replicas: 1 to 10"), "web: {replicas: 1 to 2");
  const Result<Scenario> scenario =
      ParseScenario(std::regex_replace(few, std::regex("ramp: .*"), flash), "shop.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const Result<void> checked = CheckLimitCanBeMet(*scenario, {1}, 0.01);
  EXPECT_TRUE(checked.has_value()) << checked.error().message;
}

TEST(ScalingLimit, IsCheckedBeforeTraining) {
  const Result<Scenario> scenario =
      ParseScenario(std::regex_replace(testing::kSmallShop, std::regex("db: .replicas: 1 to 10"),
                                       "db: {replicas: 1"),
                    "shop.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const auto shared = std::make_shared<const Scenario>(*scenario);
  const Result<TrainingWorlds> worlds = TrainingWorlds::Make({{shared}}, 0, 1, ScalingTraining());
  ASSERT_FALSE(worlds.has_value());
  EXPECT_EQ(worlds.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(worlds.error().message, HasSubstr("raise `load.pods.db.replicas`, 1 at most now"));
}

TEST(ScalingLimit, ShippedScenariosCanBeKeptToTheLimitTheyAreTrainedFor) {
  for (const char* name : {"online-boutique", "redis", "edge-pipeline", "web-tier"}) {
    const Result<Scenario> scenario =
        LoadScenario(SourcePath("scenarios/" + std::string(name) + ".yaml"));
    ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
    std::vector<int> loads(scenario->load->loads.size());
    std::iota(loads.begin(), loads.end(), 0);
    const Result<void> checked = CheckLimitCanBeMet(*scenario, loads, 0.01);
    EXPECT_TRUE(checked.has_value()) << checked.error().message;
  }
}

}  // namespace
}  // namespace rudderfish
