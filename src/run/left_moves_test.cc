// SPDX-License-Identifier: Apache-2.0
#include "run/left_moves.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/faulty_server.h"
#include "tests/support/polling.h"

namespace rudderfish {
namespace {

// A journal that can be written once it may.
class BrokenJournal final : public Journal, public EvidenceSink {
 public:
  Result<int64_t> Append(JournalRow row) override { return rows.Append(std::move(row)); }
  Result<void> Conclude(int64_t number, const RowEnd& end) override {
    ++tries;
    if (is_broken) return Fail(ErrorCode::kUnavailable, "the disk is full");
    return rows.Conclude(number, end);
  }
  Result<void> AppendEvidence(const EvidenceRow&) override { return {}; }

  MemoryJournal rows;
  bool is_broken = false;
  int tries = 0;
};

class LeftMovesTest : public ::testing::Test {
 protected:
  LeftMovesTest()
      : server_(
            [](const testing::SeenRequest&, testing::Connection* to) { to->Answer(404, "{}"); }),
        driver_(testing::OpenClient({.server = server_.url()}), {}) {}

  // Of an application whose decision is in flight.
  void Leave(const std::string& application, uint64_t order) {
    const int64_t row =
        fenced_.Append({.application = application, .fate = Fate::kInFlight}).value();
    left_.Add(application, row,
              {.order = order,
               .end = {},
               .tell = [this](const MoveDriver::End& end) { told_.push_back(end.why); }},
              &driver_);
  }

  // No thread works yet: it ends at once.
  uint64_t Ended() { return driver_.Begin({{"shop", "web-1", "u1"}, "b"}); }

  const JournalRow& Row(size_t at) const { return journal_.rows.rows()[at]; }

  testing::FaultyServer server_;
  MoveDriver driver_;
  ManualClock clock_;
  BrokenJournal journal_;
  JournalHealth health_{&clock_, []() -> Result<void> { return {}; }};
  FencedJournal fenced_{
      &journal_, &journal_, {.leads = [] { return true; }, .on_row = [](const JournalRow&) {}}};
  LeftMoves left_{&fenced_, &health_};
  std::vector<std::string> told_;
};

TEST_F(LeftMovesTest, TheOutcomeOfAMoveIsWrittenAndToldOnce) {
  Leave("shop", Ended());
  EXPECT_TRUE(left_.Has("shop"));
  EXPECT_FALSE(left_.Has("other"));
  left_.Conclude(&driver_);
  left_.Conclude(&driver_);
  EXPECT_FALSE(left_.Has("shop"));
  EXPECT_EQ(Row(0).fate, Fate::kFailed);
  EXPECT_EQ(Row(0).failure, "moves are held back");
  EXPECT_EQ(told_, std::vector<std::string>{"moves are held back"});
}

// That it was not begun says nothing of whether pods can be moved.
TEST_F(LeftMovesTest, AMoveThatHasNotBegunIsCancelledAndIsNoFailure) {
  driver_.Start();  // It was told nothing yet, and waits.
  Leave("shop", Ended());
  left_.Conclude(&driver_);
  EXPECT_EQ(Row(0).fate, Fate::kRefused);
  EXPECT_EQ(Row(0).failure, "not begun: the configuration was reloaded");
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(LeftMovesTest, AJournalThatCannotBeWrittenIsTriedOnceAndLater) {
  Leave("shop", Ended());
  Leave("other", Ended());
  journal_.is_broken = true;
  left_.Conclude(&driver_);
  left_.Conclude(&driver_);
  EXPECT_EQ(journal_.tries, 1) << "other kinds of decision wait for it";
  EXPECT_TRUE(left_.Has("shop") && left_.Has("other"));
  journal_.is_broken = false;
  clock_.Advance(std::chrono::minutes(1));
  left_.Conclude(&driver_);
  EXPECT_FALSE(left_.Has("shop") || left_.Has("other"));
  EXPECT_EQ(Row(0).fate, Fate::kFailed);
  EXPECT_EQ(told_.size(), 2u);
}

TEST_F(LeftMovesTest, AtTheEndOfTheProcessWhatHasNotEndedIsUnknown) {
  Leave("shop", Ended() + 7);
  left_.ConcludeAll(&driver_);
  EXPECT_EQ(Row(0).fate, Fate::kUnknown);
  EXPECT_FALSE(left_.Has("shop"));
}

}  // namespace
}  // namespace rudderfish
