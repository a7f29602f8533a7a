// SPDX-License-Identifier: Apache-2.0
#include "evaluation/scaling_difference.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "evaluation/calibration.h"
#include "evaluation/scaling_summary.h"
#include "policy/registry.h"
#include "sim/scaling_evaluation.h"
#include "sim/scaling_run.h"
#include "tests/support/shop_text.h"
#include "tests/support/split_replay.h"

namespace rudderfish {
namespace {

const std::string kScalingScenario = testing::ShopText({
    .workloads = R"(  web: {requests: {cpu: 500m, memory: 64Mi}, replicas: 2, execution: 40ms}
  db: {requests: {cpu: 1, memory: 64Mi}, replicas: 2, execution: 25ms})",
    .endpoints =
        R"(    page: {client: client, rate: 1, qos: 300ms, calls: [{web: {calls: [db]}}]})",
    .duration = "20m",
    .pods =
        R"(    web: {replicas: 1 to 10, scv: 0.5, start_delay: 10s to 20s, balance: least-requests}
    db: {replicas: 1 to 10, scv: 0.5, start_delay: 10s to 20s, balance: least-requests})",
    .loads = R"(    steady: {steady: {rate: 20}}
    ramp: {ramp: {low: 10, high: 120, begin: 2m, end: 15m}})",
});

std::vector<NamedScalingPolicy> ScalingPoliciesNamed(std::initializer_list<const char*> names) {
  std::vector<NamedScalingPolicy> policies;
  for (const char* name : names) policies.push_back({name, {*MakeScalingPolicy(name)}});
  return policies;
}

TEST(ScalingRun, FollowingALoadThatGrowsBeatsHolding) {
  const Result<Scenario> scenario = ParseScenario(kScalingScenario, "shop.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  ThreadPool pool(2);
  const auto policies = ScalingPoliciesNamed({"hold", "hpa:cpu=60", "keda", "autopilot"});
  const ScalingEvaluation evaluation =
      EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {0, 1}, policies, 4, 1, &pool, {});
  for (int i = 0; i < 4; ++i) {
    const ScalingFigures& hold = evaluation.at(1, 0, i);
    const double pods = hold.pod_hours * 3;  // Of a third of an hour.
    EXPECT_NEAR(pods, std::round(pods), 1e-9);
    EXPECT_EQ(hold.changes, 0);
    EXPECT_GT(hold.violation_share(), .5);  // 120 requests per second for room for 50.
    for (int policy = 1; policy < 4; ++policy) {
      const ScalingFigures& one = evaluation.at(1, policy, i);
      EXPECT_EQ(one.requests, hold.requests);
      EXPECT_LT(one.violation_share(), .2) << evaluation.policies[policy].name;
      EXPECT_GT(one.core_hours, hold.core_hours);
      EXPECT_GT(one.changes, 4);
      // Under the steady load, less than what was there is enough.
      EXPECT_LT(evaluation.at(0, policy, i).core_hours, 1.02) << evaluation.policies[policy].name;
    }
  }
  const ScalingDifference difference = CompareScaling(evaluation, 1, 1, 0);
  EXPECT_LT(difference.violation_share_ci95.high, -.3);
  EXPECT_EQ(difference.FindingOn(kEpisodesForFinding), Finding::kWorse);  // It is dearer.
}

// Idle power follows from the number of nodes, power for computing from what the requests take,
// whichever pods serve them.
TEST(ScalingRun, CountsNodesAndWhatTheyDraw) {
  std::string text = std::regex_replace(
      kScalingScenario, std::regex("bandwidth: 1Gbit"),
      "bandwidth: 1Gbit, power: {idle_watts: 60, busy_watts: 100, asleep_watts: 3}");
  text = std::regex_replace(text, std::regex("count: 4, cpu: 16"), "count: 4, cpu: 2");
  const Result<Scenario> scenario = ParseScenario(text, "shop.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  ThreadPool pool(1);
  const auto policies = ScalingPoliciesNamed({"hold", "static:rate=60"});
  for (const ScalingGround ground : {ScalingGround::kRequests, ScalingGround::kModel}) {
    const ScalingEvaluation evaluation =
        EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {0}, policies, 1, 1, &pool, {}, ground);
    const ScalingFigures& hold = evaluation.at(0, 0, 0);
    const double hours = 1.0 / 3;
    const double nodes = hold.node_hours / hours;
    EXPECT_NEAR(nodes, std::round(nodes), 1e-9);
    EXPECT_GE(nodes * 2, hold.core_hours / hours - 1e-9);
    // 20 requests a second, each 40 ms of half a core and 25 ms of one.
    const double used_cores = 20 * (0.04 * 0.5 + 0.025);
    const double watts = nodes * 60 + (4 - nodes) * 3 + used_cores * (100 - 60) / 2;
    EXPECT_NEAR(hold.energy_wh, watts * hours, 0.02 * watts * hours);
    // More pods need more nodes, and compute the same.
    const ScalingFigures& more = evaluation.at(0, 1, 0);
    EXPECT_GT(more.node_hours, hold.node_hours);
    EXPECT_NEAR(more.energy_wh - hold.energy_wh, (more.node_hours - hold.node_hours) * 57,
                0.02 * more.energy_wh);
    EXPECT_TRUE(Summarize(evaluation, *scenario).draws_power());
  }
}

// A percentile is within a time where no more than the rest are later.
TEST(ScalingRun, ALimitOnAPercentileIsOneOnLateRequests) {
  ThreadPool pool(1);
  const auto policies = ScalingPoliciesNamed({"hpa:cpu=70"});
  for (const double limit_ms : {95.0, 110.0, 125.0, 150.0, 180.0}) {
    const Result<Scenario> scenario =
        ParseScenario(std::regex_replace(
                          kScalingScenario, std::regex("  pods:"),
                          fmt::format("  limit: {{p95: {}ms, endpoint: page}}\n  pods:", limit_ms)),
                      "shop.yaml");
    ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
    const ScalingEvaluation evaluation =
        EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {0}, policies, 1, 1, &pool, {});
    const ScalingFigures& figures = evaluation.at(0, 0, 0);
    EXPECT_EQ(figures.p95_ms <= limit_ms, figures.violation_share() <= LateMaxOf(*scenario))
        << limit_ms << " ms: p95 is " << figures.p95_ms << " ms";
    EXPECT_EQ(Summarize(evaluation, *scenario).qos_high_ms, limit_ms);
  }
}

TEST(ScalingRun, AReplayIsJudgedByWhatNothingWasCalibratedOn) {
  const auto scenario = testing::SplitReplay(
      std::regex_replace(kScalingScenario, std::regex("ramp: .*"),
                         "replay: {replay: {format: azure-llm, file: none.csv}}"),
      5, 40);
  ThreadPool pool(1);
  const auto policies = ScalingPoliciesNamed({"hold"});
  const double seconds = 1200;
  const ScalingEvaluation judged =
      EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {1}, policies, 3, 1, &pool, {});
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(judged.at(0, 0, i).requests / seconds, 40, 2);
  const ScalingEvaluation learned =
      EvaluateScaling(*scenario, EpisodeUse::kLearning, {1}, policies, 1, 1, &pool, {});
  EXPECT_NEAR(learned.at(0, 0, 0).requests / seconds, 5, .5);
  EXPECT_NEAR(PeakPerS(*scenario, {1}, 4, 1), 5, 1e-9);
  const ScalingSummary summary = Summarize(judged, *scenario);
  EXPECT_EQ(HeldOutText(summary.loads[0]),
            "episodes are from 50 to 100 % of the trace, held out from learning and calibration");
  const Result<Json> json = ParseJson(ScalingSummaryText(summary), "e.json");
  ASSERT_TRUE(json.has_value());
  const Result<ScalingSummary> read = ScalingSummaryOf(*json, "e.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->loads[0].trace_from, .5);
  // Of other loads both draw the same.
  EXPECT_EQ(DrawCurve(*scenario->load, EpisodeUse::kLearning, 0, 7),
            DrawCurve(*scenario->load, EpisodeUse::kEvaluation, 0, 7));
  EXPECT_EQ(HeldOutText({.load = "steady"}), "");
}

TEST(ScalingRun, EpisodesBeginWithPodsThatFit) {
  const Result<Scenario> scenario = ParseScenario(kScalingScenario, "shop.yaml");
  ASSERT_TRUE(scenario.has_value());
  ThreadPool pool(2);
  const ScalingEvaluation evaluation = EvaluateScaling(
      *scenario, EpisodeUse::kEvaluation, {0}, ScalingPoliciesNamed({"hold"}), 4, 1, &pool, {});
  const ScalingSums sums = SumsOf(evaluation, 0);
  EXPECT_LT(sums.violation_share, 0.02);  // Those of the rung: 1 % at most in equilibrium.
  EXPECT_LE(sums.core_hours, 1);          // Two of each, or fewer.
}

TEST(ScalingRun, LaterEpisodesAreThoseOfALongerEvaluation) {
  const Result<Scenario> scenario = ParseScenario(kScalingScenario, "shop.yaml");
  ASSERT_TRUE(scenario.has_value());
  ThreadPool pool(2);
  const auto policies = ScalingPoliciesNamed({"hpa:cpu=50", "hold"});
  for (const ScalingGround ground : {ScalingGround::kRequests, ScalingGround::kModel}) {
    const ScalingEvaluation whole =
        EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {1}, policies, 3, 1, &pool, {}, ground);
    const ScalingEvaluation rest = EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {1},
                                                   policies, 2, 1, &pool, {}, ground, 1);
    for (int policy = 0; policy < 2; ++policy) {
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(rest.at(0, policy, i).core_hours, whole.at(0, policy, i + 1).core_hours);
        EXPECT_EQ(rest.at(0, policy, i).requests, whole.at(0, policy, i + 1).requests);
      }
    }
  }
}

TEST(ScalingRun, QuotaAndCoolDownHoldForEveryPolicy) {
  std::string text = kScalingScenario;
  text.replace(text.find("  pods:\n"), 8, "  quota: {cpu: 4, pods: 5}\n  cool_down: 2m\n  pods:\n");
  const Result<Scenario> scenario = ParseScenario(text, "shop.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  ThreadPool pool(2);
  const auto policies = ScalingPoliciesNamed({"hpa:cpu=30", "mpc"});
  for (const ScalingGround ground : {ScalingGround::kRequests, ScalingGround::kModel}) {
    const ScalingEvaluation evaluation =
        EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {1}, policies, 2, 1, &pool, {}, ground);
    for (int policy = 0; policy < 2; ++policy) {
      const ScalingFigures& one = evaluation.at(0, policy, 0);
      EXPECT_LT(one.core_hours, 4.0 / 3);  // Of a third of an hour.
      EXPECT_LE(one.pod_hours, 5.0 / 3);
      EXPECT_GT(one.pod_hours, 3.0 / 3);   // It scales all the same,
      EXPECT_LE(one.changes, 2 * 20 / 2);  // two workloads at a time, every two minutes.
      EXPECT_GT(one.violation_share(), .2);
    }
  }
}

TEST(ScalingRun, TheModelIsNearTheEventSimulator) {
  const Result<Scenario> scenario = ParseScenario(kScalingScenario, "shop.yaml");
  ASSERT_TRUE(scenario.has_value());
  ThreadPool pool(2);
  const auto policies = ScalingPoliciesNamed({"hpa:cpu=50,down=60s", "keda:share=0.5"});
  const ScalingEvaluation requests = EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {1},
                                                     policies, 4, 1, &pool, {}),
                          model = EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {1}, policies,
                                                  4, 1, &pool, {}, ScalingGround::kModel);
  for (int policy = 0; policy < 2; ++policy) {
    const ScalingSums real = SumsOf(requests, policy), believed = SumsOf(model, policy);
    EXPECT_NEAR(believed.core_hours, real.core_hours, 0.05 * real.core_hours);
    EXPECT_NEAR(believed.violation_share, real.violation_share, 0.03);
  }
}

TEST(ScalingRun, MembersOfARecipeAreAveragedAndComparedInPairs) {
  const Result<Scenario> scenario = ParseScenario(kScalingScenario, "shop.yaml");
  ASSERT_TRUE(scenario.has_value());
  ThreadPool pool(2);
  std::vector<NamedScalingPolicy> policies = ScalingPoliciesNamed({"hpa:cpu=40", "hpa:cpu=70"});
  policies.push_back({"both", {policies[0].members[0], policies[1].members[0]}});
  const ScalingEvaluation evaluation = EvaluateScaling(
      *scenario, EpisodeUse::kEvaluation, {1}, policies, 6, 1, &pool, {}, ScalingGround::kModel);
  for (int i = 0; i < 6; ++i) {
    for (int member = 0; member < 2; ++member)
      EXPECT_EQ(evaluation.at(0, 2, i, member).core_hours, evaluation.at(0, member, i).core_hours);
  }
  EXPECT_NEAR(SumsOf(evaluation, 2).core_hours,
              (SumsOf(evaluation, 0).core_hours + SumsOf(evaluation, 1).core_hours) / 2, 1e-9);
  const ScalingDifference against_first = CompareScaling(evaluation, 0, 2, 0);
  const ScalingDifference other = CompareScaling(evaluation, 0, 1, 0);
  EXPECT_NEAR(against_first.core_hours, other.core_hours / 2, 1e-9);
}

TEST(ScalingRun, LookAheadIsCheaperThanRulesAndForeknowledgeNoDearer) {
  const Result<Scenario> scenario = ParseScenario(kScalingScenario, "shop.yaml");
  ASSERT_TRUE(scenario.has_value());
  ThreadPool pool(2);
  const auto policies =
      ScalingPoliciesNamed({"hpa:cpu=60", "static", "mpc:price=2", "clairvoyant:price=2"});
  const ScalingEvaluation evaluation =
      EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {1}, policies, 4, 1, &pool, {});
  double worth[4] = {};  // Core-hours, violations priced as look-ahead does.
  for (int policy = 0; policy < 4; ++policy) {
    for (int i = 0; i < 4; ++i) {
      const ScalingFigures& one = evaluation.at(0, policy, i);
      worth[policy] += one.core_hours + 2 * static_cast<double>(one.violations) / 3600;
    }
  }
  EXPECT_LT(worth[2], worth[0]);
  EXPECT_LT(worth[2], worth[1]);
  EXPECT_LT(worth[3], worth[2]);
}

TEST(ScalingRun, DoesNotDependOnThreadsNorOnOtherPolicies) {
  const Result<Scenario> scenario = ParseScenario(kScalingScenario, "shop.yaml");
  ASSERT_TRUE(scenario.has_value());
  ThreadPool one(1), three(3);
  const ScalingEvaluation a = EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {1},
                                              ScalingPoliciesNamed({"hpa"}), 3, 7, &one, {});
  const ScalingEvaluation b =
      EvaluateScaling(*scenario, EpisodeUse::kEvaluation, {1},
                      ScalingPoliciesNamed({"hold", "hpa"}), 3, 7, &three, {});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(a.at(0, 0, i).pod_hours, b.at(0, 1, i).pod_hours);
    EXPECT_EQ(a.at(0, 0, i).mean_ms, b.at(0, 1, i).mean_ms);
    EXPECT_EQ(a.at(0, 0, i).requests, b.at(0, 0, i).requests);
  }
  EXPECT_NE(a.at(0, 0, 0).requests, a.at(0, 0, 1).requests);
}

}  // namespace
}  // namespace rudderfish
