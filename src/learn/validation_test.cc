// SPDX-License-Identifier: Apache-2.0
#include "learn/validation.h"

#include <gtest/gtest.h>

#include "learn/learner.h"
#include "policy/neural.h"
#include "policy/walks.h"
#include "tests/support/play.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::ShippedScenario;
using testing::TwoNodes;

// The same plans made one question at a time by the policy that will carry them out.
TEST(Validation, FiguresAreThoseOfTheWalks) {
  const std::shared_ptr<const Scenario> scenarios[] = {ShippedScenario("continuum-7x21"),
                                                       TwoNodes().scenario};
  const Result<TrainingWorlds> worlds = TrainingWorlds::Make(scenarios);
  Result<Validation> validation = Validation::Draw(worlds->list(), 3, 21);
  ASSERT_TRUE(validation.has_value());
  auto net = std::make_shared<nn::CandidateNet>(
      MakeNet({.seed = 8, .hidden = 16}, worlds->task().widths()));
  const NeuralPolicy policy("net", net);
  const WalkPolicy plans("net", std::make_shared<NeuralPolicy>("net", net));
  ValidationFigures expected;
  for (size_t i = 0; i < validation->starts().size(); ++i) {
    const TrainingWorld& world = worlds->list()[i / 21];
    Env env(*world.world, *world.task, world.law, 0, 0, world.task->max_steps());
    env.ResetTo(validation->starts()[i]);
    const std::unique_ptr<Memory> memory = policy.NewMemory(0);
    for (StepResult result; !result.terminated && !result.truncated;) {
      Ask ask{&env.model(), world.task, env.question(), &env.space(), memory.get()};
      Answer answer;
      policy.Decide({&ask, 1}, {&answer, 1});
      result = env.Step(answer.choice);
      expected.mean_return += result.reward;
    }
    expected.final_ms += env.walk().best_latency_ms();
    expected.objective_ms += env.walk().best_objective_ms();
    expected.moves += env.walk().best_displaced();
    const std::unique_ptr<Memory> planning = plans.NewMemory(0);
    const testing::Played played =
        testing::Play(plans, *world.task, world.law, validation->starts()[i], planning.get());
    EXPECT_LE(played.cost_ms(), env.walk().best_objective_ms() + 1e-9);
  }
  ThreadPool pool(2);
  const ValidationFigures figures = validation->Run(*net, &pool);
  EXPECT_NEAR(figures.final_ms, expected.final_ms / 42, 1e-9);
  EXPECT_NEAR(figures.objective_ms, expected.objective_ms / 42, 1e-9);
  EXPECT_NEAR(figures.mean_return, expected.mean_return / 42, 1e-9);
  EXPECT_NEAR(figures.moves, expected.moves / 42, 1e-12);
}

TEST(Validation, FiguresAreTheSameForAnyNumberOfThreads) {
  const TrainingWorlds worlds = testing::WorldsOf(ShippedScenario("continuum-7x21"));
  const nn::CandidateNet net = MakeNet({.seed = 8, .hidden = 16}, worlds.task().widths());
  std::vector<double> objectives;
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    Result<Validation> validation = Validation::Draw(worlds.list(), 3, 50);
    objectives.push_back(validation->Run(net, &pool).objective_ms);
    objectives.push_back(validation->Run(net, &pool).objective_ms);  // Drawn once, the same again.
  }
  for (double objective : objectives) EXPECT_EQ(objective, objectives[0]);
}

TEST(Validation, ReturnIsWhatTheObjectiveFallsByLessThePriceOfTheWalk) {
  const TrainingWorlds worlds = testing::WorldsOf(TwoNodes().scenario);
  Result<Validation> validation = Validation::Draw(worlds.list(), 3, 50);
  double initial = 0;
  Evaluator model(worlds.list()[0].law);
  for (const State& start : validation->starts()) {
    model.Reset(start);
    initial += model.Now().latency_ms / 50;
  }
  ThreadPool pool(1);
  const nn::CandidateNet net = MakeNet({.seed = 2, .hidden = 16}, worlds.task().widths());
  const ValidationFigures figures = validation->Run(net, &pool);
  const double walked_ms = initial - 100 * figures.mean_return - figures.objective_ms;
  EXPECT_GE(walked_ms, -1e-9);
  EXPECT_LE(walked_ms, 12 * Walk::kStepMs + 1e-9) << "12 steps at most";
}

}  // namespace
}  // namespace rudderfish
