// SPDX-License-Identifier: Apache-2.0
#include "evaluation/routing_calibration.h"

#include <gtest/gtest.h>

#include <atomic>

#include "policy/policy_table.h"
#include "tests/support/cloud_regions.h"

namespace rudderfish {
namespace {

RoutingCalibration Calibrated(std::string_view policy, int settings, int threads,
                              const std::atomic<bool>* stop = nullptr) {
  ThreadPool pool(threads);
  return CalibrateRouting(
      "small", testing::CloudRegions(), policy,
      {.variants = {0}, .settings = settings, .episodes = 2, .seed = 3, .stop = stop}, &pool);
}

TEST(RoutingCalibration, MoreSettingsAreNoWorse) {
  const RoutingCalibration few = Calibrated("locality", 2, 2), many = Calibrated("locality", 40, 2);
  EXPECT_GE(many.settings, 40);
  EXPECT_EQ(many.episodes, 8);
  EXPECT_LE(many.finalists[0].means.objective, few.finalists[0].means.objective);
  for (size_t i = 1; i < many.finalists.size(); ++i)
    EXPECT_GE(many.finalists[i].means.objective, many.finalists[i - 1].means.objective);
}

TEST(RoutingCalibration, KeepsALimitByAPriceThatTheObjectiveDoesNotHave) {
  RegionWorld world = *testing::CloudRegions();
  RegionNetwork network = *world.network;
  network.objective.late = network.objective.wait_per_s = 0;
  ThreadPool pool(2);
  const auto best = [&] {
    world.network = std::make_shared<const RegionNetwork>(network);
    return CalibrateRouting("small", std::make_shared<const RegionWorld>(world), "lp",
                            {.variants = {0}, .settings = 60, .episodes = 2, .seed = 3}, &pool)
        .finalists[0];
  };
  const CalibratedRoute free = best();
  network.limits.late_percent = 50 * free.means.late_share;  // Half as many.
  const CalibratedRoute limited = best();
  EXPECT_LE(limited.means.late_share, free.means.late_share / 2);
  EXPECT_GT(limited.means.objective, free.means.objective);
  EXPECT_NE(limited.policy.find("late_price="), std::string::npos);
  EXPECT_EQ(free.policy.find("late_price="), std::string::npos);
}

TEST(RoutingCalibration, DoesNotDependOnThreads) {
  EXPECT_EQ(Calibrated("lp", 10, 1), Calibrated("lp", 10, 2));
}

TEST(RoutingCalibration, CalibratesEveryPolicyOfTheTable) {
  for (const std::string_view policy : PolicyNamesOf(TaskKind::kRoute))
    EXPECT_EQ(Calibrated(policy, 1, 1).finalists[0].policy.find(policy), 0u) << policy;
}

TEST(RoutingCalibration, EndsWithNothingWhereItIsStoppedAtOnce) {
  const std::atomic<bool> stop = true;
  EXPECT_TRUE(Calibrated("lp", 10, 1, &stop).finalists.empty());
}

TEST(RoutingCalibration, ReadsBackWhatItWrote) {
  RoutingCalibration calibration = Calibrated("lp", 4, 1);
  calibration.sha256 = "00ff";
  calibration.edges = {"use"};
  const auto root = ParseYaml(RoutingCalibrationYaml(calibration), "c.yaml");
  EXPECT_EQ(ParseRoutingCalibration(*root).value(), calibration);
}

TEST(RoutingCalibration, RefusesAnotherFormatAndPoliciesThatDoNotRoute) {
  const auto message = [](std::string_view text) {
    return ParseRoutingCalibration(*ParseYaml(text, "c.yaml")).error().message;
  };
  EXPECT_NE(message("rudderfish: scaling-calibration/v1").find("routing-calibration/v1"),
            std::string::npos);
  std::string text = RoutingCalibrationYaml(Calibrated("lp", 1, 1));
  for (size_t at; (at = text.find("lp:")) != std::string::npos;) text.replace(at, 3, "hpa:");
  EXPECT_FALSE(message(text).empty());
}

}  // namespace
}  // namespace rudderfish
