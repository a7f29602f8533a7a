// SPDX-License-Identifier: Apache-2.0
#include "run/switch_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

TEST(SwitchRequest, ASwitchIsObeyedAndAnsweredWithWhatHoldsThen) {
  ModeSwitch switches;
  const SwitchedKind kind{.name = "placement", .configured = Mode::kCanary};
  EXPECT_EQ(AnswerSwitch("pause", {&kind, 1}, &switches),
            R"({"ok":true,"kinds":[{"kind":"placement","mode":"off",)"
            R"("why":"paused by the command line"}]})");
  EXPECT_EQ(AnswerSwitch("resume", {&kind, 1}, &switches),
            R"({"ok":true,"kinds":[{"kind":"placement","mode":"canary","why":""}]})");
  EXPECT_THAT(AnswerSwitch("mode shadow", {&kind, 1}, &switches), HasSubstr("\"mode\":\"shadow\""));
  EXPECT_THAT(AnswerSwitch("kill", {&kind, 1}, &switches), HasSubstr("killed"));
  EXPECT_TRUE(switches.killed());
}

TEST(SwitchRequest, OneSwitchHoldsAllKindsBack) {
  ModeSwitch switches;
  const SwitchedKind kinds[] = {{.name = "placement", .configured = Mode::kCanary},
                                {.name = "migration", .configured = Mode::kShadow}};
  EXPECT_EQ(AnswerSwitch("mode shadow", kinds, &switches),
            R"({"ok":true,"kinds":[{"kind":"placement","mode":"shadow",)"
            R"("why":"held at shadow by the command line"},)"
            R"({"kind":"migration","mode":"shadow","why":""}]})");
  AnswerSwitch("pause", kinds, &switches);
  for (const SwitchedKind& kind : kinds) {
    EXPECT_EQ(switches.Effective(kind.configured), Mode::kOff) << kind.name;
  }
}

TEST(SwitchRequest, WhatIsNoneChangesNothing) {
  ModeSwitch switches;
  const SwitchedKind kind{.name = "migration", .configured = Mode::kShadow};
  for (const char* request : {"", "pauses", "mode", "mode nonsense", "PAUSE"}) {
    EXPECT_THAT(AnswerSwitch(request, {&kind, 1}, &switches), HasSubstr("\"error\"")) << request;
    EXPECT_EQ(switches.wish(ModeSwitch::Source::kSocket), Wish()) << request;
  }
}

TEST(SwitchRequest, AConfigMapIsObeyedAsFarAsItIsUnderstood) {
  ModeSwitch switches;
  const SwitchedKind kind{.name = "placement", .configured = Mode::kEnforce};
  EXPECT_THAT(ObeyConfigMap({{{"pause", "yes"}, {"who", "me"}}}, {&kind, 1}, &switches),
              HasSubstr("unknown key `who`"));
  EXPECT_TRUE(switches.paused());
  EXPECT_EQ(ObeyConfigMap({}, {&kind, 1}, &switches), "");
  EXPECT_FALSE(switches.paused());
  EXPECT_THAT(ObeyConfigMap(tl::unexpected(Error{ErrorCode::kInvalidArgument, "no text"}),
                            {&kind, 1}, &switches),
              HasSubstr("no text: as `pause`"));
  EXPECT_TRUE(switches.paused());
}

}  // namespace
}  // namespace rudderfish
