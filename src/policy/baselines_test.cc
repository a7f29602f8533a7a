// SPDX-License-Identifier: Apache-2.0
#include "policy/baselines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/play.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

TEST(StayPolicy, NeverMovesAnything) {
  Rng rng(1);
  const State state = testing::ContinuumWorld({}, &rng);
  const testing::Played played =
      testing::Play(StayPolicy(), MigrationTask({}), LatencyLaw::Reach(), state);
  EXPECT_TRUE(played.moves.empty());
  EXPECT_TRUE(played.stopped);
}

TEST(RandomPolicy, TakesEveryAllowedCellAndStopEquallyOften) {
  testing::WorldBuilder world;
  const LayerId layer = world.Layer("cloud");
  const KindId kind = world.Kind("node", layer);
  const WorkloadId client = world.Workload("client", 1, 1, false),
                   service = world.Workload("service", 100, 100);
  for (int i = 0; i < 3; ++i) world.Node(kind, 1000, 1000);
  world.Pod(client, 0);
  for (NodeId node : {0, 0, 0, 1}) world.Pod(service, node);
  world.Endpoint({.workload = client, .groups = {{{.workload = service, .execution_ms = 1}}}});
  const State state = world.Build();
  const MigrationTask task({});
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  ActionSpace space;
  task.Space(&model, {}, &space);
  ASSERT_EQ(space.count(), 4);        // From two nodes to two others each,
  ASSERT_EQ(space.allowed_cells, 9);  // four pods to two others each, and stop.

  const RandomPolicy policy;
  const auto memory = policy.NewMemory(3);
  Ask ask{&model, &task, {}, &space, memory.get()};
  std::vector<int> drawn(space.count() + 1);
  constexpr int kDraws = 9000;
  Answer answer;
  for (int i = 0; i < kDraws; ++i) {
    policy.Decide({&ask, 1}, {&answer, 1});
    ++drawn[answer.choice == kStop ? space.count() : answer.choice];
  }
  for (int i = 0; i <= space.count(); ++i) {
    const double cells = i == space.count() ? 1 : space.candidates[i].pods;
    const double expected = kDraws * cells / 9;
    EXPECT_NEAR(drawn[i], expected, 5 * std::sqrt(expected)) << "alternative " << i;
  }
}

TEST(RandomPolicy, SeedsDrawDifferently) {
  Rng rng(1);
  const State state = testing::ContinuumWorld({}, &rng);
  const auto play = [&](uint64_t seed) {
    return testing::Play(RandomPolicy(), MigrationTask({}), LatencyLaw::Reach(), state, seed).moves;
  };
  EXPECT_EQ(play(1), play(1));
  EXPECT_NE(play(1), play(2));
}

}  // namespace
}  // namespace rudderfish
