// SPDX-License-Identifier: Apache-2.0
#include "evaluation/calibration.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "policy/registry.h"
#include "policy/scaling_policy.h"
#include "sim/scaling_evaluation.h"
#include "tests/support/shop_text.h"

namespace rudderfish {
namespace {

const std::string kOneService = testing::ShopText({
    .name = "one-service",
    .workloads = R"(  web: {requests: {cpu: 500m, memory: 64Mi}, replicas: 2, execution: 40ms})",
    .endpoints = R"(    page: {client: client, rate: 1, qos: 300ms, calls: [web]})",
    .pods = R"(    web: {replicas: 1 to 10, scv: 0.5, start_delay: 10s, balance: least-requests})",
    .loads = R"(    steady: {steady: {rate: 40}}
    ramp: {ramp: {low: 10, high: 90, begin: 1m, end: 8m}})",
});

Calibration Calibrated(const std::vector<std::string>& grid, double violations_max, int threads,
                       uint64_t seed = 1) {
  const Result<Scenario> scenario = ParseScenario(kOneService, "one.yaml");
  ThreadPool pool(threads);
  return CalibrateScaling(*scenario, {0, 1}, grid,
                          {.violations_max = violations_max, .episodes = 16, .seed = seed}, &pool);
}

TEST(Calibration, GridsHaveSoManyDifferentSettingsThatAllCanBeMade) {
  for (const auto& [grid, count] :
       {std::pair{HpaGrid(100), size_t{660}}, std::pair{MpcGrid(), size_t{24}},
        std::pair{StaticGrid(100), size_t{50}}}) {
    EXPECT_EQ(std::set<std::string>(grid.begin(), grid.end()).size(), count);
    EXPECT_EQ(grid.size(), count);
    for (const std::string& setting : grid) {
      EXPECT_TRUE(MakeScalingPolicy(setting).has_value()) << setting;
    }
  }
}

TEST(Calibration, ThePeakIsWhatHardlyAnyIntervalExceeds) {
  const Result<Scenario> scenario = ParseScenario(kOneService, "one.yaml");
  EXPECT_NEAR(PeakPerS(*scenario, {0}, 2, 1), 40, 1e-9);
  const double ramp = PeakPerS(*scenario, {1}, 2, 1), both = PeakPerS(*scenario, {0, 1}, 2, 1);
  EXPECT_GT(ramp, 80);
  EXPECT_LE(ramp, 90);
  EXPECT_GT(both, 80);
  EXPECT_LE(both, ramp);
}

// A large grid is thinned out first; what is best is found nevertheless.
TEST(Calibration, ConstantReplicasAreFoundAsAutoscalersAre) {
  const Result<Scenario> scenario = ParseScenario(kOneService, "one.yaml");
  ThreadPool pool(2);
  const Calibration found =
      CalibrateScaling(*scenario, {0}, StaticGrid(PeakPerS(*scenario, {0}, 16, 1)),
                       {.violations_max = 0.05, .episodes = 16}, &pool);
  EXPECT_EQ(found.kind(), CalibratedKind::kStatic);
  EXPECT_TRUE(found.keeps_limit());
  // The fewest pods there can be would be late too often.
  const Calibration scarce = CalibrateScaling(*scenario, {0}, {"static:rate=1"},
                                              {.violations_max = 0.05, .episodes = 16}, &pool);
  EXPECT_FALSE(scarce.keeps_limit());
  EXPECT_GT(found.finalists[0].core_hours, scarce.finalists[0].core_hours);
}

TEST(Calibration, TakesTheCheapestThatKeepsTheLimit) {
  // Half empty pods serve all in time; full ones are cheaper and late.
  const std::vector<std::string> grid = {"hpa:cpu=95", "keda:share=0.2", "hpa:cpu=40", "hold"};
  const Calibration strict = Calibrated(grid, 0.10, 2);
  EXPECT_EQ(strict.finalists[0].policy, "hpa:cpu=40");
  EXPECT_TRUE(strict.keeps_limit());
  const Calibration lax = Calibrated(grid, 1, 2);
  EXPECT_LT(lax.finalists[0].core_hours, strict.finalists[0].core_hours);
  EXPECT_GT(lax.finalists[0].violation_share, 0.10);
}

TEST(Calibration, TakesTheFewestViolationsWhereNoneKeepsTheLimit) {
  const Calibration calibration = Calibrated({"hold", "hpa:cpu=60", "hpa:cpu=90"}, 0, 2);
  EXPECT_FALSE(calibration.keeps_limit());
  EXPECT_EQ(calibration.finalists[0].policy, "hpa:cpu=60");
}

// More pods than needed do not speed up a request whose own work takes too long.
TEST(Calibration, PaysNothingForWhatIsLateByChance) {
  std::string slow = std::regex_replace(kOneService, std::regex("qos: 300ms"), "qos: 90ms");
  slow = std::regex_replace(slow, std::regex("1 to 10"), "1 to 40");
  const Result<Scenario> scenario = ParseScenario(slow, "slow.yaml");
  ThreadPool pool(2);
  const Calibration found =
      CalibrateScaling(*scenario, {0}, {"keda:share=0.045", "keda:share=0.05", "keda:share=0.9"},
                       {.violations_max = 0.001, .episodes = 16}, &pool);
  SCOPED_TRACE(CalibrationYaml(found));
  EXPECT_FALSE(found.keeps_limit());
  EXPECT_EQ(found.finalists[0].policy, "keda:share=0.05");
  EXPECT_GT(found.finalists[0].violation_error, 0);
  EXPECT_LE(found.finalists[0].violation_share, found.allowed());
  EXPECT_LT(found.allowed(), found.finalists[0].violation_share + 0.001);
}

TEST(Calibration, IsTheSameForAnyNumberOfThreadsAndAnotherForAnotherSeed) {
  const std::vector<std::string> grid = {"hold", "hpa:cpu=60", "keda"};
  const Calibration one = Calibrated(grid, 0.05, 1);
  EXPECT_EQ(one, Calibrated(grid, 0.05, 3));
  EXPECT_NE(one, Calibrated(grid, 0.05, 1, 2));
}

TEST(Calibration, ReadsBackToTheBit) {
  Calibration calibration = Calibrated({"hold", "hpa:cpu=60"}, 0.05, 2);
  calibration.sha256 = "0123";
  const std::string text = CalibrationYaml(calibration);
  const Result<Calibration> back = ParseCalibration(ParseYaml(text, "hpa.yaml").value());
  ASSERT_TRUE(back.has_value()) << back.error().message << text;
  EXPECT_EQ(*back, calibration);
}

TEST(Calibration, FilesThatAreNoneAreRefusedWithTheirPlace) {
  Calibration calibration{.scenario = "s", .settings = 1, .episodes = 16, .finalists = {{"hold"}}};
  const std::string good = CalibrationYaml(calibration);
  const auto refused = [&](std::string_view old, std::string_view now) {
    std::string text = good;
    const size_t at = text.find(old);
    EXPECT_NE(at, text.npos) << old;
    text.replace(at, old.size(), now);
    const Result<YamlNode> root = ParseYaml(text, "hpa.yaml");
    if (!root.has_value()) return root.error().message;
    const Result<Calibration> back = ParseCalibration(*root);
    return back.has_value() ? std::string("accepted") : back.error().message;
  };
  EXPECT_EQ(refused("hold", "hold"), "accepted");
  EXPECT_NE(refused("policy: hold", "policy: hpaa").find("hpaa"), std::string::npos);
  EXPECT_NE(refused("policy: hold", "policy: hpaa").find("hpa.yaml:"), std::string::npos);
  EXPECT_NE(refused("scaling-calibration/v1", "scenario/v1").find("expected \"scaling-calibration"),
            std::string::npos);
  EXPECT_NE(refused("violation_share: 0", "violation_share: 2").find("from 0 to 1"),
            std::string::npos);
  EXPECT_NE(refused("episodes:", "episods:").find("episodes"), std::string::npos);
}

TEST(Calibration, ThatIsStoppedKeepsItsLastCompleteRound) {
  const Result<Scenario> scenario = ParseScenario(kOneService, "one.yaml");
  ThreadPool pool(2);
  const auto stopped_at = [&](double at) {
    std::atomic<bool> stop = false;
    return CalibrateScaling(*scenario, {0}, {"keda:share=0.3", "keda:share=0.9"},
                            {.violations_max = 0.05,
                             .episodes = 16,
                             .progress = [&](double done, std::string_view) { stop = done > at; },
                             .stop = &stop},
                            &pool);
  };
  const Calibration whole = stopped_at(2);
  EXPECT_EQ(whole.episodes, 16);
  const Calibration part = stopped_at(0.75);  // In the last of four rounds.
  EXPECT_EQ(part.episodes, 4);
  EXPECT_EQ(part.finalists.size(), whole.finalists.size());
  EXPECT_TRUE(stopped_at(0).finalists.empty());
}

}  // namespace
}  // namespace rudderfish
