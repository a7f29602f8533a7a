// SPDX-License-Identifier: Apache-2.0
#include "run/late_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// Cannot be written while it is full.
class FullJournal final : public PlacementJournal {
 public:
  Result<void> AppendPlacements(std::span<PlacementRow> rows,
                                std::span<const PlacementEnd> ends) override {
    if (is_full) return Fail(ErrorCode::kUnavailable, "the disk is full");
    return kept.AppendPlacements(rows, ends);
  }

  bool is_full = false;
  MemoryPlacementJournal kept;
};

class LateJournalTest : public ::testing::Test {
 protected:
  int64_t Append(const std::string& pod) {
    PlacementRow row{.pod = {"shop", pod, "uid-" + pod}, .node = "a"};
    EXPECT_TRUE(late_.AppendPlacements({&row, 1}, {}).has_value());
    return row.number;
  }
  void End(int64_t number, Fate fate = Fate::kDone) {
    const PlacementEnd end{.number = number, .fate = fate, .failure = ""};
    EXPECT_TRUE(late_.AppendPlacements({}, {&end, 1}).has_value());
  }
  const PlacementRow& Row(size_t i) const { return journal_.kept.rows().at(i); }

  ManualClock clock_{Instant(std::chrono::seconds(100))};
  FullJournal journal_;
  JournalHealth health_{&clock_, [] { return Result<void>(); }};
  LateJournal late_{&journal_, &health_};
};

TEST_F(LateJournalTest, WritesAtOnceWhatCanBeWritten) {
  End(Append("x"));
  EXPECT_EQ(Row(0).fate, Fate::kDone);
  EXPECT_EQ(late_.Missing(), "");
}

TEST_F(LateJournalTest, WritesLaterWhatCouldNotBeWrittenWithWhatCameOfItMeanwhile) {
  const int64_t early = Append("early");
  journal_.is_full = true;
  const int64_t ended = Append("ended"), open = Append("open");
  EXPECT_THAT(health_.trouble(), HasSubstr("full"));
  End(early);
  End(ended, Fate::kFailed);
  EXPECT_THAT(late_.Missing(), HasSubstr("2 decisions wait"));
  journal_.is_full = false;
  ASSERT_TRUE(late_.Flush().has_value());
  EXPECT_EQ(late_.Missing(), "");
  EXPECT_EQ(Row(0).fate, Fate::kDone);
  EXPECT_EQ(Row(1).pod.name, "ended");
  EXPECT_EQ(Row(1).fate, Fate::kFailed);
  EXPECT_EQ(Row(2).fate, Fate::kInFlight);
  EXPECT_GT(Row(2).at, 0) << "when it was decided, not when it was written";
  clock_.Advance(std::chrono::seconds(2));
  End(open);
  EXPECT_EQ(Row(2).fate, Fate::kDone);
}

TEST_F(LateJournalTest, KeepsNoMoreThanItMay) {
  journal_.is_full = true;
  int64_t last = 0;
  for (size_t i = 0; i <= LateJournal::kRowsMax; ++i) last = Append("x");
  End(last);
  EXPECT_THAT(late_.Missing(), HasSubstr("10000 decisions wait to be written, 1 are lost"));
  journal_.is_full = false;
  ASSERT_TRUE(late_.Flush().has_value());
  EXPECT_EQ(journal_.kept.rows().size(), LateJournal::kRowsMax);
}

}  // namespace
}  // namespace rudderfish
