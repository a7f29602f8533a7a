// SPDX-License-Identifier: Apache-2.0
#include "policy/walks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/greedy.h"
#include "tests/support/play.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::Play;
using testing::Played;
using testing::SoftmaxPolicy;

WalkOptions BesideGreedy(int samples) { return {.samples = samples, .beside_greedy = true}; }

// Wants what latency hates, and never stops.
class PerversePolicy final : public Policy {
 public:
  std::string_view name() const override { return "perverse"; }
  std::unique_ptr<Memory> NewMemory(uint64_t) const override { return std::make_unique<Memory>(); }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    for (size_t i = 0; i < asks.size(); ++i) {
      const auto& candidates = asks[i].space->candidates;
      answers[i].scores.clear();
      answers[i].choice = kStop;
      for (size_t c = 0; c < candidates.size(); ++c) {
        answers[i].scores.push_back(-candidates[c].gain_ms);
        const int best = answers[i].choice;
        if (best == kStop || candidates[c].gain_ms < candidates[best].gain_ms)
          answers[i].choice = static_cast<int>(c);
      }
      answers[i].scores.push_back(-1e9f);
    }
  }
};

TEST(Walks, FallsBackToGreedyWhenTheInnerPolicyIsBad) {
  Rng rng(1);
  const MigrationTask task({.max_steps = 20});
  const WalkPolicy policy("walks", std::make_shared<PerversePolicy>(), BesideGreedy(3));
  int fallbacks = 0;
  for (int i = 0; i < 10; ++i) {
    const State state = ContinuumWorld({}, &rng);
    const Played greedy = Play(GreedyPolicy(), task, LatencyLaw::Reach(), state);
    const Played best = Play(policy, task, LatencyLaw::Reach(), state);
    // No plan goes back, so even this inner policy stumbles now and then on a plan that is better.
    if (best.moves == greedy.moves) {
      ++fallbacks;
    } else {
      EXPECT_LT(best.cost_ms(), greedy.cost_ms());
    }
  }
  EXPECT_GE(fallbacks, 7);
}

TEST(Walks, IsNeverWorseThanGreedyAndMoreSamplesHelp) {
  Rng rng(2);
  const MigrationTask task({});
  double greedy_ms = 0, few_ms = 0, many_ms = 0;
  const WalkPolicy few("few", std::make_shared<SoftmaxPolicy>(20), BesideGreedy(1));
  const WalkPolicy many("many", std::make_shared<SoftmaxPolicy>(20), BesideGreedy(64));
  for (int i = 0; i < 30; ++i) {
    const State state = ContinuumWorld({}, &rng);
    const double greedy = Play(GreedyPolicy(), task, LatencyLaw::Reach(), state).cost_ms();
    const double best = Play(many, task, LatencyLaw::Reach(), state).cost_ms();
    EXPECT_LE(best, greedy + 1e-9);
    greedy_ms += greedy;
    few_ms += Play(few, task, LatencyLaw::Reach(), state).cost_ms();
    many_ms += best;
  }
  EXPECT_LT(many_ms, few_ms);
  EXPECT_LT(many_ms, greedy_ms - 1);
}

// One that takes whatever gains most, however little, and never stops by itself.
class RestlessPolicy final : public Policy {
 public:
  std::string_view name() const override { return "restless"; }
  std::unique_ptr<Memory> NewMemory(uint64_t) const override { return std::make_unique<Memory>(); }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    for (size_t i = 0; i < asks.size(); ++i) {
      const auto& candidates = asks[i].space->candidates;
      const auto best = std::max_element(
          candidates.begin(), candidates.end(),
          [](const Candidate& a, const Candidate& b) { return a.gain_ms < b.gain_ms; });
      answers[i].choice =
          best == candidates.end() ? kStop : static_cast<int>(best - candidates.begin());
    }
  }
};

TEST(Walks, APlanEndsAtTheBestPlacementOfTheWalk) {
  Rng rng(3);
  const MigrationTask task({});
  const WalkPolicy policy("walk", std::make_shared<RestlessPolicy>());
  const RestlessPolicy stepper;
  double greedy_ms = 0, walked_ms = 0;
  int as_planned = 0;
  for (int i = 0; i < 30; ++i) {
    const State state = ContinuumWorld({}, &rng);
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    model.ImagineMoves();
    Walk walk;
    walk.Begin(model, task, {});
    ActionSpace space;
    Answer answer;
    while (walk.steps() < walk.steps_max()) {
      task.Space(&model, walk.question(), &space);
      Ask ask{&model, &task, walk.question(), &space, nullptr};
      stepper.Decide({&ask, 1}, {&answer, 1});
      if (answer.choice == kStop) break;
      const Move move = space.candidates[answer.choice].move;
      model.CommitForGood(move);
      walk.Note(model, move);
    }
    const Played played = Play(policy, task, LatencyLaw::Reach(), state);
    EXPECT_LE(played.cost_ms(), walk.best_objective_ms() + 1e-9);
    as_planned += played.moves.size() == static_cast<size_t>(walk.best_displaced());
    greedy_ms += Play(GreedyPolicy(), task, LatencyLaw::Reach(), state).cost_ms();
    walked_ms += played.cost_ms();
  }
  EXPECT_LT(walked_ms, greedy_ms) << "it walks on where greedy stops";
  EXPECT_GT(as_planned, 15) << "better plans are found on the way, but seldom";
}

TEST(Walks, NoPlanMovesAPodBack) {
  Rng rng(5);
  const MigrationTask task({});
  const WalkPolicy policy("walk", std::make_shared<SoftmaxPolicy>(50), {.samples = 2});
  for (int i = 0; i < 30; ++i) {
    const Played played = Play(policy, task, LatencyLaw::Reach(), ContinuumWorld({}, &rng));
    for (size_t late = 0; late < played.moves.size(); ++late) {
      for (size_t early = 0; early < late; ++early) {
        EXPECT_FALSE(played.moves[early].workload == played.moves[late].workload &&
                     played.moves[early].from == played.moves[late].to);
      }
    }
  }
}

class StopPolicy final : public Policy {
 public:
  std::string_view name() const override { return "stop"; }
  std::unique_ptr<Memory> NewMemory(uint64_t) const override { return std::make_unique<Memory>(); }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    for (size_t i = 0; i < asks.size(); ++i) answers[i].choice = kStop;
  }
};

// Three services that call each other in a chain, far from their client: one or two of them alone
// win nothing at the client's, because the calls between them get as much longer. `room` is that of
// the client's node, in services.
State ChainFarFromItsClient(int room) {
  testing::WorldBuilder world;
  const LayerId cloud = world.Layer("cloud"), edge = world.Layer("edge");
  const KindId far = world.Kind("far", cloud), near = world.Kind("near", edge);
  world.LatencyBothWays(cloud, edge, 100);
  const WorkloadId client = world.Workload("client", 1, 1, false);
  const NodeId source = world.Node(far, 10'000, 10'000),
               target = world.Node(near, room * 100 + 1, 10'000);
  world.Pod(client, target);
  for (int i = 1; i <= 3; ++i) world.Pod(world.Workload("service", 100, 100), source);
  const testing::CallTree third{.workload = 3, .execution_ms = 1, .data_mbytes = 0};
  const testing::CallTree second{
      .workload = 2, .execution_ms = 1, .data_mbytes = 0, .groups = {{third}}};
  const testing::CallTree first{
      .workload = 1, .execution_ms = 1, .data_mbytes = 0, .groups = {{second}}};
  world.Endpoint({.workload = client, .groups = {{first}}});
  return world.Build();
}

TEST(Walks, ADirectedWalkBringsCallersAndCalleesTogetherPastTheHill) {
  const MigrationTask task({});
  const auto stop = std::make_shared<StopPolicy>();
  const WalkPolicy alone("alone", stop), directed("directed", stop, {.directed = 2});
  const State state = ChainFarFromItsClient(3);
  EXPECT_TRUE(Play(alone, task, LatencyLaw::Reach(), state).moves.empty());
  const Played played = Play(directed, task, LatencyLaw::Reach(), state);
  EXPECT_EQ(played.moves.size(), 3u);
  EXPECT_LT(played.final_ms, played.start_ms - 90);
}

TEST(Walks, ADirectedWalkEndsWhereThereIsNoMoreRoom) {
  const MigrationTask task({});
  const auto stop = std::make_shared<StopPolicy>();
  const WalkPolicy directed("directed", stop, {.directed = 4});
  for (int room = 0; room < 3; ++room) {
    const Played played = Play(directed, task, LatencyLaw::Reach(), ChainFarFromItsClient(room));
    EXPECT_LE(played.moves.size(), static_cast<size_t>(room));
    EXPECT_LE(played.cost_ms(), played.start_ms + 1e-9);
  }
}

TEST(Walks, DirectedWalksStandBesideTheOthers) {
  Rng rng(7);
  const MigrationTask task({});
  const SoftmaxPolicy stepper(50);
  Walks alone(stepper, {}, 1), beside(stepper, {.directed = 2}, 1);
  Evaluator model(LatencyLaw::Reach());
  ActionSpace space;
  int better = 0;
  for (int i = 0; i < 100; ++i) {
    const State state = ContinuumWorld({}, &rng);
    model.Reset(state);
    task.Space(&model, {}, &space);
    const Ask ask{&model, &task, {}, &space, nullptr};
    const double alone_ms = alone.PlanFrom(ask)[0].cost_ms;
    const std::span<const Plan> plans = beside.PlanFrom(ask);
    ASSERT_EQ(plans.size(), 3u);
    EXPECT_EQ(plans[0].cost_ms, alone_ms);
    better += std::min(plans[1].cost_ms, plans[2].cost_ms) < alone_ms - 1e-9;
  }
  EXPECT_GT(better, 5) << "a stepper that looks one move ahead misses what needs several";
}

// Lists, of the moves that begin a plan, those of one workload alone, as a client of REACH does
// that names one pod for each service.
class OneWorkloadFirst final : public Task {
 public:
  OneWorkloadFirst(const MigrationTask& task, WorkloadId first) : task_(task), first_(first) {}

  std::string_view name() const override { return task_.name(); }
  int max_steps() const override { return task_.max_steps(); }
  const FeatureTable& features() const override { return task_.features(); }
  GraphWidths widths() const override { return task_.widths(); }
  void Space(Evaluator* model, const Question& question, ActionSpace* space) const override {
    task_.Space(model, question, space);
    if (question.step > 0) return;
    std::erase_if(space->candidates,
                  [this](const Candidate& candidate) { return candidate.move.workload != first_; });
  }
  void Encode(Evaluator* model, const Question& question, ActionSpace* space,
              GraphBatch* batch) const override {
    task_.Encode(model, question, space, batch);
  }
  void Decode(const State& state, const ActionSpace& space, int choice,
              Decision* decision) const override {
    task_.Decode(state, space, choice, decision);
  }
  double StepCost(const Question& question) const override { return task_.StepCost(question); }

 private:
  const MigrationTask& task_;
  WorkloadId first_;
};

TEST(Walks, APlanBeginsWithAMoveThatTheQuestionLists) {
  Rng rng(6);
  const MigrationTask task({});
  const SoftmaxPolicy stepper(50);
  Walks walks(stepper, {.samples = 4}, 1);
  Evaluator model(LatencyLaw::Reach());
  ActionSpace space;
  int begun = 0;
  for (int i = 0; i < 60; ++i) {
    const State state = ContinuumWorld({}, &rng);
    model.Reset(state);
    for (WorkloadId first = 0; first < state.catalog->workload_count(); ++first) {
      const OneWorkloadFirst listed(task, first);
      listed.Space(&model, {}, &space);
      for (const Plan& plan : walks.PlanFrom({&model, &listed, {}, &space, nullptr})) {
        if (plan.moves.empty()) continue;
        EXPECT_NE(FindCandidate(space, plan.moves.front()), kStop);
        ++begun;
      }
    }
  }
  EXPECT_GT(begun, 500) << "a better plan nearly always begins with any one of the workloads";
}

TEST(Walks, ChanceComesFromTheSeed) {
  Rng rng(4);
  const MigrationTask task({});
  const WalkPolicy policy("walks", std::make_shared<SoftmaxPolicy>(50), BesideGreedy(2));
  int different = 0;
  for (int i = 0; i < 10; ++i) {
    const State state = ContinuumWorld({}, &rng);
    const auto moves = Play(policy, task, LatencyLaw::Reach(), state, 1).moves;
    EXPECT_EQ(Play(policy, task, LatencyLaw::Reach(), state, 1).moves, moves);
    different += Play(policy, task, LatencyLaw::Reach(), state, 2).moves != moves;
  }
  EXPECT_GT(different, 0);
}

}  // namespace
}  // namespace rudderfish
