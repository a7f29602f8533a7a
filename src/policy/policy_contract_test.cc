// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/policy_contract.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "policy/baselines.h"
#include "policy/descheduler.h"
#include "policy/exact.h"
#include "policy/greedy.h"
#include "policy/kube_default.h"
#include "policy/lookahead.h"
#include "policy/walks.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::CheckPolicy;
using testing::ContinuumWorld;
using testing::Pattern;
using testing::PolicyTraits;
using testing::RandomWorld;

class PolicyContract : public ::testing::Test {
 protected:
  PolicyContract() {
    Rng rng(1);
    for (Pattern pattern : {Pattern::kChain, Pattern::kSequential, Pattern::kParallel}) {
      for (int i = 0; i < 3; ++i) states_.push_back(ContinuumWorld({.pattern = pattern}, &rng));
    }
    for (int i = 0; i < 6; ++i) states_.push_back(RandomWorld(&rng));
  }

  void Check(const Policy& policy, PolicyTraits traits = {}) {
    for (const LatencyLaw* law : {&LatencyLaw::Reach(), &LatencyLaw::Physical()}) {
      CheckPolicy(policy, MigrationTask({}), *law, states_, traits);
    }
    // Representatives only, and a constant cost.
    const MigrationTask few(
        {.step_penalty = StepPenalty::kConstant, .max_steps = 30, .max_candidates = 5});
    CheckPolicy(policy, few, LatencyLaw::Reach(), states_, traits);
  }

  std::vector<State> states_;
};

TEST_F(PolicyContract, StayKeepsIt) { Check(StayPolicy()); }
TEST_F(PolicyContract, RandomKeepsIt) { Check(RandomPolicy(), {.stops = false}); }
TEST_F(PolicyContract, KubeDefault) {
  Check(NodeScorePolicy(NodeScoring::kKubeDefault), {.stops = false});
}
TEST_F(PolicyContract, LeastAllocated) {
  Check(NodeScorePolicy(NodeScoring::kLeastAllocated), {.stops = false});
}
TEST_F(PolicyContract, MostAllocated) {
  Check(NodeScorePolicy(NodeScoring::kMostAllocated), {.stops = false});
}
TEST_F(PolicyContract, DeschedulerKeepsIt) {
  Check(DeschedulerPolicy({.low = 30, .high = 40}), {.stops = false});
}
TEST_F(PolicyContract, GreedyKeepsIt) { Check(GreedyPolicy()); }
TEST_F(PolicyContract, LookaheadKeepsIt) {
  Check(LookaheadPolicy("lookahead", {.budget = {.width = 32}}));
}
TEST_F(PolicyContract, LookaheadWithinEvaluations) {
  Check(LookaheadPolicy("lookahead", {.budget = {.width = 1 << 15, .evaluations = 5000}}));
}
TEST_F(PolicyContract, LookaheadBesideAWalk) {
  LookaheadOptions options;
  options.budget.width = 32;
  options.stepper = std::make_shared<testing::SoftmaxPolicy>(10);
  Check(LookaheadPolicy("lookahead", options));
}
TEST_F(PolicyContract, AWalkKeepsIt) {
  Check(WalkPolicy("walk", std::make_shared<testing::SoftmaxPolicy>(10)));
}
TEST_F(PolicyContract, WalksOfChance) {
  Check(WalkPolicy("walks", std::make_shared<testing::SoftmaxPolicy>(10),
                   {.samples = 4, .beside_greedy = true}),
        {.allocates = true});
}
TEST_F(PolicyContract, WalksThatSeeNothingNew) {
  Check(WalkPolicy("walks", std::make_shared<testing::SoftmaxPolicy>(1e-3),
                   {.samples = 4, .beside_greedy = true}));
}
TEST_F(PolicyContract, ExactKeepsIt) {
  Check(ExactPolicy({.ends = 2000, .placements = 50, .width = 8}), {.allocates = true});
}

}  // namespace
}  // namespace rudderfish
