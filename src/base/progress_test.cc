// SPDX-License-Identifier: Apache-2.0
#include "base/progress.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "base/log.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A stream in memory and a clock that stands still.
class ProgressTest : public testing::Test {
 protected:
  ~ProgressTest() override {
    std::fclose(stream_);
    std::free(text_);
  }

  ProgressSink Terminal() {
    return {.stream = stream_, .terminal = true, .columns = 40, .clock = &clock_};
  }
  ProgressSink Pipe() { return {.stream = stream_, .clock = &clock_}; }

  // What was written since the last call.
  std::string Written() {
    std::fflush(stream_);
    const std::string all(text_, size_);
    return all.substr(std::exchange(read_, all.size()));
  }

  ManualClock clock_;

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  size_t read_ = 0;
  std::FILE* stream_ = ::open_memstream(&text_, &size_);
};

TEST_F(ProgressTest, RewritesOneLineOnATerminalAndRemovesIt) {
  Progress progress("train", Verbosity::kNormal, Terminal());
  progress.Update(0.25, "80 k steps/s");
  EXPECT_EQ(Written(), "\r\x1b[Ktrain   25 %  80 k steps/s");
  progress.Done();
  EXPECT_EQ(Written(), "\r\x1b[K");
  progress.Update(0.5, "late");
  EXPECT_EQ(Written(), "");
}

TEST_F(ProgressTest, WritesAtMostTenTimesASecond) {
  Progress progress("train", Verbosity::kNormal, Terminal());
  progress.Update(0, "");
  Written();
  clock_.Advance(milliseconds(99));
  progress.Update(0.1, "");
  EXPECT_EQ(Written(), "");
  clock_.Advance(milliseconds(1));
  progress.Update(0.1, "");
  EXPECT_EQ(Written(), "\r\x1b[Ktrain   10 %");
}

TEST_F(ProgressTest, EstimatesTheTimeLeft) {
  Progress progress("train", Verbosity::kNormal, Terminal());
  clock_.Advance(seconds(10));
  progress.Update(0.25, "");
  EXPECT_EQ(Written(), "\r\x1b[Ktrain   25 %  30 s left");
}

TEST_F(ProgressTest, TheEstimateFollowsWhatWasDoneLately) {
  Progress progress("evaluate", Verbosity::kNormal, Terminal());
  clock_.Advance(seconds(60));
  progress.Update(0.97, "");
  EXPECT_EQ(Written(), "\r\x1b[Kevaluate   97 %  2 s left");
  for (int i = 1; i <= 100; ++i) {  // The last 3 % take as long as 5 minutes.
    clock_.Advance(seconds(1));
    progress.Update(0.97 + i * 0.0001, "");
  }
  const std::string all = Written();
  EXPECT_EQ(all.substr(all.rfind('\r')), "\r\x1b[Kevaluate   98 %  3 min 20 s left");
}

TEST_F(ProgressTest, NoEstimateIsShownWhereNothingWasDoneLately) {
  Progress progress("evaluate", Verbosity::kNormal, Terminal());
  for (int i = 1; i <= 100; ++i) {
    clock_.Advance(seconds(1));
    progress.Update(std::min(0.5, i * 0.01), "");
  }
  const std::string all = Written();
  EXPECT_EQ(all.substr(all.rfind('\r')), "\r\x1b[Kevaluate   50 %");
}

TEST_F(ProgressTest, ShowsTheTimeSpentWhereTheEndIsUnknown) {
  Progress progress("search", Verbosity::kNormal, Terminal());
  clock_.Advance(milliseconds(3700));
  progress.Update(std::nullopt, "1.2 M evaluations");
  EXPECT_EQ(Written(), "\r\x1b[Ksearch  3 s  1.2 M evaluations");
}

TEST_F(ProgressTest, NeverFillsTheLastColumnNorCutsALetter) {
  Progress progress("x", Verbosity::kNormal, Terminal());
  std::string text;
  for (int i = 0; i < 50; ++i) text += "µ";
  progress.Update(0, text);
  // 40 columns: "x    0 %  " and 29 letters of two bytes.
  EXPECT_EQ(Written(), "\r\x1b[Kx    0 %  " + text.substr(0, 58));
}

TEST_F(ProgressTest, IsSilentInAPipeUnlessVerbose) {
  Progress normal("train", Verbosity::kNormal, Pipe());
  clock_.Advance(seconds(60));
  normal.Update(0.5, "x");
  EXPECT_EQ(Written(), "");
  Progress verbose("train", Verbosity::kVerbose, Pipe());
  verbose.Update(0, "x");
  EXPECT_EQ(Written(), "");
  clock_.Advance(seconds(5));
  verbose.Update(0.5, "x");
  EXPECT_EQ(Written(), "train   50 %  5 s left  x\n");
  verbose.Done();
  EXPECT_EQ(Written(), "");
}

TEST_F(ProgressTest, IsSilentWhenQuiet) {
  Progress progress("train", Verbosity::kQuiet, Terminal());
  progress.Update(0.5, "x");
  progress.Done();
  EXPECT_EQ(Written(), "");
}

TEST_F(ProgressTest, DimsTheLineWhereColorIsWelcome) {
  ProgressSink sink = Terminal();
  sink.color = true;
  Progress progress("train", Verbosity::kNormal, sink);
  progress.Update(1, "");
  EXPECT_EQ(Written(), "\r\x1b[K\x1b[2mtrain  100 %\x1b[0m");
}

TEST_F(ProgressTest, LogErasesTheStatusLineFirst) {
  testing::internal::CaptureStderr();
  ProgressSink sink = Terminal();
  sink.stream = stderr;
  Progress progress("train", Verbosity::kNormal, sink);
  progress.Update(1, "");
  LogInfo("saved");
  LogInfo("again");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "\r\x1b[Ktrain  100 %\r\x1b[Kinfo: saved\ninfo: again\n");
}

}  // namespace
}  // namespace rudderfish
