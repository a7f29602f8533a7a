// SPDX-License-Identifier: Apache-2.0
#include "control/evidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "control/application_run.h"
#include "control/journal_reader.h"
#include "control/model_corrector.h"
#include "control/sqlite_journal.h"
#include "policy/greedy.h"
#include "sim/sim_cluster.h"
#include "task/migration.h"
#include "tests/support/small_world.h"

// From a cluster that drifts to the error that `status` shows: ApplicationRun in shadow over the
// simulated cluster, measured by a world in which requests take a tenth longer than the Model
// thinks, or run half as long again; journal and reader. It stands here because control may not
// include sim.

namespace rudderfish {
namespace {

using std::chrono::seconds;

constexpr double kWorldIsSlower = 1.1;

State DrawStart() {
  Rng rng(3);
  return testing::ContinuumWorld({}, &rng);
}

class EvidenceChain : public ::testing::Test {
 protected:
  EvidenceChain()
      : path_(std::filesystem::path(::testing::TempDir()) /
              // Tests run side by side, and a journal has one writer.
              (std::string("evidence_chain_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".db")),
        cluster_(DrawStart()),
        model_(LatencyLaw::Physical()) {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path_.string() + end);
    journal_ = SqliteJournal::Open(path_, {}).value();
    run_ = MakeRun();
  }

  std::unique_ptr<ApplicationRun> MakeRun() {
    return std::make_unique<ApplicationRun>(
        ApplicationOptions{.name = "shop",
                           .task = std::make_shared<const MigrationTask>(MigrationOptions{}),
                           .law = LatencyLaw::Physical(),
                           .policy = std::make_shared<const GreedyPolicy>(),
                           .baseline = nullptr,
                           .evidence = {.model = model_name_}},
        &cluster_, &cluster_, journal_->moves(), journal_->moves());
  }

  double Modelled() {
    model_.Reset(cluster_.state());
    return model_.Now().latency_ms;
  }

  // In the world calls take `execution` times as long as the Model thinks.
  double Measured() {
    model_.Reset(cluster_.state());
    const Terms& terms = model_.Now();
    return slower_ * (terms.latency_ms + (execution_ - 1) * terms.execution_ms);
  }

  // Time passes; what is measured then is a mean over the last ten seconds.
  void TurnAfter(seconds time) {
    cluster_.Advance(time);
    const Reading reading{
        .value_ms = Measured(), .at = cluster_.Now(), .window = seconds(10), .source = "test"};
    for (int turns = 0; turns < 100; ++turns) {
      if (!run_->Turn(Mode::kShadow, {&reading, 1}).value()) return;
    }
    FAIL() << "the plan does not end";
  }

  // Somebody else moves a pod. Returns by how much the Model thinks that latency changes.
  double Drift(Rng* rng) {
    const double before_ms = Modelled();
    while (true) {
      const State& state = cluster_.state();
      const auto pod = static_cast<PodId>(rng->Below(static_cast<uint32_t>(state.pods.size())));
      const auto to = static_cast<NodeId>(rng->Below(static_cast<uint32_t>(state.nodes.size())));
      const NodeId from = state.pods.node[pod];
      if (to == from || !state.workload_of(pod).movable) continue;
      const Intent intent{Migrate{pod, from, to}, {.state_version = 0, .pod_was_on = from}};
      Completions completions;
      cluster_.Submit({&intent, 1}, &completions);
      if (completions[0].outcome) return Modelled() - before_ms;
    }
  }

  double slower_ = kWorldIsSlower, execution_ = 1;
  std::string model_name_ = "first";
  std::filesystem::path path_;
  SimCluster cluster_;
  Evaluator model_;
  std::unique_ptr<SqliteJournal> journal_;
  std::unique_ptr<ApplicationRun> run_;
};

TEST_F(EvidenceChain, ErrorOfTheModelIsWhatTheWorldDiffersFromIt) {
  constexpr int kChanges = 12;
  TurnAfter(seconds(60));
  Rng rng(7);
  double sum = 0, absolute = 0;
  for (int i = 0; i < kChanges; ++i) {
    const double error_ms = (1 - kWorldIsSlower) * Drift(&rng);
    sum += error_ms;
    absolute += std::abs(error_ms);
    TurnAfter(seconds(5));  // Seen, not settled yet.
    TurnAfter(seconds(60));
  }
  const auto sums = JournalReader::Open(path_).value().Evidence().value();
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].application, "shop");
  EXPECT_EQ(sums[0].term, "latency_ms");
  EXPECT_EQ(sums[0].count, kChanges);
  EXPECT_GT(absolute, 1) << "else the drift shows nothing";
  EXPECT_NEAR(sums[0].mean_ms(), sum / kChanges, 1e-6);
  EXPECT_NEAR(sums[0].mean_absolute_ms(), absolute / kChanges, 1e-6);
  EXPECT_TRUE(sums[0].interval_ms().has_value());
  EXPECT_GE(run_->status().plans, kChanges) << "each change starts a new plan";
}

TEST_F(EvidenceChain, MovesThatAreOnlyImaginedAreNoEvidence) {
  for (int i = 0; i < 5; ++i) TurnAfter(seconds(60));
  EXPECT_GT(run_->status().moves, 0);
  EXPECT_EQ(run_->evidence().changes_seen(), 0);
  EXPECT_TRUE(JournalReader::Open(path_).value().Evidence().value().empty());
}

TEST_F(EvidenceChain, ACorrectedModelIsRightAboutTheNextChangesAndForgetsNothingByARestart) {
  slower_ = 1;
  execution_ = 1.5;
  ModelCorrector corrector(journal_->moves());
  Rng rng(11);
  const auto change = [&] {
    Drift(&rng);
    TurnAfter(seconds(5));
    TurnAfter(seconds(60));
    corrector.Follow(run_.get());
  };
  TurnAfter(seconds(60));
  corrector.Follow(run_.get());
  EXPECT_EQ(run_->factors(), LatencyFactors()) << "nothing was measured";
  for (int i = 0; i < ModelCorrection::kFew - 1; ++i) change();
  TurnAfter(seconds(5));
  EXPECT_EQ(run_->factors(), LatencyFactors()) << "too few changes";
  for (int i = 0; i < 20; ++i) change();
  TurnAfter(seconds(5));  // Applied between plans.
  const LatencyFactors applied = run_->factors();
  EXPECT_NEAR(applied.execution, 1.5, 0.05);
  EXPECT_NEAR(applied.network, 1, 0.05);
  EXPECT_NEAR(run_->status().seen.latency_ms, Measured(), 0.02 * Measured());

  const auto error_of_last = [&] {
    const auto sums = JournalReader::Open(path_).value().Evidence().value();
    return sums.at(0).absolute_sum;
  };
  const double before = error_of_last();
  double uncorrected = 0;
  for (int i = 0; i < 10; ++i) {
    const double was = Measured() - Modelled();
    change();
    uncorrected += std::abs(Measured() - Modelled() - was);
  }
  EXPECT_GT(uncorrected, 2) << "else the changes show nothing";
  EXPECT_LT(error_of_last() - before, uncorrected / 5);
  EXPECT_EQ(run_->factors(), applied) << "what is corrected is not corrected once more";

  run_ = MakeRun();
  ModelCorrector next(journal_->moves());
  TurnAfter(seconds(5));
  next.Follow(run_.get());
  TurnAfter(seconds(5));
  EXPECT_NEAR(run_->factors().execution, applied.execution, 0.02);
}

TEST_F(EvidenceChain, EvidenceOfAnotherModelCorrectsNothing) {
  execution_ = 1.5;
  ModelCorrector corrector(journal_->moves());
  Rng rng(11);
  TurnAfter(seconds(60));
  for (int i = 0; i < 12; ++i) {
    Drift(&rng);
    TurnAfter(seconds(5));
    TurnAfter(seconds(60));
  }
  model_name_ = "mended";
  run_ = MakeRun();
  TurnAfter(seconds(5));
  corrector.Follow(run_.get());
  TurnAfter(seconds(5));
  EXPECT_EQ(run_->factors(), LatencyFactors());
}

}  // namespace
}  // namespace rudderfish
