// SPDX-License-Identifier: Apache-2.0
#include "task/reward_presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish::presets {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> Pods(std::initializer_list<double> pods) { return pods; }

TEST(EnergyEfficientReward, CountsUnusedWorkersInTenths) {
  EXPECT_EQ(EnergyEfficient(Pods({4, 0, 0}), 0, 1), (Reward{6, false}));
  EXPECT_EQ(EnergyEfficient(Pods({4, 1, 0}), 0, 1), (Reward{3, false}));
  EXPECT_EQ(EnergyEfficient(Pods({4, 1, 1}), 0, 1), (Reward{0, false}));
  EXPECT_EQ(EnergyEfficient(Pods({0, 0, 0}), 2, 1), (Reward{10, false}));
  // With the threshold of the code, a worker with four pods counts as unused.
  EXPECT_EQ(EnergyEfficient(Pods({4, 3, 2}), 0, 5), (Reward{10, false}));
  EXPECT_EQ(EnergyEfficient(Pods({9, 5, 2}), 0, 5), (Reward{3, false}));
}

TEST(EnergyEfficientReward, EndsUnlessTheFirstFullestIsChosen) {
  EXPECT_EQ(EnergyEfficient(Pods({1, 4, 4}), 0, 1), (Reward{0, true}));
  EXPECT_EQ(EnergyEfficient(Pods({1, 4, 4}), 2, 1), (Reward{0, true}));
  EXPECT_FALSE(EnergyEfficient(Pods({1, 4, 4}), 1, 1).terminated);
}

TEST(LoadBalancingReward, IsTenForTheEmptiestAndEndsAtTheFullest) {
  EXPECT_EQ(LoadBalancing(Pods({2, 1, 5}), 1), (Reward{10, false}));
  EXPECT_EQ(LoadBalancing(Pods({2, 1, 5}), 0), (Reward{0, false}));
  EXPECT_EQ(LoadBalancing(Pods({2, 1, 5}), 2), (Reward{-1, true}));
  EXPECT_EQ(LoadBalancing(Pods({1, 1, 5}), 1), (Reward{0, false}));  // Not the first of them.
  EXPECT_EQ(LoadBalancing(Pods({3, 3, 3}), 0), (Reward{10, true}));
  EXPECT_EQ(LoadBalancing(Pods({3, 3, 3}), 1), (Reward{0, false}));
}

TEST(LeastConnectionsReward, IsOneLessFewestOverMost) {
  EXPECT_EQ(LeastConnections(Pods({20, 5, 10}), 1), (Reward{0.75, false}));
  EXPECT_EQ(LeastConnections(Pods({20, 5, 10}), 2), (Reward{0.75, true}));
  EXPECT_EQ(LeastConnections(Pods({0, 0}), 0), (Reward{0, false}));
  EXPECT_EQ(LeastConnections(Pods({1, 0}), 1), (Reward{1, false}));
}

TEST(EnergyAndLatencyReward, IsThatOfTheThesis) {
  const EnergyLatency rule{.nodes = 4, .threshold = 5};
  const LatencyLimits limits{.soft_ms = 20, .hard_ms = 30};
  // One worker on, 30 pods, latency within the soft limit: 0.75 + 0.6 + 1.
  EXPECT_EQ(EnergyAndLatency(rule, Pods({30, 0, 0}), 20, limits), (Reward{2.35, false}));
  EXPECT_EQ(EnergyAndLatency(rule, Pods({30, 0, 0}), 25, limits), (Reward{1.85, false}));
  EXPECT_EQ(EnergyAndLatency(rule, Pods({30, 0, 0}), 30.5, limits), (Reward{1.35, true}));
  EXPECT_EQ(EnergyAndLatency(rule, Pods({30, 0, 0}), 5, {}), (Reward{1.35, true}));
  EXPECT_EQ(EnergyAndLatency(rule, Pods({0, 0, 0}), 5, limits), (Reward{2, false}));  // 1 + 0 + 1.
  EXPECT_EQ(EnergyAndLatency(rule, Pods({50, 0, 0}), 5, limits), (Reward{2.75, false}));
  EXPECT_EQ(EnergyAndLatency(rule, Pods({100, 0, 0}), 5, limits), (Reward{3.75, false}));
  EXPECT_EQ(EnergyAndLatency(rule, Pods({10, 10, 10}), 5, limits).reward, 0.25 + 0.2 + 1);
  // Five pods are not yet on with its code's threshold; in its text one is.
  EXPECT_EQ(EnergyAndLatency(rule, Pods({5, 0, 0}), 5, limits).reward, 2);
  EXPECT_EQ(EnergyAndLatency({4, 0}, Pods({5, 0, 0}), 5, limits).reward, 0.75 + 0.1 + 1);
}

TEST(DrsReward, OfTheCodeIsMinusThreeHundredAtWorst) {
  const DrsRow full = {100, 100, 100, 100, 100, 100}, empty = {};
  EXPECT_DOUBLE_EQ(DrsCodeReward(std::vector<DrsRow>{full, full, empty, empty}), -300);
  EXPECT_DOUBLE_EQ(DrsCodeReward(std::vector<DrsRow>{full, full, full, full}), 0);
  const DrsRow cpu = {40, 0, 0, 0, 0, 0};
  EXPECT_DOUBLE_EQ(DrsCodeReward(std::vector<DrsRow>{cpu, empty}), -20);
}

TEST(DrsReward, OfThePaperAddsUtilisation) {
  const DrsRow full = {100, 100, 100, 100, 100, 100}, empty = {};
  const std::vector<DrsRow> half = {full, full, empty, empty};
  EXPECT_DOUBLE_EQ(DrsPaperReward(half, {}), 0.5 - 6 * 0.5);
  EXPECT_DOUBLE_EQ(DrsPaperReward(half, {.alpha = 2, .beta = 0}), 1);
  EXPECT_DOUBLE_EQ(DrsPaperReward(half, {.alpha = 0, .beta = 2}), -6);
  // Means of 20, 0, ... and deviations of 20, 0, ...
  EXPECT_DOUBLE_EQ(DrsPaperReward(std::vector<DrsRow>{{40}, {0}}, {}), 0.2 / 6 - 0.2);
  EXPECT_DOUBLE_EQ(DrsPaperReward(half, {.alpha = 0, .beta = 1, .weight = {1, 0.5, 0, 0, 0, 0}}),
                   -0.75);
}

TEST(DrsObservation, IsNormalisedAsInItsCode) {
  EXPECT_THAT(Normalised({10, 55.555, 20, 4, 5120, 1}), ElementsAre(40, 55.56, 50, 10, 50, 0.01));
  EXPECT_THAT(Normalised({30, 30, 41, 400, 20480, 99999}),
              ElementsAre(100, 30, 100, 100, 100, 100));
}

TEST(DrsObservation, KnowsItsThreeApplicationsByName) {
  EXPECT_EQ(DrsProfileOf("app-video-7"), (DrsRow{100, 23, 11.25, 2.49, 0, 1.54}));
  EXPECT_EQ(DrsProfileOf("app-net"), (DrsRow{54, 46.2, 80.04, 71.4, 0, 1.58}));
  EXPECT_EQ(DrsProfileOf("app-disk"), (DrsRow{100, 22.96, 12.6, 2.73, 0, 86.26}));
  EXPECT_EQ(DrsProfileOf("nginx"), DrsRow{});
}

TEST(DqnSettings, AreThosePublished) {
  const DqnSettings thesis = *DqnSettingsNamed("thesis");
  EXPECT_EQ(thesis.learning_rate, 2.5e-3);
  EXPECT_EQ(thesis.hidden, (std::array<int, 2>{120, 84}));
  EXPECT_EQ(thesis.exploration_fraction * static_cast<double>(thesis.total_steps), 600);
  EXPECT_EQ(thesis.total_steps, 2000);
  EXPECT_EQ(thesis.buffer, 10'000);
  EXPECT_EQ(thesis.batch, 128);
  EXPECT_EQ(thesis.learning_starts, 300);
  EXPECT_EQ(thesis.train_frequency, 10);
  EXPECT_EQ(thesis.gamma, 0.99);
  EXPECT_EQ(thesis.target_copy_steps, 500);
  EXPECT_EQ(thesis.epsilon_start, 1);
  EXPECT_EQ(thesis.epsilon_end, 0.05);
  const DqnSettings drs = *DqnSettingsNamed("drs");
  EXPECT_EQ(drs.gamma, 0.9);
  EXPECT_EQ(drs.total_steps, 0);
  EXPECT_EQ(drs.learning_rate, 0.01);
  EXPECT_EQ(drs.buffer, 100);
  EXPECT_EQ(drs.batch, 32);
  EXPECT_EQ(drs.learning_starts, 100);
  EXPECT_EQ(drs.train_frequency, 1);
  EXPECT_EQ(drs.target_copy_steps, 100);
  EXPECT_EQ(drs.epsilon_start, 0.1);
  EXPECT_EQ(drs.epsilon_end, 0.1);
  EXPECT_EQ(drs.exploration_fraction, 0);
  EXPECT_EQ(drs.hidden, (std::array<int, 2>{50, 0}));
  EXPECT_THAT(DqnSettingsNamed("thesys").error().message, HasSubstr("did you mean `thesis`?"));
}

}  // namespace
}  // namespace rudderfish::presets
