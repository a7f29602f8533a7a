// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace rudderfish {
namespace {

class Log : public testing::Test {
 protected:
  ~Log() override { SetLogLevel(LogLevel::kInfo); }
};

TEST_F(Log, WritesOneLineToStderr) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  LogWarning("node {} has {} pods", "edge-1", 7);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: node edge-1 has 7 pods\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(Log, HidesWhatIsBelowTheLevel) {
  testing::internal::CaptureStderr();
  LogDebug("hidden");
  SetLogLevel(LogLevel::kError);
  LogInfo("hidden");
  LogWarning("hidden");
  LogError("seen {}", 1);
  SetLogLevel(LogLevel::kDebug);
  LogDebug("seen {}", 2);
  SetLogLevel(LogLevel::kOff);
  LogError("hidden");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: seen 1\ndebug: seen 2\n");
}

TEST_F(Log, LeavesBracesInArgumentsAlone) {
  testing::internal::CaptureStderr();
  LogInfo("{}", "a {} b %v");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "info: a {} b %v\n");
}

TEST_F(Log, TextFromOutsideWritesNoLineOfItsOwnAtAnyLevel) {
  SetLogLevel(LogLevel::kDebug);
  const std::string name =
      "a\nerror: FORGED LINE\r\x1b[2K\xc2\x9b"
      "2J\xff";
  testing::internal::CaptureStderr();
  LogDebug("{}", name);
  LogInfo("{}", name);
  LogWarning("{}", name);
  LogError("{}", name);
  const std::string text = R"(a\nerror: FORGED LINE\x0d\x1b[2K\u{9b}2J\xff)";
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "debug: " + text + "\ninfo: " + text + "\nwarning: " + text + "\nerror: " + text + "\n");
}

}  // namespace
}  // namespace rudderfish
