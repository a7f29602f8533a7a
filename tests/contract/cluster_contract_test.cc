// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/cluster_contract.h"

#include <gtest/gtest.h>

#include "kube/dump.h"
#include "kube/kube_cluster.h"
#include "sim/sim_cluster.h"
#include "tests/support/small_world.h"
#include "tests/support/state_dump.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;

void ExpectSame(const State& a, const State& b) {
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.pods.node, b.pods.node);
  EXPECT_EQ(a.pods.workload, b.pods.workload);
  EXPECT_EQ(a.nodes.kind, b.nodes.kind);
  EXPECT_EQ(a.nodes.free, b.nodes.free);
  EXPECT_EQ(a.catalog, b.catalog);
  EXPECT_EQ(a.calls, b.calls);
}

Migrate DrawMove(const State& state, Rng* rng) {
  Migrate move;
  do {
    move.pod = static_cast<PodId>(rng->Below(state.pods.size()));
  } while (!state.workload_of(move.pod).movable);
  move.from = state.pods.node[move.pod];
  do {
    move.to = static_cast<NodeId>(rng->Below(state.nodes.size()));
  } while (move.to == move.from);
  return move;
}

bool HasRoom(const State& state, const Migrate& move) {
  return state.nodes.free[move.to].Fits(state.workload_of(move.pod).requests);
}

// Submits one intent and returns what became of it.
Result<void> SubmitAndSettle(const ClusterUnderTest& under, const Intent& intent) {
  Completions completions;
  under.cluster->Submit({&intent, 1}, &completions);
  under.settle();
  EXPECT_EQ(completions.size(), 1u) << "every intent is completed, once";
  if (completions.empty()) return Fail(ErrorCode::kDeadlineExceeded, "no completion");
  EXPECT_EQ(std::get<Migrate>(completions[0].intent.action), std::get<Migrate>(intent.action));
  return completions[0].outcome;
}

// A random walk of moves, most of them possible. A State that is kept up to date must equal one
// that is filled from scratch.
void CheckWalk(const ClusterUnderTest& under, Rng* rng) {
  Cluster& cluster = *under.cluster;
  State kept;
  ASSERT_TRUE(cluster.Refresh(&kept));
  auto time = cluster.Now();
  for (int step = 0; step < 50; ++step) {
    const Migrate move = DrawMove(kept, rng);
    const bool possible = HasRoom(kept, move);
    const State before = kept;
    const auto outcome =
        SubmitAndSettle(under, {move, {.state_version = kept.version, .pod_was_on = move.from}});
    EXPECT_EQ(outcome.has_value(), possible);
    if (!possible) {
      EXPECT_EQ(outcome.error().code, ErrorCode::kFailedPrecondition) << outcome.error().message;
    }
    ASSERT_TRUE(cluster.Refresh(&kept));
    CheckConsistent(kept);
    EXPECT_EQ(kept.pods.node[move.pod], possible ? move.to : move.from);
    if (possible) {
      EXPECT_GT(kept.version, before.version);
    } else {
      EXPECT_EQ(kept.pods.node, before.pods.node);
    }
    EXPECT_GE(cluster.Now(), time) << "time does not go back";
    time = cluster.Now();
  }
  State fresh;
  ASSERT_TRUE(cluster.Refresh(&fresh));
  ExpectSame(fresh, kept);
}

// Who saw something else than what is there now changes nothing.
void CheckStaleIntents(const ClusterUnderTest& under, Rng* rng) {
  State state;
  ASSERT_TRUE(under.cluster->Refresh(&state));
  Migrate move;
  do {
    move = DrawMove(state, rng);
  } while (!HasRoom(state, move));
  const Intent seen{move, {.state_version = state.version, .pod_was_on = move.from}};
  ASSERT_TRUE(SubmitAndSettle(under, seen));
  ASSERT_TRUE(under.cluster->Refresh(&state));
  const auto again = SubmitAndSettle(under, seen);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  State after;
  ASSERT_TRUE(under.cluster->Refresh(&after));
  ExpectSame(after, state);
}

void CheckQuiet(const ClusterUnderTest& under, const State& start) {
  State state;
  ASSERT_TRUE(under.cluster->Refresh(&state));
  CheckConsistent(state);
  EXPECT_EQ(state.pods.node, start.pods.node) << "the first Refresh fills an empty State";
  const State first = state;
  ASSERT_TRUE(under.cluster->Refresh(&state));
  ExpectSame(state, first);
}

void CheckRefusals(const ClusterUnderTest& under, Rng* rng) {
  State state;
  ASSERT_TRUE(under.cluster->Refresh(&state));
  for (int i = 0; i < 20; ++i) {
    const Migrate move = DrawMove(state, rng);
    const Intent seen{move, {.state_version = state.version, .pod_was_on = move.from}};
    const auto refused = SubmitAndSettle(under, seen);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition) << refused.error().message;
    const Intent stale{Migrate{move.pod, move.to, move.from},
                       {.state_version = state.version, .pod_was_on = move.to}};
    const auto conflict = SubmitAndSettle(under, stale);
    ASSERT_FALSE(conflict);
    EXPECT_EQ(conflict.error().code, ErrorCode::kConflict) << conflict.error().message;
  }
  State after;
  ASSERT_TRUE(under.cluster->Refresh(&after));
  ExpectSame(after, state);
}

}  // namespace

void CheckReadOnlyCluster(const ClusterMaker& make, uint64_t seed) {
  for (uint64_t episode = 0; episode < 5; ++episode) {
    Rng rng(seed, episode);
    const State start = ContinuumWorld({.replicas_max = 3}, &rng);
    CheckQuiet(make(start), start);
    CheckRefusals(make(start), &rng);
  }
}

void CheckCluster(const ClusterMaker& make, uint64_t seed) {
  for (uint64_t episode = 0; episode < 5; ++episode) {
    Rng rng(seed, episode);
    const State start = ContinuumWorld({.replicas_max = 3}, &rng);
    CheckQuiet(make(start), start);
    CheckWalk(make(start), &rng);
    CheckStaleIntents(make(start), &rng);
  }
}

namespace {

ClusterUnderTest MakeSimCluster(const State& start, std::chrono::nanoseconds start_delay) {
  auto cluster = std::make_unique<SimCluster>(start, start_delay);
  SimCluster* simulated = cluster.get();
  return {std::move(cluster), [simulated, start_delay] { simulated->Advance(start_delay); }};
}

TEST(ClusterContract, HoldsForTheSimulatedClusterThatMovesAtOnce) {
  CheckCluster([](const State& start) { return MakeSimCluster(start, std::chrono::seconds(0)); },
               1);
}

TEST(ClusterContract, HoldsForTheSimulatedClusterThatTakesItsTime) {
  CheckCluster([](const State& start) { return MakeSimCluster(start, std::chrono::seconds(20)); },
               2);
}

// What a KubeCluster lives on, kept alive beside it.
class DumpedCluster final : public Cluster {
 public:
  explicit DumpedCluster(const State& start)
      : mirror_(&clock_), cluster_(&mirror_, testing::ApplicationOf(start)) {
    kube::DumpContent content;
    for (int i = 0; i < kube::kMirroredCount; ++i) {
      mirror_.SinkOf(static_cast<kube::Resource>(i))->BeginList();
    }
    const auto read = kube::ReadDump(testing::DumpOf(start), "dump", &mirror_, &content);
    EXPECT_TRUE(read) << read.error().message;
    for (const auto& [resource, unused] : content.counts) mirror_.SinkOf(resource)->EndList();
  }

  Result<void> Refresh(State* state) override { return cluster_.Refresh(state); }
  void Submit(std::span<const Intent> intents, Completions* completions) override {
    cluster_.Submit(intents, completions);
  }
  Duration Now() const override { return cluster_.Now(); }

 private:
  ManualClock clock_;
  kube::Mirror mirror_;
  kube::KubeCluster cluster_;
};

TEST(ClusterContract, HoldsForADumpOfARealClusterButForMoves) {
  CheckReadOnlyCluster(
      [](const State& start) {
        return ClusterUnderTest{std::make_unique<DumpedCluster>(start), [] {}};
      },
      3);
}

// The same situation as objects and as a simulated cluster gives the same numbers.
TEST(ClusterContract, ADumpShowsWhatTheSimulatedClusterShows) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed, 0);
    const State start = ContinuumWorld({}, &rng);
    SimCluster simulated(start);
    DumpedCluster dumped(start);
    State a, b;
    ASSERT_TRUE(simulated.Refresh(&a));
    ASSERT_TRUE(dumped.Refresh(&b));
    EXPECT_EQ(a.nodes.allocatable, b.nodes.allocatable);
    EXPECT_EQ(a.nodes.free, b.nodes.free);
    EXPECT_EQ(a.nodes.kind, b.nodes.kind);
    EXPECT_EQ(a.pods.node, b.pods.node);
    EXPECT_EQ(a.pods.workload, b.pods.workload);
    EXPECT_EQ(a.network.latency_ms, b.network.latency_ms);
    for (WorkloadId w = 0; w < a.catalog->workload_count(); ++w) {
      EXPECT_EQ(a.catalog->workloads[w].requests, b.catalog->workloads[w].requests);
      EXPECT_EQ(a.catalog->workloads[w].movable, b.catalog->workloads[w].movable);
    }
  }
}

}  // namespace
}  // namespace rudderfish
