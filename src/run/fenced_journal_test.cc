// SPDX-License-Identifier: Apache-2.0
#include "run/fenced_journal.h"

#include <gtest/gtest.h>

#include <vector>

namespace rudderfish {
namespace {

class CountedEvidence final : public EvidenceSink {
 public:
  Result<void> AppendEvidence(const EvidenceRow&) override {
    ++rows;
    return {};
  }
  int rows = 0;
};

class FencedJournalTest : public ::testing::Test {
 protected:
  bool leads_ = true;
  std::vector<Fate> told_;
  MemoryJournal memory_;
  CountedEvidence evidence_;
  FencedJournal journal_{&memory_,
                         &evidence_,
                         {.leads = [this] { return leads_; },
                          .on_row = [this](const JournalRow& row) { told_.push_back(row.fate); }}};
};

TEST_F(FencedJournalTest, WhoLeadsNoMoreWritesNoRow) {
  EXPECT_TRUE(journal_.Append({.fate = Fate::kStayed}));
  leads_ = false;
  EXPECT_FALSE(journal_.Append({.fate = Fate::kStayed}));
  EXPECT_TRUE(journal_.AppendEvidence({}));
  EXPECT_EQ(memory_.rows().size(), 1U);
  EXPECT_EQ(evidence_.rows, 0);
  EXPECT_EQ(journal_.trouble(), "") << "the journal itself is well";
}

TEST_F(FencedJournalTest, RowInFlightIsConcludedAndToldOnceWithItsFate) {
  const int64_t number = journal_.Append({.application = "a", .fate = Fate::kInFlight}).value();
  EXPECT_TRUE(told_.empty());
  leads_ = false;
  EXPECT_TRUE(journal_.Conclude(number, {Fate::kRecorded, "", {}}));
  EXPECT_EQ(told_, std::vector{Fate::kRecorded});
  EXPECT_EQ(memory_.rows()[0].fate, Fate::kRecorded);
}

}  // namespace
}  // namespace rudderfish
