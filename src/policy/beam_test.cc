// SPDX-License-Identifier: Apache-2.0
#include "policy/beam.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/play.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::ContinuumWorld;
using testing::RandomWorld;
using testing::WorldBuilder;

TEST(SeenSet, TakesEachHashOnceThroughGrowth) {
  SeenSet seen;
  seen.Clear();
  Rng rng(1);
  std::set<uint64_t> model;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t hash = i % 100 == 0 ? 0 : rng.Next64() % 10'000 * 0x9E3779B97F4A7C15ull;
    EXPECT_EQ(seen.Insert(hash), model.insert(hash + (hash == 0)).second);
  }
  seen.Clear();
  EXPECT_TRUE(seen.Insert(5));
}

struct Searched {
  Beam beam;
  Plan best;  // Appraised.
};

Searched Search(const State& state, const SearchBudget& budget,
                const Task& task = MigrationTask({}), const Clock& clock = SystemClock()) {
  Searched searched;
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  searched.beam.Search(model, task, {}, budget, clock, {});
  searched.best.cost_ms = searched.best.latency_ms = model.Now().latency_ms;
  for (Plan plan : searched.beam.plans()) {
    AppraisePlan(&model, task, {}, &plan);
    if (plan.cost_ms < searched.best.cost_ms) searched.best = plan;
  }
  return searched;
}

// A chain of services alone in a far cloud, the client at the edge: every move but the last makes
// latency worse.
State FarChain(int services) {
  WorldBuilder world;
  const LayerId cloud = world.Layer("cloud"), edge = world.Layer("edge");
  const KindId far = world.Kind("far", cloud), near = world.Kind("near", edge);
  world.LatencyBothWays(cloud, edge, 100);
  const WorkloadId client = world.Workload("client", 1, 1, false);
  const NodeId source = world.Node(far, 100'000, 100'000),
               target = world.Node(near, 100'000, 100'000);
  world.Pod(client, target);
  for (int i = 1; i <= services; ++i) world.Pod(world.Workload("service", 100, 100), source);
  // Each service is called by the client itself, and calls all the others: leaving them costs more
  // than it gains.
  std::vector<std::vector<CallTree>> groups(1);
  for (int i = 1; i <= services; ++i) {
    CallTree call{.workload = i, .execution_ms = 1, .data_mbytes = 0};
    call.groups.resize(1);
    for (int j = 1; j <= services; ++j) {
      if (j != i) call.groups[0].push_back({.workload = j, .execution_ms = 1, .data_mbytes = 0});
    }
    groups[0].push_back(call);
  }
  world.Endpoint({.workload = client, .groups = groups});
  return world.Build();
}

TEST(Beam, CrossesAHillThatIsWiderThanItsPatience) {
  const State state = FarChain(6);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  const double before_ms = model.Now().latency_ms;
  EXPECT_GT(model.Try(Move{1, 0, 1}).latency_ms, before_ms);
  const Searched searched = Search(state, {.width = 8, .patience = 1});
  EXPECT_EQ(searched.best.moves.size(), 6u);
  EXPECT_LT(searched.best.latency_ms, before_ms - 500);
}

TEST(Beam, MakesRoomBeforeItMovesIn) {
  WorldBuilder world;
  const LayerId layer = world.Layer("cloud");
  const KindId slow = world.Kind("slow", layer, 2), fast = world.Kind("fast", layer, 1);
  const WorkloadId client = world.Workload("client", 1, 1, false);
  const WorkloadId heavy = world.Workload("heavy", 1000, 100),
                   light = world.Workload("light", 1000, 100);
  world.Node(slow, 3000, 1000);
  world.Node(fast, 1000, 1000);
  world.Pod(client, 0);
  world.Pod(heavy, 0);
  world.Pod(light, 1);
  world.Endpoint({.workload = client,
                  .groups = {{{.workload = heavy, .execution_ms = 100, .data_mbytes = 0},
                              {.workload = light, .execution_ms = 10, .data_mbytes = 0}}}});
  const Searched searched = Search(world.Build(), {.width = 1, .patience = 1});
  const std::vector<Move> expected{{light, 1, 0}, {heavy, 0, 1}};
  EXPECT_EQ(searched.best.moves, expected);
}

TEST(Beam, VisitsEachPlacementOnce) {
  // Six equal pods on two equal nodes with room for all: seven placements, from each of which two
  // moves lead at most, and two ways there.
  WorldBuilder world;
  const LayerId layer = world.Layer("cloud");
  const KindId kind = world.Kind("node", layer);
  const WorkloadId client = world.Workload("client", 1, 1, false),
                   service = world.Workload("service", 100, 100);
  for (int i = 0; i < 2; ++i) world.Node(kind, 10'000, 10'000);
  world.Pod(client, 0);
  for (int i = 0; i < 6; ++i) world.Pod(service, 0);
  world.Endpoint({.workload = client, .groups = {{{.workload = service, .execution_ms = 1}}}});
  const Searched searched = Search(world.Build(), {.width = 100, .patience = 50});
  EXPECT_EQ(searched.beam.width(), 8);  // Nothing more would be seen by a wider one.
  EXPECT_EQ(searched.beam.evaluations(), 12);
}

TEST(Beam, StaysWithinItsEvaluations) {
  Rng rng(1);
  for (int64_t evaluations : {100, 1000, 10'000}) {
    const State state = ContinuumWorld({}, &rng);
    const Searched searched = Search(state, {.width = 1 << 15, .evaluations = evaluations});
    EXPECT_LT(searched.beam.evaluations(),
              evaluations + 500);  // The placement at hand is always finished.
  }
}

TEST(Beam, WiderIsNotWorse) {
  Rng rng(2);
  double before = 0, after = 0;
  for (int i = 0; i < 20; ++i) {
    const State state = ContinuumWorld({}, &rng);
    before += Search(state, {.width = 8}).best.cost_ms;
    after += Search(state, {.width = 64}).best.cost_ms;
  }
  EXPECT_LE(after, before);
}

class JumpingClock final : public Clock {
 public:
  explicit JumpingClock(Duration step) : step_(step) {}
  Instant Now() const override { return now_ += step_; }

 private:
  Duration step_;
  mutable Instant now_{};
};

TEST(Beam, EndsWhenItsTimeIsUp) {
  Rng rng(3);
  const State state = ContinuumWorld({}, &rng);
  const SearchBudget budget{
      .width = 1 << 15, .evaluations = 1 << 30, .time = std::chrono::milliseconds(1)};
  const int64_t few =
      Search(state, budget, MigrationTask({}), JumpingClock(std::chrono::microseconds(100)))
          .beam.evaluations();
  const int64_t more =
      Search(state, budget, MigrationTask({}), JumpingClock(std::chrono::microseconds(1)))
          .beam.evaluations();
  EXPECT_LT(few, more);
  EXPECT_LT(few, 1000);
}

TEST(Beam, PlansAreBestFirstAndEachOnce) {
  Rng rng(4);
  for (int i = 0; i < 20; ++i) {
    const Searched searched = Search(RandomWorld(&rng), {.width = 32});
    const auto plans = searched.beam.plans();
    for (size_t a = 0; a + 1 < plans.size(); ++a) {
      EXPECT_LE(plans[a].cost_ms, plans[a + 1].cost_ms);
      EXPECT_NE(plans[a].moves, plans[a + 1].moves);
    }
  }
}

// Latency by kind is what the plan really ends at, under a law without node effects.
TEST(Beam, KnowsWhatItsPlansCost) {
  Rng rng(5);
  for (int i = 0; i < 50; ++i) {
    const State state = RandomWorld(&rng);
    const Searched searched = Search(state, {.width = 16});
    if (searched.beam.plans().empty()) continue;
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    Plan plan = searched.beam.plans()[0];
    const size_t moves = plan.moves.size();
    AppraisePlan(&model, MigrationTask({}), {}, &plan);
    if (plan.moves.size() < moves) continue;  // Better to stop short of it.
    EXPECT_NEAR(plan.cost_ms, searched.beam.plans()[0].cost_ms, 1e-2);
  }
}

// More moves than the exhaustive limit: representatives only, many nodes.
TEST(Beam, FindsItsWayInALargeWorld) {
  WorldBuilder world;
  const LayerId cloud = world.Layer("cloud"), edge = world.Layer("edge");
  const KindId far = world.Kind("far", cloud), near = world.Kind("near", edge);
  world.LatencyBothWays(cloud, edge, 100);
  const WorkloadId client = world.Workload("client", 1, 1, false),
                   service = world.Workload("service", 1000, 100);
  for (int i = 0; i < 100; ++i) world.Node(i < 50 ? far : near, 1500, 10'000);
  world.Pod(client, 99);
  for (int i = 0; i < 40; ++i) world.Pod(service, i);
  world.Endpoint({.workload = client, .groups = {{{.workload = service, .execution_ms = 10}}}});
  const Searched searched = Search(world.Build(), {.width = 8});
  EXPECT_EQ(searched.best.moves.size(), 12u);  // 99 ms / 40 a move; the 13th would cost 2.6 ms.
}

}  // namespace
}  // namespace rudderfish
