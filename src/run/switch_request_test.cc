// SPDX-License-Identifier: Apache-2.0
#include "run/switch_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

TEST(SwitchRequest, ASwitchIsObeyedAndAnsweredWithWhatHoldsThen) {
  ModeSwitch switches;
  const SwitchedKind kind{
      .name = "placement", .configured = Mode::kCanary, .highest = Mode::kEnforce};
  EXPECT_EQ(AnswerSwitch("pause", kind, &switches),
            R"({"ok":true,"kind":"placement","mode":"off","why":"paused by the command line"})");
  EXPECT_EQ(AnswerSwitch("resume", kind, &switches),
            R"({"ok":true,"kind":"placement","mode":"canary","why":""})");
  EXPECT_THAT(AnswerSwitch("mode shadow", kind, &switches), HasSubstr("\"mode\":\"shadow\""));
  EXPECT_THAT(AnswerSwitch("kill", kind, &switches), HasSubstr("killed"));
  EXPECT_TRUE(switches.killed());
}

TEST(SwitchRequest, WhatIsNoneChangesNothing) {
  ModeSwitch switches;
  const SwitchedKind kind{.name = "migration", .configured = Mode::kShadow};
  for (const char* request : {"", "pauses", "mode", "mode nonsense", "mode enforce", "PAUSE"}) {
    EXPECT_THAT(AnswerSwitch(request, kind, &switches), HasSubstr("\"error\"")) << request;
    EXPECT_EQ(switches.wish(ModeSwitch::Source::kSocket), Wish()) << request;
  }
}

TEST(SwitchRequest, AConfigMapIsObeyedAsFarAsItIsUnderstood) {
  ModeSwitch switches;
  const SwitchedKind kind{
      .name = "placement", .configured = Mode::kEnforce, .highest = Mode::kEnforce};
  EXPECT_THAT(ObeyConfigMap({{{"pause", "yes"}, {"who", "me"}}}, kind, &switches),
              HasSubstr("unknown key `who`"));
  EXPECT_TRUE(switches.paused());
  EXPECT_EQ(ObeyConfigMap({}, kind, &switches), "");
  EXPECT_FALSE(switches.paused());
  EXPECT_THAT(
      ObeyConfigMap(tl::unexpected(Error{ErrorCode::kInvalidArgument, "no text"}), kind, &switches),
      HasSubstr("no text: as `pause`"));
  EXPECT_TRUE(switches.paused());
}

}  // namespace
}  // namespace rudderfish
