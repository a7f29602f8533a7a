// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/rng.h"
#include "sim/world.h"
#include "tests/support/tiny_scenario.h"

namespace rudderfish {
namespace {

using namespace std::chrono_literals;

State TinyState(uint64_t seed = 1) {
  const World world(testing::TinyScenario());
  State state;
  Rng rng(seed);
  CHECK(world.Draw(&rng, &state).has_value());
  return state;
}

// The last pod, the only one of its workload, is in the cloud on one of two nodes.
Migrate MoveOfLastPod(const State& state) {
  const PodId pod = state.pods.size() - 1;
  return {.pod = pod, .from = state.pods.node[pod], .to = 1 - state.pods.node[pod]};
}

Intent IntentOf(const Migrate& migrate, const State& seen) {
  return {migrate, {.state_version = seen.version, .pod_was_on = seen.pods.node[migrate.pod]}};
}

State Observe(SimCluster* cluster) {
  State state;
  CHECK(cluster->Refresh(&state).has_value());
  return state;
}

void ExpectSame(const State& a, const State& b) {
  EXPECT_EQ(a.at, b.at);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.nodes.free, b.nodes.free);
  EXPECT_EQ(a.nodes.allocatable, b.nodes.allocatable);
  EXPECT_EQ(a.pods.node, b.pods.node);
  EXPECT_EQ(a.pods.workload, b.pods.workload);
  EXPECT_EQ(a.catalog, b.catalog);
}

TEST(SimCluster, ShowsTheStateItStartedFrom) {
  const State start = TinyState();
  SimCluster cluster(start);
  ExpectSame(Observe(&cluster), start);
}

TEST(SimCluster, MoveWithoutDelayIsDoneWithinSubmit) {
  const State start = TinyState();
  SimCluster cluster(start);
  const Migrate move = MoveOfLastPod(start);
  Completions completions;
  cluster.Submit(std::vector{IntentOf(move, start)}, &completions);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_TRUE(completions[0].outcome.has_value());
  EXPECT_EQ(std::get<Migrate>(completions[0].intent.action), move);
  const State after = Observe(&cluster);
  CheckConsistent(after);
  EXPECT_EQ(after.pods.node[move.pod], move.to);
  EXPECT_GT(after.version, start.version);
}

TEST(SimCluster, OldPodServesUntilTheReplacementHasStarted) {
  const State start = TinyState();
  SimCluster cluster(start, 3s);
  const Migrate move = MoveOfLastPod(start);
  Completions completions;
  cluster.Submit(std::vector{IntentOf(move, start)}, &completions);
  cluster.Advance(2999ms);
  EXPECT_TRUE(completions.empty());
  EXPECT_EQ(cluster.moves_in_flight(), 1);
  EXPECT_EQ(Observe(&cluster).pods.node[move.pod], move.from);
  cluster.Advance(1ms);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_TRUE(completions[0].outcome.has_value());
  EXPECT_EQ(cluster.moves_in_flight(), 0);
  EXPECT_EQ(Observe(&cluster).pods.node[move.pod], move.to);
  EXPECT_EQ(cluster.Now(), start.at + 3s);
}

TEST(SimCluster, MovesFinishInTheOrderOfSubmission) {
  const State start = TinyState(3);
  SimCluster cluster(start, 10ms);
  Completions completions;
  std::vector<PodId> submitted;
  for (PodId pod = start.pods.size() - 1; pod > 0; --pod) {
    for (NodeId to = 0; to < 2; ++to) {  // Big nodes.
      if (start.pods.node[pod] == to || !start.nodes.free[to].Fits({3000, 0})) continue;
      cluster.Submit(std::vector{IntentOf({pod, start.pods.node[pod], to}, start)}, &completions);
      cluster.Advance(1ms);
      submitted.push_back(pod);
      break;
    }
  }
  ASSERT_GE(submitted.size(), 2u);
  cluster.Advance(1h);
  ASSERT_EQ(completions.size(), submitted.size());
  for (size_t i = 0; i < submitted.size(); ++i) {
    EXPECT_EQ(std::get<Migrate>(completions[i].intent.action).pod, submitted[i]);
  }
}

TEST(SimCluster, PodThatHasMovedMeanwhileIsAConflict) {
  const State start = TinyState();
  SimCluster cluster(start);
  const Migrate move = MoveOfLastPod(start);
  Completions completions;
  const Intent intent = IntentOf(move, start);
  cluster.Submit(std::vector{intent, intent}, &completions);
  ASSERT_EQ(completions.size(), 2u);
  ASSERT_FALSE(completions[1].outcome.has_value());
  EXPECT_EQ(completions[1].outcome.error().code, ErrorCode::kConflict);
  EXPECT_EQ(completions[1].outcome.error().message,
            PodName(start, move.pod) + " is on " + NodeName(start, move.to) + " by now");
}

TEST(SimCluster, PodThatIsBeingMovedIsAConflict) {
  const State start = TinyState();
  SimCluster cluster(start, 1s);
  const Intent intent = IntentOf(MoveOfLastPod(start), start);
  Completions completions;
  cluster.Submit(std::vector{intent, intent}, &completions);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].outcome.error().code, ErrorCode::kConflict);
}

TEST(SimCluster, MoveOfAnotherPodIsNoConflict) {
  const State start = TinyState();
  SimCluster cluster(start);
  Completions completions;
  const Migrate there = MoveOfLastPod(start);
  cluster.Submit(std::vector{IntentOf(there, start)}, &completions);
  State seen = Observe(&cluster);
  const Intent back = IntentOf({there.pod, there.to, there.from}, seen);
  seen.version += 1000;  // What else has happened does not matter.
  cluster.Submit(std::vector{back}, &completions);
  ASSERT_EQ(completions.size(), 2u);
  EXPECT_TRUE(completions[1].outcome.has_value());
}

TEST(SimCluster, IdsOfAnotherClusterAreAConflict) {
  const State start = TinyState();
  SimCluster cluster(start);
  Completions completions;
  const Migrate move = MoveOfLastPod(start);
  const Preconditions seen{.pod_was_on = move.from};
  cluster.Submit(std::vector{Intent{Migrate{1000, move.from, move.to}, seen},
                             Intent{Migrate{-1, move.from, move.to}, seen},
                             Intent{Migrate{move.pod, move.from, 1000}, seen},
                             Intent{Migrate{move.pod, move.from, -1}, seen},
                             Intent{Migrate{move.pod, move.to, move.to}, seen}},
                 &completions);
  ASSERT_EQ(completions.size(), 5u);
  for (const Completion& completion : completions) {
    ASSERT_FALSE(completion.outcome.has_value());
    EXPECT_EQ(completion.outcome.error().code, ErrorCode::kConflict);
  }
}

TEST(SimCluster, MoveToWhereThePodIsIsRefused) {
  const State start = TinyState();
  SimCluster cluster(start);
  Completions completions;
  Migrate move = MoveOfLastPod(start);
  move.to = move.from;
  cluster.Submit(std::vector{IntentOf(move, start)}, &completions);
  EXPECT_EQ(completions[0].outcome.error().code, ErrorCode::kFailedPrecondition);
}

TEST(SimCluster, NodeWithoutRoomRefusesAndNothingChanges) {
  State start = TinyState();
  const Migrate move = MoveOfLastPod(start);
  const Resources& requests = start.workload_of(move.pod).requests;
  start.nodes.allocatable[move.to] -= start.nodes.free[move.to];
  start.nodes.free[move.to] = requests - Resources{1, 0};
  start.nodes.allocatable[move.to] += start.nodes.free[move.to];
  SimCluster cluster(start);
  Completions completions;
  cluster.Submit(std::vector{IntentOf(move, start)}, &completions);
  ASSERT_FALSE(completions[0].outcome.has_value());
  EXPECT_EQ(completions[0].outcome.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(completions[0].outcome.error().message,
            NodeName(start, move.to) + " has no room for " + PodName(start, move.pod));
  ExpectSame(Observe(&cluster), start);
}

TEST(SimCluster, ReplacementThatStartsTakesItsRoomAtOnce) {
  State start = TinyState(3);
  // Two pods of one workload on the first node, room for one of them on the second.
  const Resources requests = start.catalog->workloads[1].requests;
  start.pods.workload = {1, 1};
  start.pods.node = {0, 0};
  for (NodeId node = 0; node < start.nodes.size(); ++node)
    start.nodes.free[node] = start.nodes.allocatable[node];
  start.nodes.free[0] -= requests + requests;
  start.nodes.allocatable[1] = start.nodes.free[1] = requests;
  SimCluster cluster(start, 1s);
  Completions completions;
  cluster.Submit(std::vector{IntentOf({0, 0, 1}, start), IntentOf({1, 0, 1}, start)}, &completions);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].outcome.error().code, ErrorCode::kFailedPrecondition);
  cluster.Advance(1s);
  EXPECT_THAT(Observe(&cluster).pods.node, ::testing::ElementsAre(1, 0));
}

// However often a driver looks, it sees the same as one who looks for the first time.
RC_GTEST_PROP(SimClusterProperty, RefreshOfAnyStateShowsWhatIs, (uint32_t seed)) {
  Rng rng(seed);
  SimCluster cluster(TinyState(seed), std::chrono::milliseconds(rng.Below(3)));
  State often, seldom;
  Completions completions;
  for (int turn = 0; turn < 30; ++turn) {
    if (rng.Below(3) > 0) {
      RC_ASSERT(cluster.Refresh(&often).has_value());
    } else if (rng.Below(4) == 0) {
      RC_ASSERT(cluster.Refresh(&seldom).has_value());
      RC_ASSERT(seldom.pods.node == cluster.state().pods.node);
    }
    if (often.pods.size() == 0) continue;
    const PodId pod = static_cast<PodId>(rng.Below(often.pods.size()));
    const NodeId to = static_cast<NodeId>(rng.Below(often.nodes.size()));
    cluster.Submit(std::vector{IntentOf({pod, often.pods.node[pod], to}, often)}, &completions);
    cluster.Advance(1ms);
  }
  RC_ASSERT(cluster.Refresh(&often).has_value());
  const State fresh = Observe(&cluster);
  CheckConsistent(often);
  RC_ASSERT(often.pods.node == fresh.pods.node);
  RC_ASSERT(often.nodes.free == fresh.nodes.free);
  RC_ASSERT(often.version == fresh.version);
  RC_ASSERT(often.at == fresh.at);
}

TEST(SimCluster, StateThatItsHolderHasChangedIsRefilled) {
  const State start = TinyState();
  SimCluster cluster(start);
  State seen = Observe(&cluster);
  ASSERT_TRUE(cluster.Refresh(&seen).has_value());
  const Migrate move = MoveOfLastPod(start);
  MovePod(move.pod, move.to, &seen);  // A plan tried out in place.
  ASSERT_TRUE(cluster.Refresh(&seen).has_value());
  ExpectSame(seen, start);
}

}  // namespace
}  // namespace rudderfish
