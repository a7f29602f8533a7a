// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "control/application_run.h"
#include "policy/baselines.h"
#include "policy/greedy.h"
#include "sim/sim_cluster.h"
#include "task/migration.h"
#include "tests/contract/cluster_contract.h"
#include "tests/support/small_world.h"

// Shadow over the simulated cluster. It stands here because control may not include sim.

namespace rudderfish {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

State DrawStart(uint64_t seed) {
  Rng rng(seed);
  return testing::ContinuumWorld({}, &rng);
}

// Owns what a ShadowCluster only borrows.
class ShadowOfSimulated final : public Cluster {
 public:
  explicit ShadowOfSimulated(const State& start) : real_(start), shadow_(&real_) {}
  Result<void> Refresh(State* state) override { return shadow_.Refresh(state); }
  void Submit(std::span<const Intent> intents, Completions* completions) override {
    shadow_.Submit(intents, completions);
  }
  std::chrono::nanoseconds Now() const override { return shadow_.Now(); }

 private:
  SimCluster real_;
  ShadowCluster shadow_;
};

TEST(ClusterContract, HoldsForTheShadow) {
  CheckCluster(
      [](const State& start) {
        return ClusterUnderTest{std::make_unique<ShadowOfSimulated>(start), [] {}};
      },
      3);
}

// A pod moved by somebody else: the first that may go to the first node with room.
void MoveByHand(SimCluster* cluster) {
  const State& state = cluster->state();
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (!state.workload_of(pod).movable) continue;
    for (NodeId node = 0; node < state.nodes.size(); ++node) {
      const Intent intent{Migrate{pod, state.pods.node[pod], node},
                          {.state_version = 0, .pod_was_on = state.pods.node[pod]}};
      Completions completions;
      cluster->Submit({&intent, 1}, &completions);
      if (completions[0].outcome) return;
    }
  }
  FAIL() << "no pod can be moved";
}

class CountingSink final : public EvidenceSink {
 public:
  Result<void> AppendEvidence(const EvidenceRow& row) override {
    rows.push_back(row);
    return {};
  }
  std::vector<EvidenceRow> rows;
};

class ApplicationRunTest : public ::testing::Test {
 protected:
  ApplicationOptions Options() const {
    return {.name = "shop",
            .task = std::make_shared<MigrationTask>(MigrationOptions{}),
            .law = LatencyLaw::Physical(),
            .policy = std::make_shared<GreedyPolicy>(),
            .baseline = std::make_shared<StayPolicy>()};
  }
  // Turns until nothing more is to be done.
  void Settle(ApplicationRun* run, Mode mode = Mode::kShadow) {
    for (int i = 0; i < 1000; ++i) {
      if (!run->Turn(mode, {}).value()) return;
    }
    FAIL() << "the plan does not end";
  }

  MemoryJournal journal_;
  CountingSink evidence_;
};

TEST_F(ApplicationRunTest, ShadowTouchesNothingAndRecordsAWholePlan) {
  SimCluster real(DrawStart(1));
  const State before = real.state();
  ApplicationRun run(Options(), &real, &real, &journal_, &evidence_);
  Settle(&run);
  EXPECT_EQ(real.state().pods.node, before.pods.node);
  EXPECT_EQ(real.state().version, before.version);
  const auto rows = journal_.rows();
  ASSERT_GT(rows.size(), 1u);
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    EXPECT_EQ(rows[i].fate, Fate::kRecorded);
    EXPECT_EQ(rows[i].mode, "shadow");
    EXPECT_EQ(rows[i].application, "shop");
    EXPECT_EQ(rows[i].baseline, "stay");
    EXPECT_EQ(rows[i + 1].seen.latency_ms, rows[i].predicted.latency_ms)
        << "a later step is decided on what the earlier ones would have led to";
    EXPECT_GT(rows[i].refused_count, 0) << "clients may not be moved";
    EXPECT_FALSE(rows[i].refused.empty());
  }
  EXPECT_EQ(rows.back().fate, Fate::kStayed);
  EXPECT_EQ(run.status().moves, static_cast<int64_t>(rows.size()) - 1);
  EXPECT_EQ(run.status().plans, 1);
}

TEST_F(ApplicationRunTest, AdviceTouchesNothingAndIsRecordedAsSuch) {
  SimCluster real(DrawStart(1));
  const uint64_t version = real.state().version;
  ApplicationRun run(Options(), &real, &real, &journal_, &evidence_);
  Settle(&run, Mode::kAdvise);
  EXPECT_EQ(real.state().version, version);
  ASSERT_GT(journal_.rows().size(), 1u);
  EXPECT_EQ(journal_.rows()[0].fate, Fate::kRecorded);
  EXPECT_EQ(journal_.rows()[0].mode, "advise");
}

TEST_F(ApplicationRunTest, EnforceCarriesOutEachMoveBeforeItDecidesTheNext) {
  SimCluster real(DrawStart(1), seconds(7));
  ApplicationRun run(Options(), &real, &real, &journal_, &evidence_);
  EXPECT_FALSE(run.Turn(Mode::kEnforce, {}).value());
  ASSERT_TRUE(run.is_moving());
  EXPECT_FALSE(run.Turn(Mode::kEnforce, {}).value()) << "it is not there yet";
  ASSERT_EQ(journal_.rows().size(), 1u);
  EXPECT_EQ(journal_.rows()[0].fate, Fate::kInFlight);
  for (int i = 0; i < 1000 && run.status().plans == 0; ++i) {
    real.Advance(seconds(1));
    ASSERT_TRUE(run.Turn(Mode::kEnforce, {}).has_value());
    EXPECT_LE(real.moves_in_flight(), 1);
  }
  const auto rows = journal_.rows();
  ASSERT_GT(rows.size(), 2u);
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    EXPECT_EQ(rows[i].fate, Fate::kDone);
    EXPECT_EQ(rows[i].mode, "enforce");
    EXPECT_EQ(rows[i].measured->latency_ms, rows[i].predicted.latency_ms);
  }
  EXPECT_EQ(run.status().moved, static_cast<int64_t>(rows.size()) - 1);
  EXPECT_EQ(run.status().seen.latency_ms, rows.back().seen.latency_ms);
  EXPECT_FALSE(run.Turn(Mode::kEnforce, {}).value()) << "its own moves ask for no other plan";
  EXPECT_EQ(run.status().plans, 1);
}

TEST_F(ApplicationRunTest, CanaryMovesPodsOfItsShareOnlyAndEnforceThoseOfAll) {
  SimCluster real(DrawStart(1));
  const State before = real.state();
  ApplicationOptions options = Options();
  options.canary = 0.01;  // One workload is left.
  ApplicationRun run(options, &real, &real, &journal_, &evidence_);
  Settle(&run, Mode::kCanary);
  std::set<WorkloadId> moved;
  for (PodId pod = 0; pod < before.pods.size(); ++pod) {
    if (real.state().pods.node[pod] != before.pods.node[pod])
      moved.insert(before.pods.workload[pod]);
  }
  EXPECT_EQ(moved.size(), 1u);
  EXPECT_EQ(journal_.rows()[0].mode, "canary");
  const int64_t in_canary = run.status().moved;
  EXPECT_GT(in_canary, 0);
  Settle(&run, Mode::kEnforce);
  EXPECT_GT(run.status().moved, in_canary) << "at once, though the cluster has not changed";
}

TEST_F(ApplicationRunTest, NoPodGoesWhereAnEarlierProcessMovedOneAwayFrom) {
  SimCluster first(DrawStart(1)), second(DrawStart(1));
  ApplicationOptions options = Options();
  options.guard.return_cooldown = std::chrono::hours(1);
  ApplicationRun before(options, &first, &first, &journal_, &evidence_);
  Settle(&before, Mode::kEnforce);
  const JournalRow move = journal_.rows()[0];
  MemoryJournal after;
  ApplicationRun run(options, &second, &second, &after, &evidence_);
  run.Recall({{.workload = move.considered[0].workload,
               .from = move.chosen[0].to,
               .ago = std::chrono::minutes(59)}});
  Settle(&run, Mode::kEnforce);
  ASSERT_FALSE(after.rows()[0].chosen.empty());
  EXPECT_NE(after.rows()[0].chosen, move.chosen);
  for (const JournalRow& row : after.rows()) {
    if (row.chosen.empty() || row.considered[0].workload != move.considered[0].workload) continue;
    EXPECT_NE(row.chosen[0].to, move.chosen[0].to);
  }
}

TEST_F(ApplicationRunTest, APodWhoseMoveFailedInAnEarlierProcessRests) {
  SimCluster first(DrawStart(1)), second(DrawStart(1));
  ApplicationOptions options = Options();
  options.guard.pod_cooldown = std::chrono::hours(1);
  ApplicationRun before(options, &first, &first, &journal_, &evidence_);
  Settle(&before, Mode::kEnforce);
  const std::string pod = journal_.rows()[0].chosen[0].pod;
  MemoryJournal after;
  ApplicationRun run(options, &second, &second, &after, &evidence_);
  run.Recall({{.ago = std::chrono::minutes(30), .pod = pod, .is_failed = true}});
  Settle(&run, Mode::kEnforce);
  ASSERT_FALSE(after.rows()[0].chosen.empty());
  for (const JournalRow& row : after.rows()) {
    if (row.chosen.empty()) continue;
    EXPECT_NE(row.chosen[0].pod, pod);
  }
}

TEST_F(ApplicationRunTest, WhatIsPromotedActsAtOnce) {
  SimCluster real(DrawStart(1));
  ApplicationRun run(Options(), &real, &real, &journal_, &evidence_);
  Settle(&run, Mode::kAdvise);
  EXPECT_EQ(run.status().moved, 0);
  Settle(&run, Mode::kEnforce);
  EXPECT_GT(run.status().moved, 0);
}

// Refuses whatever is submitted.
class RefusingCluster final : public Cluster {
 public:
  explicit RefusingCluster(Cluster* real) : real_(real) {}
  Result<void> Refresh(State* state) override { return real_->Refresh(state); }
  void Submit(std::span<const Intent> intents, Completions* completions) override {
    for (const Intent& intent : intents)
      completions->push_back({intent, Fail(ErrorCode::kFailedPrecondition, "not this pod")});
  }
  std::chrono::nanoseconds Now() const override { return real_->Now(); }

 private:
  Cluster* real_;
};

TEST_F(ApplicationRunTest, MovesThatFailAreOtherPodsEachAndEndThePlan) {
  SimCluster real(DrawStart(1));
  RefusingCluster refusing(&real);
  ApplicationRun run(Options(), &real, &refusing, &journal_, &evidence_);
  Settle(&run, Mode::kEnforce);
  ASSERT_EQ(journal_.rows().size(), 3u);
  std::set<std::string> pods;
  for (const JournalRow& row : journal_.rows()) {
    EXPECT_EQ(row.fate, Fate::kFailed);
    EXPECT_EQ(row.failure, "not this pod");
    pods.insert(row.chosen[0].pod);
  }
  EXPECT_EQ(pods.size(), 3u);
  EXPECT_EQ(run.status().not_moved, 3);
  Settle(&run, Mode::kEnforce);
  EXPECT_EQ(journal_.rows().size(), 3u) << "until it has rested";
}

TEST_F(ApplicationRunTest, WhatIsUnderWayIsHeardOfWhileNothingIsDecided) {
  SimCluster real(DrawStart(1), seconds(7));
  ApplicationRun run(Options(), &real, &real, &journal_, &evidence_);
  ASSERT_TRUE(run.Turn(Mode::kEnforce, {}).has_value());
  real.Advance(seconds(8));
  EXPECT_FALSE(run.Turn(Mode::kOff, {}).value());
  EXPECT_FALSE(run.is_moving());
  EXPECT_EQ(journal_.rows()[0].fate, Fate::kDone);
  EXPECT_FALSE(run.Turn(Mode::kOff, {}).value());
  EXPECT_EQ(journal_.rows().size(), 1u);
}

TEST_F(ApplicationRunTest, ShadowDecidesWhatTheControllerWouldHaveDone) {
  SimCluster real(DrawStart(5)), enforced(DrawStart(5));
  ApplicationRun run(Options(), &real, &real, &journal_, &evidence_);
  Settle(&run);
  MemoryJournal done;
  const ApplicationOptions options = Options();
  Controller controller(&enforced, options.task.get(), options.law, options.policy.get(),
                        options.guard, &done, {.seed = options.seed});
  controller.RunPlan().value();
  ASSERT_EQ(done.rows().size(), journal_.rows().size());
  for (size_t i = 0; i < done.rows().size(); ++i) {
    EXPECT_EQ(done.rows()[i].chosen, journal_.rows()[i].chosen);
  }
}

TEST_F(ApplicationRunTest, UnchangedClusterIsPlannedAgainOnlyAfterARest) {
  SimCluster real(DrawStart(1));
  ApplicationRun run(Options(), &real, &real, &journal_, &evidence_);
  Settle(&run);
  const size_t rows = journal_.rows().size();
  real.Advance(minutes(9));
  Settle(&run);
  EXPECT_EQ(journal_.rows().size(), rows);
  real.Advance(minutes(2));
  Settle(&run);
  EXPECT_EQ(journal_.rows().size(), 2 * rows) << "the same plan, from what is real";
}

TEST_F(ApplicationRunTest, ChangeOfTheRealClusterBeginsANewPlanOnIt) {
  SimCluster real(DrawStart(1));
  ApplicationRun run(Options(), &real, &real, &journal_, &evidence_);
  ASSERT_TRUE(run.Turn(Mode::kShadow, {}).value()) << "the plan goes on";
  MoveByHand(&real);
  run.Turn(Mode::kShadow, {}).value();
  const auto rows = journal_.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].plan, rows[0].plan + 1);
  EXPECT_EQ(rows[1].step, 0);
  Evaluator model(LatencyLaw::Physical());
  model.Reset(real.state());
  EXPECT_EQ(rows[1].seen.latency_ms, model.Now().latency_ms) << "nothing imagined is left";
}

TEST_F(ApplicationRunTest, PodsThatWereOnlyImaginedToMoveDoNotRest) {
  SimCluster real(DrawStart(1));
  ApplicationOptions options = Options();
  options.guard.pod_cooldown = minutes(60);
  ApplicationRun run(options, &real, &real, &journal_, &evidence_);
  Settle(&run);
  const size_t rows = journal_.rows().size();
  real.Advance(minutes(11));
  Settle(&run);
  ASSERT_EQ(journal_.rows().size(), 2 * rows);
  EXPECT_EQ(journal_.rows()[rows].chosen, journal_.rows()[0].chosen);
  EXPECT_EQ(journal_.rows().back().fate, Fate::kStayed);
}

TEST_F(ApplicationRunTest, OffDecidesNothingAndGoesOnAfterwards) {
  SimCluster real(DrawStart(1));
  ApplicationRun run(Options(), &real, &real, &journal_, &evidence_);
  Settle(&run, Mode::kOff);
  EXPECT_TRUE(journal_.rows().empty());
  EXPECT_GT(run.status().pods, 0) << "it still looks";
  Settle(&run);
  EXPECT_FALSE(journal_.rows().empty());
}

// The real cluster's answers grow old.
class StaleCluster final : public Cluster {
 public:
  explicit StaleCluster(const State& state) : state_(state) {}
  Result<void> Refresh(State* state) override {
    *state = state_;
    return {};
  }
  void Submit(std::span<const Intent>, Completions*) override { FAIL() << "must not act"; }
  std::chrono::nanoseconds Now() const override { return state_.at + age; }
  std::chrono::nanoseconds age{0};

 private:
  State state_;
};

TEST_F(ApplicationRunTest, NothingIsDecidedOnAStateOlderThanTheLimit) {
  StaleCluster stale(DrawStart(1));
  ApplicationRun run(Options(), &stale, &stale, &journal_, &evidence_);
  stale.age = seconds(31);
  const auto result = run.Turn(Mode::kShadow, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "what is known of the cluster is 31 s old, more than the limit of 30 s: nothing is "
            "decided on it");
  EXPECT_EQ(run.status().problem, result.error().message);
  EXPECT_TRUE(journal_.rows().empty());
  stale.age = seconds(29);
  Settle(&run);
  EXPECT_FALSE(journal_.rows().empty());
  EXPECT_EQ(run.status().problem, "");
}

// Cannot be written for a while: at its first append, or when it should conclude.
class FailingJournal final : public Journal {
 public:
  Result<int64_t> Append(JournalRow row) override {
    if (fails_append) return Fail(ErrorCode::kUnavailable, "the disk is full");
    return kept.Append(std::move(row));
  }
  Result<void> Conclude(int64_t number, const RowEnd& end) override {
    if (fails_conclude) return Fail(ErrorCode::kUnavailable, "the disk is full");
    return kept.Conclude(number, end);
  }
  MemoryJournal kept;
  bool fails_append = false, fails_conclude = false;
};

TEST_F(ApplicationRunTest, DecidesNothingWhileTheJournalCannotBeWritten) {
  SimCluster real(DrawStart(1)), other(DrawStart(1));
  FailingJournal failing;
  ApplicationRun run(Options(), &real, &real, &failing, &evidence_);
  failing.fails_append = true;
  EXPECT_FALSE(run.Turn(Mode::kShadow, {}));
  EXPECT_EQ(run.status().problem, "the disk is full");
  failing.fails_append = false;
  failing.fails_conclude = true;
  EXPECT_FALSE(run.Turn(Mode::kShadow, {}));
  EXPECT_FALSE(run.Turn(Mode::kShadow, {}));
  EXPECT_EQ(failing.kept.rows().size(), 1u) << "nothing new while one is not concluded";
  failing.fails_conclude = false;
  Settle(&run);

  ApplicationRun undisturbed(Options(), &other, &other, &journal_, &evidence_);
  Settle(&undisturbed);
  ASSERT_EQ(failing.kept.rows().size(), journal_.rows().size());
  for (size_t i = 0; i < journal_.rows().size(); ++i) {
    EXPECT_EQ(failing.kept.rows()[i].chosen, journal_.rows()[i].chosen);
    EXPECT_EQ(failing.kept.rows()[i].fate, journal_.rows()[i].fate);
  }
}

}  // namespace
}  // namespace rudderfish
