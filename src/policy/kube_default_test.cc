// SPDX-License-Identifier: Apache-2.0
#include "policy/kube_default.h"

#include <gtest/gtest.h>

#include "tests/support/play.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::kMib;
using testing::Play;
using testing::WorldBuilder;

Resources Millis(int64_t cpu_millis, int64_t memory_mib) { return {cpu_millis, memory_mib * kMib}; }

TEST(NodeScores, MostAllocatedTruncatesEachResourceAndThenTheirMean) {
  EXPECT_EQ(MostAllocatedScore(Millis(1000, 500), Millis(4000, 1000)), (25 + 50) / 2);
  EXPECT_EQ(MostAllocatedScore(Millis(5000, 500), Millis(4000, 1000)), 75);
}

// Two nodes of 4 cores and 4000 MiB and one of 2 cores and 2000 MiB; three pods of 1 core and 1000
// MiB on the first.
State ThreeNodes() {
  WorldBuilder world;
  const LayerId layer = world.Layer("cloud"), outside = world.Layer("client", false);
  const KindId kind = world.Kind("node", layer), client_kind = world.Kind("client", outside);
  const WorkloadId service = world.Workload("service", 1000, 1000),
                   client = world.Workload("client", 1, 1, false);
  world.Node(kind, 4000, 4000);
  world.Node(kind, 4000, 4000);
  world.Node(kind, 2000, 2000);
  for (int i = 0; i < 3; ++i) world.Pod(service, 0);
  world.Pod(client, world.Node(client_kind, 1000, 1000));
  world.Endpoint({.workload = client, .groups = {{{.workload = service, .execution_ms = 1}}}});
  return world.Build();
}

std::vector<float> Scores(NodeScoring scoring, std::vector<Move>* moves, int* choice) {
  const State state = ThreeNodes();
  const MigrationTask task({});
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  ActionSpace space;
  task.Space(&model, {}, &space);
  Ask ask{&model, &task, {}, &space, nullptr};
  Answer answer;
  NodeScorePolicy(scoring).Decide({&ask, 1}, {&answer, 1});
  for (const Candidate& candidate : space.candidates) moves->push_back(candidate.move);
  *choice = answer.choice;
  return answer.scores;
}

TEST(NodeScorePolicy, GainsAreTheTargetsScoreLessTheOwnNodes) {
  std::vector<Move> moves;
  int choice = 0;
  const std::vector<float> scores = Scores(NodeScoring::kLeastAllocated, &moves, &choice);
  ASSERT_EQ(scores.size(), 3u);
  for (size_t i = 0; i < moves.size(); ++i) {
    // A pod where it is leaves 25 % free; alone on node 1 it leaves 75 %, on node 2 50 %.
    EXPECT_EQ(scores[i], moves[i].to == 1 ? 50 : 25);
  }
  EXPECT_EQ(scores.back(), 0);
  EXPECT_EQ(moves[choice].to, 1);
}

TEST(NodeScorePolicy, KubeDefaultAddsBalanceAndTwiceTheSpread) {
  std::vector<Move> moves;
  int choice = 0;
  const std::vector<float> scores = Scores(NodeScoring::kKubeDefault, &moves, &choice);
  // Balance is 100 everywhere. Spread over three feasible nodes: two other pods at home count 5,
  // none elsewhere 2: scores 40 at home, 100 elsewhere.
  for (size_t i = 0; i < moves.size(); ++i)
    EXPECT_EQ(scores[i], (moves[i].to == 1 ? 50 : 25) + 2 * (100 - 40));
}

TEST(NodeScorePolicy, LeastAllocatedSpreadsAndMostAllocatedPacks) {
  const MigrationTask task({});
  const auto spread =
      Play(NodeScorePolicy(NodeScoring::kLeastAllocated), task, LatencyLaw::Reach(), ThreeNodes());
  EXPECT_TRUE(spread.stopped);
  // The first to the empty large node, 75 % against 25 %; then home has 50 % free with the second
  // pod on it, node 1 too and node 2: nothing gains.
  ASSERT_EQ(spread.moves.size(), 1u);
  EXPECT_EQ(spread.moves[0].to, 1);
  const auto pack =
      Play(NodeScorePolicy(NodeScoring::kMostAllocated), task, LatencyLaw::Reach(), ThreeNodes());
  EXPECT_TRUE(pack.moves.empty());  // 75 % full at home, 50 % on the small node.
}

TEST(NodeScorePolicy, TiesGoToTheLowestNode) {
  WorldBuilder world;
  const LayerId layer = world.Layer("cloud");
  const KindId kind = world.Kind("node", layer);
  const WorkloadId service = world.Workload("service", 1000, 1000),
                   client = world.Workload("client", 1, 1, false);
  for (int i = 0; i < 4; ++i) world.Node(kind, 4000, 4000);
  for (int i = 0; i < 3; ++i) world.Pod(service, 2);
  world.Pod(client, 2);
  world.Endpoint({.workload = client, .groups = {{{.workload = service, .execution_ms = 1}}}});
  const auto played = Play(NodeScorePolicy(NodeScoring::kLeastAllocated), MigrationTask({}),
                           LatencyLaw::Reach(), world.Build());
  ASSERT_FALSE(played.moves.empty());
  EXPECT_EQ(played.moves[0].to, 0);
}

TEST(NodeScorePolicy, APodWithoutRequestsCountsAsKubernetesAssumes) {
  WorldBuilder world;
  const LayerId layer = world.Layer("cloud");
  const KindId kind = world.Kind("node", layer);
  const WorkloadId service = world.Workload("service", 0, 0),
                   client = world.Workload("client", 600, 600, false);
  world.Node(kind, 1000, 1000);
  world.Node(kind, 1000, 1000);
  world.Pod(service, 0);
  world.Pod(client, 0);
  world.Endpoint({.workload = client, .groups = {{{.workload = service, .execution_ms = 1}}}});
  const State state = world.Build();
  const MigrationTask task({});
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  ActionSpace space;
  task.Space(&model, {}, &space);
  Ask ask{&model, &task, {}, &space, nullptr};
  Answer answer;
  NodeScorePolicy(NodeScoring::kLeastAllocated).Decide({&ask, 1}, {&answer, 1});
  ASSERT_EQ(answer.scores.size(), 2u);
  // 100 m and 200 MiB: (90 + 80) / 2 on the empty node, (30 + 20) / 2 at home.
  EXPECT_EQ(answer.scores[0], 85 - 25);
}

}  // namespace
}  // namespace rudderfish
