// SPDX-License-Identifier: Apache-2.0
#include "control/extender.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/live_policy.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;

class ExtenderTest : public ::testing::Test {
 protected:
  ExtenderTest() {
    for (const auto& [name, used] : {std::pair("a", 100), {"b", 500}, {"c", 900}, {"d", 350}})
      AddNode(name, used);
  }
  void AddNode(const std::string& name, int64_t used) {
    SchedulingNode node;
    node.name = name;
    node.allocatable = {1000, 1000};
    node.pods_max = 10;
    tables.PutNode(node);
    auto held = std::make_shared<PodClass>();
    held->amounts.requests = held->amounts.held = {used, used};
    tables.Place(name, held, name, PodLife::kServing);
  }
  Extender Of(const char* policy, HardLimits limits = {}) {
    return {&tables, *NodeScorerNamed(policy), limits};
  }
  static std::shared_ptr<PodClass> Shape(int64_t cpu_millis) {
    auto shape = std::make_shared<PodClass>();
    shape->amounts.requests = shape->amounts.held = {cpu_millis, 1};
    return shape;
  }

  SchedulingTables tables;
};

TEST_F(ExtenderTest, GradesSpanTheNodesThatAreAskedAbout) {
  Extender most = Of("most-allocated"), least = Of("least-allocated");
  EXPECT_THAT(most.Prioritize(Shape(50), {"a", "d", "b", "c"}).of, ElementsAre(0, 3, 5, 10));
  EXPECT_THAT(least.Prioritize(Shape(50), {"a", "d", "b", "c"}).of, ElementsAre(10, 7, 5, 0));
  EXPECT_THAT(most.Prioritize(Shape(50), {"d", "a"}).of, ElementsAre(10, 0));
}

TEST_F(ExtenderTest, TheTenBestAreToldApartHoweverBadTheWorstIs) {
  std::vector<std::string> names = {"a"};
  for (int i = 0; i < 12; ++i) AddNode(names.emplace_back(fmt::format("n{}", i)), 800 + i / 2 * 2);
  const std::vector<std::string_view> nodes(names.begin(), names.end());
  EXPECT_THAT(Of("most-allocated").Prioritize(Shape(50), nodes).of,
              ElementsAre(0, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10));
}

TEST_F(ExtenderTest, OfManyEqualsThoseAskedAboutFirstAreNamed) {
  std::vector<std::string> names = {"c", "d"};
  for (int i = 0; i < 60; ++i) AddNode(names.emplace_back(fmt::format("n{}", i)), 0);
  const std::vector<std::string_view> nodes(names.begin(), names.end());
  std::vector<int> expected(62, 0);
  std::fill_n(expected.begin() + 2, Extender::kNamedMax, 10);
  EXPECT_EQ(Of("least-allocated").Prioritize(Shape(50), nodes).of, expected);
}

TEST_F(ExtenderTest, ANodeThatIsFullOrUnknownIsGradedAsTheWorst) {
  EXPECT_THAT(Of("most-allocated").Prioritize(Shape(200), {"c", "a", "b", "nowhere"}).of,
              ElementsAre(0, 0, 10, 0));
}

TEST_F(ExtenderTest, AbstainsFromWhatIsNotModelledAndWhereNothingDiffers) {
  auto strange = Shape(50);
  strange->unmodelled = {"claims devices (DRA)"};
  Extender extender = Of("most-allocated");
  const Extender::Grades grades = extender.Prioritize(strange, {"a", "c"});
  EXPECT_THAT(grades.of, ElementsAre(0, 0));
  EXPECT_EQ(grades.abstained, "the pod claims devices (DRA)");
  EXPECT_EQ(extender.Prioritize(Shape(50), {"a"}).abstained, "all nodes are alike");
  EXPECT_EQ(extender.Prioritize(Shape(50), {}).abstained, "none of the nodes is known");
}

TEST_F(ExtenderTest, AMixWithKubeDefaultGradesByWhatThePodPrefers) {
  for (const char* name : {"x", "y", "z"}) {
    SchedulingNode node;
    node.name = name;
    node.labels = {{"disk", name}};
    node.allocatable = {1000, 1000};
    node.pods_max = 10;
    tables.PutNode(node);
  }
  auto shape = Shape(50);
  shape->preferred_nodes = {{{{{"disk", NodeRequirement::Operator::kIn, {"y"}}}}, 10}};
  const auto grades = [&](const char* policy) {
    Extender extender(&tables, LivePolicy::Load({.policy = policy})->NewScorer(), {});
    return extender.Prioritize(shape, {"x", "y", "z"});
  };
  EXPECT_EQ(grades("greedy").abstained, "all nodes are alike");
  EXPECT_THAT(grades("mixed:greedy=1,kube-default=1").of, ElementsAre(0, 10, 0));
}

TEST_F(ExtenderTest, HardLimitsRuleNodesOutAndNothingElseDoes) {
  EXPECT_THAT(Of("most-allocated").Filter(*Shape(900), {"a", "c"}), ElementsAre("", ""));
  EXPECT_THAT(Of("most-allocated", {.cpu = 0.6}).Filter(*Shape(100), {"a", "b", "c", "nowhere"}),
              ElementsAre("", "", "over the hard limit of 0.6 of cpu", ""));
  auto strange = Shape(100);  // What it requests is known.
  strange->unmodelled = {"claims devices (DRA)"};
  EXPECT_THAT(Of("most-allocated", {.cpu = 0.6}).Filter(*strange, {"a", "c"}),
              ElementsAre("", "over the hard limit of 0.6 of cpu"));
}

TEST_F(ExtenderTest, NodesBeyondAPodsHardLimitOfLatencyAreTheWorstAndRuledOutOnRequest) {
  const std::vector<std::string_view> nodes = {"a", "b", "c", "d"};
  for (const auto& [name, ms] : {std::pair("a", 10.0), {"b", 30.0}, {"c", 31.0}}) {
    SchedulingNode node;
    node.name = name;
    node.allocatable = {1000, 1000};
    node.pods_max = 10;
    node.user_ms = ms;
    tables.PutNode(node);
  }
  const auto near = Shape(50);
  near->latency_limits = {.soft_ms = 15, .hard_ms = 30};
  EXPECT_THAT(Of("most-allocated").Prioritize(near, nodes).of, ElementsAre(1, 10, 0, 0));
  EXPECT_THAT(Of("most-allocated").Prioritize(near, {"a", "c"}).of, ElementsAre(10, 0));
  EXPECT_THAT(Of("most-allocated").Filter(*near, nodes), ElementsAre("", "", "", ""));
  Extender strict = Of("most-allocated", {.latency = true});
  EXPECT_THAT(strict.Filter(*near, nodes),
              ElementsAre("", "", "31 ms from the users, the pod's hard limit is 30 ms",
                          "not known how far from the users, the pod's hard limit is 30 ms"));
  EXPECT_THAT(strict.Filter(*Shape(50), nodes), ElementsAre("", "", "", ""));
}

}  // namespace
}  // namespace rudderfish
