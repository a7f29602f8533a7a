// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "control/controller.h"
#include "learn/env.h"
#include "policy/registry.h"
#include "scenario/scenario.h"
#include "sim/sim_cluster.h"
#include "sim/world.h"
#include "task/migration.h"
#include "tests/support/source_path.h"

// The same policy sees the same bytes and takes the same decisions whether the training environment
// drives it or the Controller over a cluster. This is what makes figures of training mean something
// outside of it.

namespace rudderfish {
namespace {

// What a policy was shown and what it answered.
struct Record {
  GraphBatch questions;
  std::vector<int> choices;
};

class Recorder final : public Policy {
 public:
  explicit Recorder(const Policy* policy) : policy_(policy) {}
  std::string_view name() const override { return policy_->name(); }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override {
    return policy_->NewMemory(seed);
  }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    policy_->Decide(asks, answers);
    for (size_t i = 0; i < asks.size(); ++i) {
      record.questions.widths = asks[i].task->widths();
      asks[i].task->Encode(asks[i].model, asks[i].question, asks[i].space, &record.questions);
      record.choices.push_back(answers[i].choice);
    }
  }

  mutable Record record;

 private:
  const Policy* policy_;
};

struct Outcomes {
  Record record;
  State end;
  Terms terms;
};

constexpr uint64_t kPolicySeed = 17;

// Asks the training environment about every state of a plan. What pods of the plan rest is `rest`.
Outcomes DriveEnv(const World& world, const Task& task, const LatencyLaw& law, const Policy& policy,
                  const State& start, bool rest = false) {
  const Recorder recorder(&policy);
  Env env(world, task, law, 1, 0, task.max_steps());
  const auto memory = recorder.NewMemory(kPolicySeed);
  memory->Restart();
  State state = start;
  std::vector<LeftCell> left;
  for (Question question; question.step < task.max_steps(); ++question.step) {
    env.ResetTo(state);
    env.model().Leave(left);  // The plan goes on, so what it has left stays left.
    task.Space(&env.model(), question, &env.space());
    Ask ask{.model = &env.model(),
            .task = &task,
            .question = question,
            .space = &env.space(),
            .memory = memory.get()};
    Answer answer;
    recorder.Decide({&ask, 1}, {&answer, 1});
    Decision decision;
    task.Decode(env.state(), env.space(), answer.choice, &decision);
    if (decision.empty()) break;
    const auto& migrate = std::get<Migrate>(decision[0]);
    left.push_back({state.pods.workload[migrate.pod], state.pods.node[migrate.pod]});
    MovePod(migrate.pod, migrate.to, &state);
    if (!rest) continue;
    state.pods.held.resize(state.pods.workload.size());
    state.pods.held[migrate.pod] = 1;
  }
  env.ResetTo(state);
  return {recorder.record, state, env.model().Now()};
}

Outcomes DriveController(const Task& task, const LatencyLaw& law, const Policy& policy,
                         const State& start, std::chrono::nanoseconds start_delay) {
  const Recorder recorder(&policy);
  SimCluster cluster(start, start_delay);
  MemoryJournal journal;
  Controller controller(
      &cluster, &task, law, &recorder,
      {.benefit_factor = std::nullopt, .moves_per_plan = task.max_steps()}, &journal,
      {.seed = kPolicySeed, .wait = [&] { cluster.Advance(std::chrono::seconds(1)); }});
  const auto result = controller.RunPlan();
  EXPECT_TRUE(result.has_value());
  if (result) {
    EXPECT_TRUE(*result == TurnResult::kStopped || *result == TurnResult::kExhausted);
  }
  return {recorder.record, controller.state(), controller.terms()};
}

void ExpectSame(const Outcomes& env, const Outcomes& controller) {
  ASSERT_EQ(env.record.choices, controller.record.choices);
  const GraphBatch& a = env.record.questions;
  const GraphBatch& b = controller.record.questions;
  EXPECT_EQ(a.candidates, b.candidates);
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.workloads, b.workloads);
  EXPECT_EQ(a.context, b.context);
  EXPECT_EQ(env.end.pods.node, controller.end.pods.node);
  EXPECT_EQ(env.terms.latency_ms, controller.terms.latency_ms);
}

// The same while pods that were moved rest.
void ExpectSameWhilePodsRest(const World& world, const Task& task, const LatencyLaw& law,
                             const Policy& policy, const State& start) {
  const Recorder live(&policy);
  SimCluster cluster(start, std::chrono::seconds(0));
  MemoryJournal journal;
  Controller controller(&cluster, &task, law, &live,
                        {.benefit_factor = std::nullopt,
                         .pod_cooldown = std::chrono::minutes(1),
                         .moves_per_plan = task.max_steps()},
                        &journal, {.seed = kPolicySeed});
  EXPECT_TRUE(controller.RunPlan().has_value());
  ExpectSame(DriveEnv(world, task, law, policy, start, true),
             {live.record, controller.state(), controller.terms()});
}

class Drivers : public ::testing::TestWithParam<const char*> {
 protected:
  Drivers()
      : scenario_(std::make_shared<const Scenario>(
            LoadScenario(SourcePath("scenarios/continuum-7x21.yaml")).value())),
        world_(scenario_) {}

  State Draw(uint64_t episode) const {
    Rng rng(99, 0, episode);
    State state;
    EXPECT_TRUE(world_.Draw(&rng, &state));
    return state;
  }

  void ExpectSameDecisions(const MigrationOptions& options, const LatencyLaw& law,
                           std::chrono::nanoseconds start_delay) const {
    const MigrationTask task(options);
    const auto policy = MakePolicy(GetParam(), task);
    ASSERT_TRUE(policy.has_value()) << policy.error().message;
    for (uint64_t episode = 0; episode < 10; ++episode) {
      const State start = Draw(episode);
      const Outcomes env = DriveEnv(world_, task, law, **policy, start);
      EXPECT_FALSE(env.record.choices.empty());
      ExpectSame(env, DriveController(task, law, **policy, start, start_delay));
    }
  }

  std::shared_ptr<const Scenario> scenario_;
  World world_;
};

TEST_P(Drivers, TakeTheSameDecisionsUnderTheLawOfReach) {
  ExpectSameDecisions({.max_steps = 30}, LatencyLaw::Reach(), std::chrono::seconds(0));
}

TEST_P(Drivers, TakeTheSameDecisionsUnderThePhysicalLaw) {
  ExpectSameDecisions({.max_steps = 30}, LatencyLaw::Physical(), std::chrono::seconds(0));
}

TEST_P(Drivers, TakeTheSameDecisionsWhenMovesTakeTheirTime) {
  ExpectSameDecisions({.step_penalty = StepPenalty::kConstant, .max_steps = 30},
                      LatencyLaw::Reach(), std::chrono::seconds(3));
}

TEST_P(Drivers, TakeTheSameDecisionsWhilePodsRest) {
  const MigrationTask task({.max_steps = 30});
  const auto policy = MakePolicy(GetParam(), task);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  for (uint64_t episode = 0; episode < 5; ++episode) {
    ExpectSameWhilePodsRest(world_, task, LatencyLaw::Physical(), **policy, Draw(episode));
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Drivers,
                         ::testing::Values("stay", "random", "kube-default", "least-allocated",
                                           "most-allocated", "greedy",
                                           "lookahead:evaluations=2000"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (!isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace rudderfish
