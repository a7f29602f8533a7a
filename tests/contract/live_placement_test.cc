// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/check.h"
#include "control/live_policy.h"
#include "learn/learner.h"
#include "learn/training_worlds.h"
#include "nn/checkpoint.h"
#include "policy/neural_placement.h"
#include "sim/lifecycle.h"
#include "tests/support/two_types_world.h"

// A learned policy chooses the same nodes whether a simulated world asks it or a live cluster's
// tables do, and its checkpoint says all that the second needs to know.

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// A run's checkpoint before its first step.
class LivePlacementTest : public ::testing::Test {
 protected:
  LivePlacementTest()
      : path_(std::filesystem::temp_directory_path() /
              ("rudderfish-live-placement-" + std::to_string(::getpid()) + ".safetensors")) {
    static const TrainingWorlds worlds = Worlds();
    scenario_ = worlds.first().placement->scenario;
    TrainOptions options;
    UsePlacementDefaults(&options);
    options.hidden = 16;
    net_ = std::make_shared<const nn::CandidateNet>(MakeLearner(options, worlds.list())->net());
    nn::AddNet(*net_, &file_);
    DescribePlacement(PlacementTask(*scenario_->objective), &file_);
    DescribePlacementWorld(*worlds.FactsOfAll(), &file_);
    AddFamiliarity(worlds.SeenByAll(), &file_);
    Write();
  }
  static TrainingWorlds Worlds() {
    Result<Scenario> scenario = ParseScenario(testing::kTwoTypesWorld, "two-types.yaml");
    CHECK(scenario.has_value());
    Result<TrainingWorlds> worlds =
        TrainingWorlds::Make({{std::make_shared<const Scenario>(*std::move(scenario))}});
    CHECK(worlds.has_value());
    return *std::move(worlds);
  }
  ~LivePlacementTest() override { std::filesystem::remove(path_); }

  void Write() { CHECK(file_.Write(path_).has_value()); }
  LivePolicyOptions Options() const { return {.policy = path_.string()}; }
  std::string Refusal(const LivePolicyOptions& options) const {
    const Result<LivePolicy> policy = LivePolicy::Load(options);
    return policy ? "none" : policy.error().message;
  }

  static std::shared_ptr<const PodClass> ShapeOf(const Workload& workload) {
    auto shape = std::make_shared<PodClass>();
    shape->amounts.requests = shape->amounts.held = workload.requests;
    if (workload.devices.count > 0)
      shape->amounts.scalars = {{"nvidia.com/gpu", workload.devices.count}};
    return shape;
  }

  // What a cluster in that state would tell.
  static void Show(const State& state, SchedulingRules* rules) {
    std::vector<SchedulingNode> nodes;
    for (NodeId n = 0; n < state.nodes.size(); ++n) {
      SchedulingNode& node = nodes.emplace_back();
      node.name = NodeName(state, n);
      node.labels = {{std::string(kNodeTypeLabel), state.kind_of(n).name}};
      node.allocatable = state.nodes.allocatable[n];
      node.pods_max = 110;
      if (state.nodes.devices[n].count > 0)
        node.scalars = {{"nvidia.com/gpu", state.nodes.devices[n].count}};
    }
    rules->Reset(std::move(nodes), {});
    for (PodId pod = 0; pod < state.pods.size(); ++pod) {
      if (state.pods.node[pod] == kNone) continue;
      rules->Assume(rules->Register(ShapeOf(state.workload_of(pod))), state.pods.node[pod]);
    }
  }

  std::filesystem::path path_;
  std::shared_ptr<const Scenario> scenario_;
  std::shared_ptr<const nn::CandidateNet> net_;
  nn::SafetensorsFile file_;
};

TEST_F(LivePlacementTest, ChoosesAsInTheSimulator) {
  const Result<LivePolicy> policy = LivePolicy::Load(Options());
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ(policy->objective(), *scenario_->objective);
  const std::unique_ptr<NodeScorer> scorer = policy->NewScorer();
  EXPECT_THAT(std::string(scorer->name()), HasSubstr(path_.string() + "@"));
  NeuralPlacement learned(PlacementTask(*scenario_->objective), net_);
  Lifecycle world(scenario_);
  ASSERT_TRUE(world.Start(5).has_value());
  SchedulingRules rules;
  Feasibility feasibility;
  std::vector<double> scores;
  int asked = 0, had_a_choice = 0;
  for (; world.NextPending(); ++asked) {
    const int choice = learned.Choose({world.state(), world.totals(), world.pending_workload()});
    if (choice < 0) {
      world.Bind(kNone);
      continue;
    }
    const PlacementSpace& space = learned.space();
    Show(world.state(), &rules);
    const PodClassId pod =
        rules.Register(ShapeOf(world.state().catalog->workloads[world.pending_workload()]));
    rules.Filter(pod, &feasibility);
    scorer->Score(rules, pod, feasibility, &scores);
    ASSERT_EQ(scorer->stepped_back(), StepBack::kNone);
    double best = scores[space.candidates[choice].node];
    for (NodeId n = 0; n < world.state().nodes.size(); ++n) {
      const int candidate = space.candidate_of[n];
      ASSERT_EQ(feasibility.IsFeasible(n), candidate != kNone);
      if (candidate == kNone) continue;
      EXPECT_FLOAT_EQ(static_cast<float>(scores[n]), learned.scores()[candidate]) << asked;
      ASSERT_LE(scores[n], best) << asked;
    }
    had_a_choice += space.count() > 1 ? 1 : 0;
    world.Bind(space.candidates[choice].node);
  }
  EXPECT_GT(asked, 300);
  EXPECT_GT(had_a_choice, 150);
}

TEST_F(LivePlacementTest, WithKubeDefaultAddedItGoesWhereThePodPrefersAmongNodesAlike) {
  std::vector<SchedulingNode> nodes(6);
  for (size_t n = 0; n < nodes.size(); ++n) {
    nodes[n].name = "n" + std::to_string(n);
    nodes[n].labels = {{std::string(kNodeTypeLabel), "small"}, {"slot", nodes[n].name}};
    nodes[n].allocatable = {2000, int64_t{4} << 30};
    nodes[n].pods_max = 110;
  }
  SchedulingRules rules;
  rules.Reset(std::move(nodes), {});
  auto picky = std::make_shared<PodClass>(*ShapeOf(scenario_->catalog->workloads[0]));
  picky->preferred_nodes = {{{{{"slot", NodeRequirement::Operator::kIn, {"n4"}}}}, 1}};
  const PodClassId pod = rules.Register(picky);
  Feasibility feasibility;
  rules.Filter(pod, &feasibility);
  LivePolicyOptions options = Options();
  options.strangeness_max = 1e9;
  const auto scores_by = [&](const std::string& policy) {
    options.policy = policy;
    std::vector<double> scores;
    LivePolicy::Load(options)->NewScorer()->Score(rules, pod, feasibility, &scores);
    return scores;
  };
  const std::vector<double> learned = scores_by(path_.string());
  const std::vector<double> both = scores_by("mixed:kube-default=1,run=" + path_.string());
  for (size_t n = 0; n < learned.size(); ++n) {
    EXPECT_EQ(learned[n], learned[0]) << n;
    // One is 0, the others as far below as makes -1 in the mean.
    EXPECT_FLOAT_EQ(static_cast<float>(both[n] - learned[n]), n == 4 ? 0 : -1.2F) << n;
  }
}

TEST_F(LivePlacementTest, ANodeOfAnotherTypeIsTakenOnlyWhereNoneOfAKnownOneIs) {
  LivePolicyOptions options = Options();
  options.strangeness_max = 1e9;  // One node is not what it was trained on.
  const Result<LivePolicy> policy = LivePolicy::Load(options);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  const std::unique_ptr<NodeScorer> scorer = policy->NewScorer();
  std::vector<SchedulingNode> nodes(2);
  nodes[0].name = "a";
  nodes[1].name = "b";
  for (SchedulingNode& node : nodes) {
    node.allocatable = {2000, int64_t{4} << 30};
    node.pods_max = 1;
  }
  nodes[1].labels = {{std::string(kNodeTypeLabel), "small"}};
  SchedulingRules rules;
  rules.Reset(std::move(nodes), {});
  const PodClassId pod = rules.Register(ShapeOf(scenario_->catalog->workloads[0]));
  Feasibility feasibility;
  std::vector<double> scores;
  rules.Filter(pod, &feasibility);
  scorer->Score(rules, pod, feasibility, &scores);
  EXPECT_GT(scores[1], scores[0]);
  EXPECT_EQ(scorer->stepped_back(), StepBack::kNone);
  rules.Assume(pod, 1);
  rules.Filter(pod, &feasibility);
  scorer->Score(rules, pod, feasibility, &scores);
  EXPECT_EQ(scorer->stepped_back(), StepBack::kOutside);
  EXPECT_EQ(scorer->scored_by(), "kube-default");
  EXPECT_THAT(scorer->WhySteppedBack(), HasSubstr("knows the type of no node"));
}

TEST_F(LivePlacementTest, WhereAllIsOtherThanInTrainingKubeDefaultChooses) {
  const Result<LivePolicy> policy = LivePolicy::Load(Options());
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  const std::unique_ptr<NodeScorer> scorer = policy->NewScorer();
  // Four hundred nodes, no two alike, of which each has held many pods.
  std::vector<SchedulingNode> nodes(400);
  for (size_t n = 0; n < nodes.size(); ++n) {
    nodes[n].name = "n" + std::to_string(n);
    nodes[n].labels = {{std::string(kNodeTypeLabel), "large"}};
    nodes[n].allocatable = {64'000 + static_cast<int64_t>(n), int64_t{256} << 30};
    nodes[n].pods_max = 500;
  }
  SchedulingRules rules;
  rules.Reset(std::move(nodes), {});
  const PodClassId pod = rules.Register(ShapeOf(scenario_->catalog->workloads[0]));
  for (NodeId n = 0; n < 400; ++n) {
    for (int i = 0; i < 100; ++i) rules.Assume(pod, n);
  }
  Feasibility feasibility;
  std::vector<double> scores;
  rules.Filter(pod, &feasibility);
  scorer->Score(rules, pod, feasibility, &scores);
  EXPECT_EQ(scorer->stepped_back(), StepBack::kUnlike);
  EXPECT_EQ(scorer->scored_by(), "kube-default");
  EXPECT_THAT(scorer->WhySteppedBack(), HasSubstr("in training"));
  LivePolicyOptions lenient = Options();
  lenient.strangeness_max = 1e9;
  const std::unique_ptr<NodeScorer> other = LivePolicy::Load(lenient)->NewScorer();
  other->Score(rules, pod, feasibility, &scores);
  EXPECT_EQ(other->stepped_back(), StepBack::kNone);
}

TEST_F(LivePlacementTest, ItsOwnObjectiveMayBeNamedInOtherUnits) {
  LivePolicyOptions options = Options();
  for (const double unit : {1.0, 2.0, 1.0 / 3}) {
    options.objective = *scenario_->objective;
    for (double& weight : options.objective->weight) weight *= unit;
    EXPECT_EQ(Refusal(options), "none") << unit;
  }
}

TEST_F(LivePlacementTest, AnotherObjectiveOrTaskOrWorldIsRefused) {
  LivePolicyOptions options = Options();
  options.objective = Objective::Of(ObjectiveTerm::kCost);
  EXPECT_THAT(Refusal(options),
              HasSubstr("was trained for balance:1,energy:0.5,fragmentation:0.2, not for cost"));
  options = Options();
  options.policy = "mixed:latency=1,run=" + options.policy;
  EXPECT_THAT(Refusal(options), HasSubstr("counts latency"));
  PlacementFacts facts{.types = {"small"}, .laws = {.costs = {{}}}};
  facts.laws.users = 0;
  DescribePlacementWorld(facts, &file_);
  Write();
  EXPECT_THAT(Refusal(Options()), HasSubstr("how far the pods that are there are from the users"));
  facts.laws.users = kNone;
  facts.has_calls = true;
  DescribePlacementWorld(facts, &file_);
  Write();
  EXPECT_THAT(Refusal(Options()), HasSubstr("how far apart pods are that call each other"));
  DescribePlacementWorld({.types = {"small"}, .laws = {.costs = {{}}}}, &file_);
  Write();
  EXPECT_THAT(Refusal(Options()), HasSubstr("the objective is energy"));
  file_.SetMetadata("world", "{");
  Write();
  EXPECT_THAT(Refusal(Options()), HasSubstr("world"));
  file_.SetMetadata("task", "migration");
  Write();
  EXPECT_THAT(Refusal(Options()), HasSubstr("trained for the task migration, not placement"));
}

}  // namespace
}  // namespace rudderfish
