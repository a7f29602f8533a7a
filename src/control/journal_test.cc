// SPDX-License-Identifier: Apache-2.0
#include "control/journal.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

TEST(MemoryJournal, NumbersRowsInTheOrderTheyWereAppended) {
  MemoryJournal journal;
  EXPECT_EQ(*journal.Append({.plan = 7}), 0);
  EXPECT_EQ(*journal.Append({.plan = 8}), 1);
  ASSERT_EQ(journal.rows().size(), 2u);
  EXPECT_EQ(journal.rows()[0].plan, 7);
  EXPECT_EQ(journal.rows()[1].plan, 8);
}

TEST(MemoryJournal, ConcludesARowWithWhatCameOfIt) {
  MemoryJournal journal;
  journal.Append({}).value();
  const int64_t number = journal.Append({.chosen = {{"a-1", "n1", "n2"}}}).value();
  ASSERT_TRUE(journal.Conclude(number, {Fate::kFailed, "n2 has no room", Terms{.latency_ms = 12}}));
  const JournalRow& row = journal.rows()[number];
  EXPECT_EQ(row.fate, Fate::kFailed);
  EXPECT_EQ(row.failure, "n2 has no room");
  ASSERT_TRUE(row.measured.has_value());
  EXPECT_EQ(row.measured->latency_ms, 12);
  EXPECT_EQ(journal.rows()[0].fate, Fate::kInFlight) << "other rows stay as they are";
}

TEST(MemoryJournalDeathTest, DoesNotConcludeARowTwice) {
  MemoryJournal journal;
  const int64_t number = journal.Append({.fate = Fate::kStayed}).value();
  EXPECT_DEATH((void)journal.Conclude(number, {Fate::kDone, "", {}}), "kInFlight");
}

TEST(Journal, EveryFateHasItsName) {
  EXPECT_EQ(FateName(Fate::kInFlight), "in flight");
  EXPECT_EQ(FateName(Fate::kStayed), "stayed");
  EXPECT_EQ(FateName(Fate::kRefused), "refused");
  EXPECT_EQ(FateName(Fate::kDone), "done");
  EXPECT_EQ(FateName(Fate::kFailed), "failed");
  EXPECT_EQ(FateName(Fate::kRecorded), "recorded");
  EXPECT_EQ(FateName(Fate::kUnknown), "unknown");
  EXPECT_EQ(FateNamed("stayed"), Fate::kStayed);
  EXPECT_EQ(FateNamed("unknown"), Fate::kUnknown);
  EXPECT_FALSE(FateNamed("gone"));
}

}  // namespace
}  // namespace rudderfish
