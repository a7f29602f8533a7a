// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "control/application_run.h"
#include "policy/greedy.h"
#include "sim/sim_cluster.h"
#include "task/migration.h"
#include "tests/support/small_world.h"

// A day of moving pods, on the clock of the simulated cluster: others move pods meanwhile, moves
// fail, the cluster cannot be seen for minutes, and the process is restarted. What is decided is
// what `run` decides on a live cluster; only the cluster and the clock are others.

namespace rudderfish {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr int kMovesPerHour = 12, kMovesOfNodePerHour = 6, kMovesPerPlan = 5;
constexpr hours kReturnCooldown(1);
// In 20 hours: of what is held for the time being there is more at one moment than at another.
constexpr size_t kGrowthBytes = 16 << 10;

// Some moves fail, half of them late; at times nothing is seen.
class TroubledCluster final : public Cluster {
 public:
  TroubledCluster(State start, uint64_t seed) : real_(std::move(start), seconds(8)), rng_(seed) {}

  Result<void> Refresh(State* state) override {
    if (Now() < unseen_until_) return Fail(ErrorCode::kUnavailable, "the API server is away");
    return real_.Refresh(state);
  }
  void Submit(std::span<const Intent> intents, Completions* completions) override {
    if (rng_.Below(8) == 0) {
      for (const Intent& intent : intents)
        late_.push_back({Now() + seconds(rng_.Below(60)), intent, completions});
      return;
    }
    real_.Submit(intents, completions);
  }
  nanoseconds Now() const override { return real_.Now(); }

  void Advance(nanoseconds by) {
    real_.Advance(by);
    std::erase_if(late_, [&](const Late& late) {
      if (late.at > Now()) return false;
      late.completions->push_back(
          {late.intent, Fail(ErrorCode::kFailedPrecondition, "the replacement does not fit")});
      return true;
    });
    if (rng_.Below(2000) == 0) unseen_until_ = Now() + minutes(1 + rng_.Below(5));
    if (rng_.Below(100) == 0) MoveByOthers();
  }
  bool is_moving() const { return real_.moves_in_flight() > 0 || !late_.empty(); }
  int moved_by_others() const { return moved_by_others_; }

 private:
  struct Late {
    nanoseconds at;
    Intent intent;
    Completions* completions;
  };

  void MoveByOthers() {
    if (is_moving()) return;
    const State& state = real_.state();
    const auto pod = static_cast<PodId>(rng_.Below(static_cast<uint64_t>(state.pods.size())));
    const auto node = static_cast<NodeId>(rng_.Below(static_cast<uint64_t>(state.nodes.size())));
    const Intent intent{Migrate{pod, state.pods.node[pod], node},
                        {.state_version = 0, .pod_was_on = state.pods.node[pod]}};
    // SimCluster answers into what outlives the move.
    others_.emplace_back();
    real_.Submit({&intent, 1}, &others_.back());
    moved_by_others_ += real_.moves_in_flight() > 0 ? 1 : 0;
    while (others_.size() > 8) others_.pop_front();
  }

  SimCluster real_;
  Rng rng_;
  nanoseconds unseen_until_{0};
  std::vector<Late> late_;
  std::deque<Completions> others_;
  int moved_by_others_ = 0;
};

// Checks each row as it comes, and keeps no more than the cooldowns need.
class CheckingJournal final : public Journal, public EvidenceSink {
 public:
  struct Made {
    nanoseconds at;
    std::string workload;
    JournalMove move;
  };

  Result<int64_t> Append(JournalRow row) override {
    ++rows;
    if (row.fate == Fate::kInFlight) Begun(row);
    return rows;
  }
  Result<void> Conclude(int64_t, const RowEnd& end) override {
    ++fates[end.fate];
    return {};
  }
  Result<void> AppendEvidence(const EvidenceRow&) override { return {}; }

  std::vector<EarlierMove> Earlier(nanoseconds now) const {
    std::vector<EarlierMove> moves;
    for (const Made& one : made_)
      moves.push_back({one.workload, one.move.from, one.move.to, now - one.at});
    return moves;
  }

  int64_t rows = 0;
  std::map<Fate, int> fates;

 private:
  void Begun(const JournalRow& row) {
    const JournalMove& move = row.chosen.at(0);
    const auto chosen =
        std::find_if(row.considered.begin(), row.considered.end(),
                     [&](const Alternative& one) { return one.move && one.move->pod == move.pod; });
    ASSERT_NE(chosen, row.considered.end());
    while (!made_.empty() && row.at - made_.front().at >= kReturnCooldown) made_.pop_front();
    ASSERT_LT(made_.size(), static_cast<size_t>(kMovesPerHour)) << "moves of an hour";
    ASSERT_LT(row.step, kMovesPerPlan);
    for (const std::string& node : {move.from, move.to}) {
      const auto of_node = std::count_if(made_.begin(), made_.end(), [&](const Made& one) {
        return one.move.from == node || one.move.to == node;
      });
      ASSERT_LT(of_node, kMovesOfNodePerHour) << "moves of " << node;
    }
    for (const Made& one : made_) {
      ASSERT_FALSE(one.workload == chosen->workload && one.move.from == move.to)
          << "a pod of " << one.workload << " returns to " << move.to;
    }
    made_.push_back({row.at, chosen->workload, move});
  }

  std::deque<Made> made_;  // Within the last hour.
};

ApplicationOptions Options() {
  return {.name = "shop",
          .task = std::make_shared<MigrationTask>(MigrationOptions{}),
          .law = LatencyLaw::Physical(),
          .policy = std::make_shared<GreedyPolicy>(),
          .guard = {.return_cooldown = kReturnCooldown,
                    .moves_per_plan = kMovesPerPlan,
                    .moves_per_hour = {.application = kMovesPerHour, .node = kMovesOfNodePerHour}},
          .rest = minutes(10)};
}

TEST(ADay, KeepsBudgetsAndMemoryThroughDriftFaultsAndRestarts) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Rng rng(seed);
    TroubledCluster cluster(testing::ContinuumWorld({}, &rng), seed);
    CheckingJournal journal;
    auto run = std::make_unique<ApplicationRun>(Options(), &cluster, &cluster, &journal, &journal);
    size_t early_bytes = 0;
    while (cluster.Now() < hours(24)) {
      static_cast<void>(run->Turn(Mode::kEnforce, {}));  // It may be unseen for now.
      if (::testing::Test::HasFatalFailure())
        FAIL() << "seed " << seed << " at " << cluster.Now() / hours(1) << " h";
      cluster.Advance(seconds(1));
      if (rng.Below(4 * 3600) == 0 && !cluster.is_moving()) {
        ASSERT_TRUE(run->Abandon("the process was killed"));
        run = std::make_unique<ApplicationRun>(Options(), &cluster, &cluster, &journal, &journal);
        run->Recall(journal.Earlier(cluster.Now()));
      }
      if (early_bytes == 0 && cluster.Now() >= hours(4)) early_bytes = ::mallinfo2().uordblks;
    }
    const size_t late_bytes = ::mallinfo2().uordblks;
    EXPECT_LE(late_bytes, early_bytes + kGrowthBytes) << "seed " << seed;
    EXPECT_GT(journal.fates[Fate::kDone], 50) << "seed " << seed;
    EXPECT_GT(journal.fates[Fate::kFailed], 5) << "seed " << seed;
    EXPECT_GT(cluster.moved_by_others(), 200) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rudderfish
