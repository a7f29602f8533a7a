// SPDX-License-Identifier: Apache-2.0
#include "control/mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using Source = ModeSwitch::Source;

TEST(Mode, NamesReadBack) {
  for (const Mode mode :
       {Mode::kOff, Mode::kShadow, Mode::kAdvise, Mode::kCanary, Mode::kEnforce}) {
    EXPECT_EQ(ModeNamed(ModeName(mode)).value(), mode);
  }
  EXPECT_EQ(ModeNamed("shadwo").error().message,
            "no mode is called \"shadwo\"; did you mean `shadow`?");
}

TEST(Mode, WhatThisVersionCannotDoIsRefusedByName) {
  EXPECT_TRUE(AvailableModeNamed("off"));
  EXPECT_TRUE(AvailableModeNamed("shadow"));
  for (const char* name : {"advise", "canary", "enforce"}) {
    const auto refused = AvailableModeNamed(name);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
    EXPECT_THAT(refused.error().message, testing::HasSubstr(name));
  }
}

TEST(ModeSwitch, MostCarefulWishCounts) {
  ModeSwitch switches;
  EXPECT_EQ(switches.Effective(Mode::kEnforce), Mode::kEnforce);
  switches.Set(Source::kSocket, {.mode = Mode::kCanary});
  switches.Set(Source::kConfigMap, {.mode = Mode::kShadow});
  EXPECT_EQ(switches.Effective(Mode::kEnforce), Mode::kShadow);
  EXPECT_EQ(switches.Why(Mode::kCanary), "held at shadow by the ConfigMap");
  EXPECT_EQ(switches.Effective(Mode::kOff), Mode::kOff) << "a wish never raises a mode";
  EXPECT_EQ(switches.Why(Mode::kShadow), "");
}

TEST(ModeSwitch, WhoPausedMustResume) {
  ModeSwitch switches;
  switches.Set(Source::kSocket, {.paused = true});
  switches.Set(Source::kConfigMap, {.paused = true});
  switches.Set(Source::kSocket, {});
  EXPECT_EQ(switches.Effective(Mode::kShadow), Mode::kOff);
  EXPECT_EQ(switches.Why(Mode::kShadow), "paused by the ConfigMap");
  switches.Set(Source::kConfigMap, {});
  EXPECT_EQ(switches.Effective(Mode::kShadow), Mode::kShadow);
}

TEST(ModeSwitch, KillHoldsUntilTheEnd) {
  ModeSwitch switches;
  switches.Set(Source::kConfigMap, {.killed = true});
  switches.Set(Source::kConfigMap, {});
  EXPECT_TRUE(switches.killed());
  EXPECT_EQ(switches.Effective(Mode::kShadow), Mode::kOff);
}

TEST(Wish, ComesFromTheDataOfAConfigMap) {
  EXPECT_EQ(WishFrom({}).value(), Wish{});
  EXPECT_EQ(WishFrom({{"mode", "shadow"}, {"pause", "true"}}).value(),
            (Wish{.mode = Mode::kShadow, .paused = true}));
  EXPECT_EQ(WishFrom({{"kill", "true"}, {"pause", "false"}}).value(), (Wish{.killed = true}));
  EXPECT_EQ(WishFrom({{"resume", "true"}}).value(), Wish{});
}

TEST(Wish, WhatCannotBeUnderstoodIsRefusedAsAWhole) {
  EXPECT_EQ(WishFrom({{"puase", "true"}}).error().message,
            "unknown key `puase`; did you mean `pause`?");
  EXPECT_FALSE(WishFrom({{"pause", "yes"}}));
  EXPECT_FALSE(WishFrom({{"mode", "careful"}}));
  EXPECT_FALSE(WishFrom({{"pause", "true"}, {"resume", "true"}}));
}

}  // namespace
}  // namespace rudderfish
