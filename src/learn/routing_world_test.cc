// SPDX-License-Identifier: Apache-2.0
#include "learn/routing_world.h"

#include <gtest/gtest.h>

#include "learn/evolution.h"
#include "learn/learner.h"
#include "learn/training_world.h"
#include "policy/registry.h"
#include "sim/routing_evaluation.h"
#include "tests/support/cloud_regions.h"

namespace rudderfish {
namespace {

RoutingWorld SpotWorld(const std::string& rule = "mpc:use=70,pull=0.3") {
  const auto world = testing::CloudRegions();
  const std::vector<std::string> names = {"spot"};
  return {world, LawsOf(*world), world->variants[VariantsNamed(*world, names)->front()],
          ReadPlannedRouting(rule).value()};
}

TEST(RoutingWorld, APlayerCostsWhatTheSimulatorSays) {
  const RoutingWorld world = SpotWorld();
  const EvolutionStart start = world.Start();
  const EpisodeResult played = world.NewPlayer()->Play(start.weights, 7, {});
  const auto policy = MakeRoutingPolicy(*ParsePolicySpec("mpc:use=70,pull=0.3")).value();
  RegionSimulator simulator(world.world, world.laws);
  EXPECT_EQ(played.cost, RunRouting(*policy, {world.variant, 7}, &simulator).objective());
  EXPECT_EQ(played.decisions, 240 * 3 / 5);
}

TEST(RoutingWorld, APlayerTellsOfEveryQuestion) {
  const RoutingWorld world = SpotWorld();
  int questions = 0, of_pairs = 0;
  world.NewPlayer()->Play(world.Start().weights, 7, [&](const EpisodePlayer::Question& question) {
    const size_t pairs = world.world->network->regions.size();
    EXPECT_TRUE(question.scores.size() == RegionScalingTask::kChoicesMax ||
                question.scores.size() == pairs);
    (question.scores.size() == pairs ? of_pairs : questions) += 1;
  });
  EXPECT_NEAR(questions, 240 * 3 / 5, 3);
  EXPECT_EQ(of_pairs, 240);
}

TEST(RoutingWorld, EvolutionLearnsTheTiersThatAreToBePairsFirst) {
  struct Case {
    RoutingTiers tiers;
    double progress;
    bool moves_pairs, moves_choices;
  };
  const Case cases[] = {{{.route = true, .scale = false}, 0.9, true, false},
                        {{.route = false, .scale = true}, 0, false, true},
                        {{.route = true, .scale = true}, 0.49, true, false},
                        {{.route = true, .scale = true}, 0.5, true, true}};
  RoutingWorld world = SpotWorld();
  const size_t count = world.rule.planning.weights.size(),
               first_of_pairs = count - RegionScalingTask::kPairFeatures;
  ThreadPool pool(2);
  TrainOptions options;
  UseRoutingDefaults(&options);
  for (const Case& one : cases) {
    world.tiers = one.tiers;
    const TrainingWorld training[] = {{.routing = &world}};
    nn::CandidateNet net = MakeNet(options, training[0].widths());
    Evolution evolution({.pairs = 2, .episodes = 2}, training, 1, &net);
    const std::vector<float> before = ChoiceWeightsOf(net);
    evolution.Iterate(1, one.progress, &pool);
    const std::vector<float> after = ChoiceWeightsOf(net);
    int moved_of_choices = 0, moved_of_pairs = 0;
    for (size_t f = 0; f < count; ++f)
      (f < first_of_pairs ? moved_of_choices : moved_of_pairs) += before[f] != after[f] ? 1 : 0;
    EXPECT_EQ(moved_of_choices > 0, one.moves_choices);
    EXPECT_EQ(moved_of_pairs > 0, one.moves_pairs);
    EXPECT_TRUE(std::all_of(before.begin() + static_cast<long>(first_of_pairs), before.end(),
                            [](float weight) { return weight == 0; }));
  }
}

TEST(RoutingWorld, EvolutionFindsABetterRuleThanABadStart) {
  const RoutingWorld world = SpotWorld("mpc:use=30,pull=1,spot=0");
  const TrainingWorld training[] = {{.routing = &world}};
  TrainOptions options;
  UseRoutingDefaults(&options);
  nn::CandidateNet net = MakeNet(options, training[0].widths());
  Evolution evolution({.pairs = 6, .episodes = 4}, training, 1, &net);
  const RoutingWorld* worlds[] = {&world};
  ThreadPool pool(2);
  const double before = ValidateRouting(worlds, ChoiceWeightsOf(net), 12, 1, &pool).objective;
  for (uint64_t i = 1; i <= 12; ++i) evolution.Iterate(i, 0.5, &pool);
  EXPECT_LT(ValidateRouting(worlds, ChoiceWeightsOf(net), 12, 1, &pool).objective, 0.9 * before);
}

TEST(RoutingWorld, AVerdictNamesTheBestRuleAndStepsBackToItWithoutAGain) {
  const RoutingWorld world = SpotWorld();
  const RoutingWorld* worlds[] = {&world};
  ThreadPool pool(2);
  const std::vector<float> weights = world.Start().weights;
  const RoutingVerdict same =
      JudgeRouting(worlds, weights, {"static:use=95", "mpc:use=70,pull=0.3"}, 8, 1, &pool);
  EXPECT_EQ(same.rule, "mpc:use=70,pull=0.3");
  EXPECT_EQ(same.difference, 0);
  EXPECT_TRUE(same.steps_back);
  const RoutingVerdict won = JudgeRouting(worlds, weights, {"static:use=95"}, 8, 1, &pool);
  EXPECT_LT(won.difference + won.interval, 0);
  EXPECT_FALSE(won.steps_back);
  EXPECT_EQ(won.episodes, 8);
  EXPECT_EQ(won.worse_in, "");
}

TEST(RoutingWorld, AGainInOneVariantIsNoneWhereAnotherIsWorse) {
  // Many nodes are cheap on spot, and dear where there is none.
  const std::string learned = "mpc:use=40,pull=1000,spot=100", rule = "mpc:use=70,pull=1000,spot=0";
  const RoutingWorld spot = SpotWorld(learned);
  RoutingWorld calm = spot;
  const std::vector<std::string> names = {"calm"};
  calm.variant = spot.world->variants[VariantsNamed(*spot.world, names)->front()];
  const RoutingWorld* worlds[] = {&spot, &calm};
  ThreadPool pool(2);
  const RoutingVerdict verdict = JudgeRouting(worlds, spot.Start().weights, {rule}, 8, 1, &pool);
  EXPECT_EQ(verdict.worse_in, "calm");
  EXPECT_TRUE(verdict.steps_back);
}

}  // namespace
}  // namespace rudderfish
