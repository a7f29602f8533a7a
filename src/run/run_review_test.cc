// SPDX-License-Identifier: Apache-2.0
#include "run/run_review.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "control/sqlite_journal.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

class KeptModesTest : public ::testing::Test {
 protected:
  KeptModesTest() {
    config_.journal.path = folder_ / "journal.db";
    config_.placement.emplace();
    config_.placement->mode = Mode::kShadow;
    config_.placement->clusters.emplace_back().name = "us";
  }

  void Keep(const std::string& kind, Mode mode) {
    const auto journal = SqliteJournal::Open(config_.journal.path, {});
    ASSERT_TRUE(journal);
    ASSERT_TRUE((*journal)->modes()->KeepMode(
        kind, {.configured = Mode::kShadow, .mode = mode, .policy = "p", .since = 5}));
  }

  const testing::TestFolder folder_;
  Config config_;
};

TEST_F(KeptModesTest, WithoutAJournalTheFileCounts) {
  EXPECT_EQ(TakeKeptModes(&config_), "");
  EXPECT_EQ(config_.placement->mode, Mode::kShadow);
}

// What one cluster was promoted to is asked of no other.
TEST_F(KeptModesTest, EachClusterHasItsOwn) {
  Keep("placement/us", Mode::kEnforce);
  EXPECT_THAT(TakeKeptModes(&config_), HasSubstr("placement/us: enforce since "));
  EXPECT_EQ(config_.placement->mode, Mode::kShadow);
  EXPECT_EQ(config_.placement->clusters[0].kept_mode, Mode::kEnforce);
  Keep("placement", Mode::kCanary);
  TakeKeptModes(&config_);
  EXPECT_EQ(config_.placement->mode, Mode::kCanary);
}

TEST_F(KeptModesTest, AJournalThatCannotBeReadIsSaid) {
  std::ofstream(config_.journal.path)
      << "no database, but longer than the header of one by far, so "
         "that it is read: ................................";
  EXPECT_THAT(TakeKeptModes(&config_),
              HasSubstr("that of the file; the journal may keep a higher one"));
  EXPECT_EQ(config_.placement->mode, Mode::kShadow);
}

}  // namespace
}  // namespace rudderfish
