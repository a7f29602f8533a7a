// SPDX-License-Identifier: Apache-2.0
#include "run/shared_standing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/sqlite_journal.h"
#include "tests/support/test_folder.h"

// Of one instance; of several, which share a Lease: tests/modes_test.py.

namespace rudderfish {
namespace {

using Source = ModeSwitch::Source;

class SharedStandingTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }
  // As a restarted process.
  void Start() {
    standing_.reset();
    journal_.reset();
    switches_ = {};
    journal_ = SqliteJournal::Open(folder_ / "j.db", {}).value();
    standing_ =
        SharedStanding::Open({.journal = journal_->modes(), .switches = &switches_}).value();
  }
  void Say(bool paused) {
    switches_.Set(Source::kSocket, {.paused = paused});
    ASSERT_TRUE(standing_->NotePause().has_value());
  }

  testing::TestFolder folder_;
  ModeSwitch switches_;
  std::unique_ptr<SqliteJournal> journal_;
  std::optional<SharedStanding> standing_;
};

TEST_F(SharedStandingTest, PausedStaysPausedUntilItIsResumed) {
  EXPECT_FALSE(switches_.paused());
  Say(true);
  const UnixMillis since = standing_->pause().since;
  EXPECT_GT(since, 0);
  Start();
  EXPECT_TRUE(switches_.paused());
  EXPECT_EQ(standing_->pause().since, since);
  EXPECT_EQ(standing_->pause().by, "the command line");
  Say(true);
  EXPECT_EQ(standing_->pause().since, since) << "it was already";
  Say(false);
  Start();
  EXPECT_FALSE(switches_.paused());
  EXPECT_FALSE(standing_->pause().is_on());
}

TEST_F(SharedStandingTest, WhatCannotBeKeptIsSaidToTheOneWhoAsked) {
  EXPECT_EQ(WithWarning(R"({"ok":true})", "the disk is full"),
            R"({"ok":true,"warning":"the disk is full"})");
}

}  // namespace
}  // namespace rudderfish
