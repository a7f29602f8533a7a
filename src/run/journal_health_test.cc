// SPDX-License-Identifier: Apache-2.0
#include "run/journal_health.h"

#include <gtest/gtest.h>

#include "base/log.h"

namespace rudderfish {
namespace {

using std::chrono::seconds;

class JournalHealthTest : public ::testing::Test {
 protected:
  void Fail() { health_.Failed({ErrorCode::kUnavailable, "the disk is full"}); }

  // What has nothing to write works.
  void WorkFor(int time_s) {
    for (int i = 0; i < time_s; ++i) {
      clock_.Advance(seconds(1));
      health_.Worked();
    }
  }

  ManualClock clock_{Instant(seconds(100))};
  int probes_ = 0;
  bool is_full_ = true;
  JournalHealth health_{&clock_, [this]() -> Result<void> {
                          ++probes_;
                          if (is_full_) return Unavailable();
                          return {};
                        }};

  static tl::unexpected<Error> Unavailable() {
    return rudderfish::Fail(ErrorCode::kUnavailable, "the disk is full, still");
  }
};

TEST_F(JournalHealthTest, NothingIsProbedWhileAllIsWell) {
  WorkFor(100);
  EXPECT_EQ(probes_, 0);
  EXPECT_TRUE(health_.MayTry());
}

TEST_F(JournalHealthTest, WhatHadNothingToWriteEndsNoTrouble) {
  Fail();
  EXPECT_FALSE(health_.MayTry());
  WorkFor(1);
  EXPECT_TRUE(health_.MayTry());
  EXPECT_EQ(health_.trouble(), "the disk is full");
  WorkFor(100);
  EXPECT_EQ(health_.trouble(), "the disk is full, still");
  EXPECT_GE(probes_, 5);
  EXPECT_LE(probes_, 7);
}

TEST_F(JournalHealthTest, FailuresThatComeAgainWhileOtherThingsWorkAreOneTrouble) {
  is_full_ = false;
  for (int i = 0; i < 20; ++i) {
    Fail();
    WorkFor(10);  // As a pod that backs off.
    EXPECT_FALSE(health_.trouble().empty());
  }
  EXPECT_EQ(probes_, 0);
  WorkFor(5);
  EXPECT_TRUE(health_.trouble().empty());
  EXPECT_EQ(probes_, 1);
}

}  // namespace
}  // namespace rudderfish
