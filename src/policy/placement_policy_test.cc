// SPDX-License-Identifier: Apache-2.0
#include "policy/placement_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "nn/checkpoint.h"
#include "policy/neural_placement.h"
#include "policy/registry.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// Nodes of 1, 2 and 4 cores with a pod each; the last is dear.
struct WorldOfThreeNodes {
  WorldOfThreeNodes() {
    testing::WorldBuilder world;
    const LayerId site = world.Layer("site");
    const KindId cheap = world.Kind("cheap", site), dear = world.Kind("dear", site);
    world.Workload("web", 500, 128);
    const WorkloadId filler = world.Workload("filler", 400, 128);
    world.Pod(filler, world.Node(cheap, 1000, 4096));
    world.Pod(filler, world.Node(cheap, 2000, 4096));
    world.Node(dear, 4000, 4096);
    state = world.Build();
    laws.costs = {{50, 100, 1, 5}, {50, 400, 4, 5}};
    totals.Reset(state, laws);
  }

  PlacementQuestion Question() const { return {state, totals, 0}; }

  State state;
  PlacementLaws laws;
  ClusterTotals totals;
};

const PlacementTask kForCost(Objective::Of(ObjectiveTerm::kCost));

NodeId ChosenNode(std::string_view spec) {
  const WorldOfThreeNodes world;
  const Result<PlacementPolicy> policy = MakePlacementPolicy(spec, kForCost);
  CHECK(policy.has_value());
  return policy->start()(world.Question());
}

std::string Refusal(std::string_view spec) {
  const Result<PlacementPolicy> policy = MakePlacementPolicy(spec, kForCost);
  return policy ? "none" : policy.error().message;
}

TEST(PlacementPolicy, EveryHeuristicAnswersAsItsNameSays) {
  EXPECT_EQ(ChosenNode("most-allocated"), 0);
  EXPECT_EQ(ChosenNode("least-allocated"), 2);
  EXPECT_EQ(ChosenNode("kube-default"), 2);
  EXPECT_EQ(ChosenNode("greedy"), 0);  // Nodes in use cost nothing more.
  EXPECT_EQ(ChosenNode("round-robin"), 0);
}

TEST(PlacementPolicy, AMixAddsScores) {
  EXPECT_EQ(ChosenNode("mixed:greedy=1"), 0);
  EXPECT_EQ(ChosenNode("mixed:greedy=1,least-allocated=0.1"), 1);  // Breaks the tie the other way.
  EXPECT_EQ(ChosenNode("mixed:greedy=0.1,least-allocated=10"), 2);
}

TEST(PlacementPolicy, AScoreThatIsLeftOutStaysInTheMixAndNothingGoesByIt) {
  const auto policy = MakePlacementPolicy("mixed:greedy=1,least-allocated=5", kForCost,
                                          PlacementScore::kLeastAllocated);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ(policy->mix[static_cast<size_t>(PlacementScore::kLeastAllocated)], 5);
  const WorldOfThreeNodes world;
  const auto rater = policy->rate(),
             greedy = MakePlacementPolicy("mixed:greedy=1", kForCost)->rate();
  EXPECT_THAT(rater->Rate(world.Question(), {}),
              ::testing::ElementsAreArray(greedy->Rate(world.Question(), {})));
}

TEST(PlacementPolicy, AMixThatSaysNothingIsRefused) {
  EXPECT_THAT(Refusal("mixed:greedy=0,cost=0"), HasSubstr("no score has a weight other than 0"));
  EXPECT_THAT(Refusal("mixed"), HasSubstr("no score has a weight other than 0"));
  EXPECT_THAT(Refusal("mixed:greedy=0,greedy=1"), HasSubstr("`greedy` is given twice"));
  for (const char* weight : {"1e7", "-1e7", "1e300", "inf", "nan"}) {
    EXPECT_THAT(Refusal(std::string("mixed:greedy=") + weight),
                HasSubstr("expected a number from -1000000 to 1000000"))
        << weight;
  }
  EXPECT_EQ(ChosenNode("mixed:greedy=1e6,least-allocated=-1e6"), 0);
}

TEST(PlacementPolicy, LookaheadTakesItsOptions) {
  EXPECT_EQ(ChosenNode("lookahead"), 0);  // No pod waits behind: greedy.
  EXPECT_EQ(ChosenNode("lookahead:width=4,depth=3,evaluations=100"), 0);
  EXPECT_THAT(Refusal("lookahead:run=runs/a"), HasSubstr("unknown option `run`"));
}

// A network whose weights are 0 but for one score's is that score.
TEST(PlacementPolicy, ANetworkOfOneScoreAnswersAsThatScore) {
  auto net = std::make_shared<nn::CandidateNet>(
      nn::NetShape{.widths = PlacementTask::kWidths, .hidden = 16, .rounds = 1});
  const auto score = static_cast<int>(PlacementScore::kLeastAllocated);
  net->tensor("logit.skip")[score] = 1;
  const WorldOfThreeNodes world;
  NeuralPlacement learned(kForCost, net);
  ASSERT_EQ(learned.Choose(world.Question()), 2);
  EXPECT_EQ(learned.space().candidates[2].node, 2);
  EXPECT_EQ(learned.scores()[2], 0);
  PlacementMix added{};
  added[static_cast<int>(PlacementScore::kMostAllocated)] = 3;
  EXPECT_EQ(NeuralPlacement(kForCost, net, added).Choose(world.Question()), 0);
}

TEST(PlacementPolicy, ACheckpointOfAnotherTaskIsRefused) {
  nn::SafetensorsFile file;
  DescribePlacement(kForCost, &file);
  EXPECT_TRUE(CheckPlacement(file, kForCost).has_value());
  const PlacementTask energy(Objective::Of(ObjectiveTerm::kEnergy));
  EXPECT_THAT(CheckPlacement(file, energy).error().message, HasSubstr("--objective"));
  EXPECT_TRUE(CheckPlacement(file, PlacementTask({.weight = {0, 0, 0, 0, 2}})).has_value());
  file.SetMetadata("features", "0000");
  EXPECT_THAT(CheckPlacement(file, kForCost).error().message, HasSubstr("other features"));
  file.SetMetadata("task", "migration");
  EXPECT_THAT(CheckPlacement(file, kForCost).error().message, HasSubstr("the task migration"));
}

}  // namespace
}  // namespace rudderfish
