// SPDX-License-Identifier: Apache-2.0
#include "evaluation/placement_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "policy/registry.h"
#include "tests/support/small_arrivals.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Scenario> CostWorld() {
  Scenario scenario = *testing::ArrivalsScenario(R"(
  streams:
    - {workloads: {web: 3, batch: 1}, interval: {exponential: 5s},
        lifetime: {exponential: 40s}, count: 80}
)");
  scenario.objective = Objective::Of(ObjectiveTerm::kCost);
  return std::make_shared<const Scenario>(std::move(scenario));
}

PlacementEvaluation Evaluated(std::vector<std::string_view> names, int threads = 1) {
  const auto scenario = CostWorld();
  std::vector<PlacementGroup> groups;
  for (const std::string_view name : names) {
    groups.push_back(
        {std::string(name), {*MakePlacementPolicy(name, PlacementTask(*scenario->objective))}});
  }
  ThreadPool pool(threads);
  return *EvaluatePlacements(scenario, groups, {.seed = 3, .episodes = 12}, &pool);
}

TEST(PlacementEvaluation, PackingIsFoundCheaperThanSpreading) {
  const PlacementEvaluation found = Evaluated({"least-allocated", "round-robin", "greedy"});
  EXPECT_EQ(found.finding, Finding::kBetter);
  EXPECT_LT(found.difference, 0);
  EXPECT_EQ(found.better, 12);
  EXPECT_TRUE(found.is_better());
  EXPECT_THAT(PlacementTable(found), HasSubstr("greedy is better than"));
}

TEST(PlacementEvaluation, TheBaselineIsTheBestOnEpisodesForChoosing) {
  const PlacementEvaluation found =
      Evaluated({"least-allocated", "greedy", "round-robin", "kube-default"});
  EXPECT_EQ(found.policies[found.baseline].name, "greedy");
  EXPECT_EQ(found.finding, Finding::kWorse);
  EXPECT_FALSE(found.is_better());
  EXPECT_EQ(found.policies.back().trial_cost, 0);  // The candidate is not asked.
}

TEST(PlacementEvaluation, APolicyAgainstItselfIsUndecided) {
  const PlacementEvaluation found = Evaluated({"greedy", "mixed:greedy=1"});
  EXPECT_EQ(found.finding, Finding::kUndecided);
  EXPECT_EQ(found.equal, 12);
}

TEST(PlacementEvaluation, IsTheSameForAnyNumberOfThreads) {
  const PlacementEvaluation one = Evaluated({"kube-default", "greedy"}, 1);
  const PlacementEvaluation three = Evaluated({"kube-default", "greedy"}, 3);
  EXPECT_EQ(PlacementCsv(one), PlacementCsv(three));
  EXPECT_EQ(one.difference_ci, three.difference_ci);
}

TEST(PlacementEvaluation, JsonHoldsEveryMetricAndTheVerdict) {
  const auto json = nlohmann::json::parse(PlacementJson(Evaluated({"kube-default", "greedy"})));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["verdict"]["finding"], "better");
  EXPECT_EQ(json["policies"][1]["metrics"]["arrived"], 80);
  EXPECT_LT(json["verdict"]["interval"][0], json["verdict"]["interval"][1]);
}

}  // namespace
}  // namespace rudderfish
