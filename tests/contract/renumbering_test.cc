// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "control/controller.h"
#include "policy/greedy.h"
#include "sim/sim_cluster.h"
#include "task/migration.h"
#include "tests/support/slow_greedy.h"
#include "tests/support/small_world.h"

// A policy may think for long, and pods and nodes that come or go meanwhile change the ids of the
// others. What is done is what was decided, by name.

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// A simulated cluster whose pods and nodes have names. Two pods can change their ids; a node can
// give its id to another node.
class RenumberedCluster final : public Cluster {
 public:
  explicit RenumberedCluster(const State& start) : cluster_(start) {
    auto names = std::make_shared<Names>();
    for (int i = 0; i < start.nodes.size(); ++i)
      names->nodes.push_back("node-" + std::to_string(i));
    for (int i = 0; i < start.pods.size(); ++i) names->pods.push_back("pod-" + std::to_string(i));
    names_ = std::move(names);
  }

  Result<void> Refresh(State* state) override {
    TRY(cluster_.Refresh(&real_));
    *state = real_;
    state->names = names_;
    state->version += changes_;
    if (first_ != kNone) std::swap(state->pods.node[first_], state->pods.node[second_]);
    return {};
  }

  void Submit(std::span<const Intent> intents, Completions* completions) override {
    for (Intent intent : intents) {
      auto& migrate = std::get<Migrate>(intent.action);
      done.push_back(
          {names_->pods[migrate.pod], names_->nodes[migrate.from], names_->nodes[migrate.to]});
      if (migrate.pod == first_ || migrate.pod == second_)
        migrate.pod = migrate.pod == first_ ? second_ : first_;
      cluster_.Submit({&intent, 1}, completions);
    }
  }

  std::chrono::nanoseconds Now() const override { return cluster_.Now(); }

  void SwapPods(PodId first, PodId second) {
    first_ = first;
    second_ = second;
    auto names = std::make_shared<Names>(*names_);
    std::swap(names->pods[first], names->pods[second]);
    names_ = std::move(names);
    ++changes_;
  }

  void ReplaceNode(NodeId node) {
    auto names = std::make_shared<Names>(*names_);
    names->nodes[node] = "newcomer";
    names_ = std::move(names);
    ++changes_;
  }

  std::vector<JournalMove> done;

 private:
  SimCluster cluster_;
  State real_;
  std::shared_ptr<const Names> names_;
  PodId first_ = kNone, second_ = kNone;
  uint64_t changes_ = 0;
};

class Renumbering : public ::testing::Test {
 protected:
  static State DrawStart(uint64_t seed) {
    Rng rng(seed);
    return testing::ContinuumWorld({.replicas_max = 4}, &rng);
  }

  // What greedy moves first, by its ids.
  Migrate FirstMove(const State& start) {
    RenumberedCluster cluster(start);
    GreedyPolicy greedy;
    MemoryJournal journal;
    Controller controller(&cluster, &task_, LatencyLaw::Reach(), &greedy, {}, &journal, {});
    EXPECT_TRUE(controller.Turn());
    if (cluster.done.empty()) return {};
    const auto number = [](const std::string& name) {
      return std::stoi(name.substr(name.find('-') + 1));
    };
    const JournalMove& move = cluster.done[0];
    return {number(move.pod), number(move.from), number(move.to)};
  }

  MigrationTask task_{MigrationOptions{}};
  MemoryJournal journal_;
  Worker worker_;
  SlowGreedy slow_;
};

TEST_F(Renumbering, TheMoveIsThatOfThePodThatWasChosen) {
  int tried = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const State start = DrawStart(seed);
    const Migrate first = FirstMove(start);
    if (first.from == first.to) continue;  // It stays.
    PodId other = kNone;
    for (PodId pod = 0; pod < start.pods.size(); ++pod) {
      if (pod != first.pod && start.pods.workload[pod] == start.pods.workload[first.pod] &&
          start.pods.node[pod] != start.pods.node[first.pod])
        other = pod;
    }
    if (other == kNone) continue;
    ++tried;
    RenumberedCluster cluster(start);
    MemoryJournal journal;
    const SlowGreedy slow;
    Controller controller(&cluster, &task_, LatencyLaw::Reach(), &slow, {}, &journal,
                          {.thinker = &worker_});
    ASSERT_EQ(*controller.Turn(), TurnResult::kThinking);
    cluster.SwapPods(first.pod, other);
    slow.GoOn(1000);
    ASSERT_EQ(*controller.RunPlan(), TurnResult::kStopped);
    ASSERT_FALSE(cluster.done.empty());
    EXPECT_EQ(cluster.done[0].pod, "pod-" + std::to_string(first.pod)) << "seed " << seed;
    EXPECT_EQ(cluster.done[0].to, "node-" + std::to_string(first.to));
    EXPECT_EQ(journal.rows()[0].chosen[0], cluster.done[0]);
    EXPECT_EQ(journal.rows()[0].fate, Fate::kDone);
  }
  EXPECT_GT(tried, 3);
}

TEST_F(Renumbering, NoPodGoesToTheNodeThatTookTheIdOfTheOneChosen) {
  const State start = DrawStart(1);
  const Migrate first = FirstMove(start);
  ASSERT_NE(first.from, first.to);
  RenumberedCluster cluster(start);
  Controller controller(&cluster, &task_, LatencyLaw::Reach(), &slow_, {}, &journal_,
                        {.thinker = &worker_});
  ASSERT_EQ(*controller.Turn(), TurnResult::kThinking);
  cluster.ReplaceNode(first.to);
  slow_.GoOn(1000);
  EXPECT_EQ(*controller.RunPlan(), TurnResult::kRefused);
  EXPECT_TRUE(cluster.done.empty());
  ASSERT_EQ(journal_.rows().size(), 1u);
  EXPECT_EQ(journal_.rows()[0].fate, Fate::kRefused);
  EXPECT_EQ(journal_.rows()[0].verdict.reason,
            "node node-" + std::to_string(first.to) + " is gone");
}

}  // namespace
}  // namespace rudderfish
