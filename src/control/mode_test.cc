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

TEST(ModeSwitch, WhatASourceWishesForIsAsPauseWhileItIsNotKnown) {
  ModeSwitch switches;
  switches.Hold("the ConfigMap has not been read");
  EXPECT_TRUE(switches.paused());
  EXPECT_EQ(switches.Effective(Mode::kEnforce), Mode::kOff);
  EXPECT_EQ(switches.Why(Mode::kEnforce), "as paused: the ConfigMap has not been read");
  switches.Hold("");
  EXPECT_EQ(switches.Effective(Mode::kEnforce), Mode::kEnforce);
}

TEST(Wish, ComesFromTheDataOfAConfigMap) {
  EXPECT_EQ(WishFrom({}).wish, Wish{});
  EXPECT_EQ(WishFrom({{"mode", "shadow"}, {"pause", "true"}}).wish,
            (Wish{.mode = Mode::kShadow, .paused = true}));
  EXPECT_EQ(WishFrom({{"kill", "true"}, {"pause", "false"}}).wish, (Wish{.killed = true}));
  EXPECT_EQ(WishFrom({{"resume", "true"}}).wish, Wish{});
  EXPECT_EQ(WishFrom({{"mode", "off"}, {"kill", ""}}).problem, "");
}

TEST(Wish, SwitchesAreUnderstoodHoweverTheyAreWritten) {
  for (const char* word : {"true", "True", "TRUE", "yes", "Y", "on", "1", " true\n"}) {
    EXPECT_EQ(WishFrom({{"kill", word}}).wish, (Wish{.killed = true})) << word;
    EXPECT_EQ(WishFrom({{"Pause", word}}).wish, (Wish{.paused = true})) << word;
  }
  for (const char* word : {"false", "No", "off", "0", ""}) {
    EXPECT_EQ(WishFrom({{"kill", word}, {"pause", word}}).wish, Wish()) << word;
  }
  EXPECT_EQ(WishFrom({{"mode", "Shadow"}}).wish, (Wish{.mode = Mode::kShadow}));
}

TEST(Wish, WhateverElseIsSaidKillAndPauseCount) {
  const StatedWish stated = WishFrom({{"kill", "true"}, {"reason", "incident 42"}});
  EXPECT_EQ(stated.wish, (Wish{.killed = true}));
  EXPECT_EQ(stated.problem, "unknown key `reason`, which changes nothing");
  EXPECT_TRUE(WishFrom({{"mode", "nonsense"}, {"kill", "true"}}).wish.killed);
  EXPECT_EQ(WishFrom({{"puase", "true"}}).problem,
            "unknown key `puase`, which changes nothing; did you mean `pause`?");
}

TEST(Wish, WhatCannotBeUnderstoodIsAsPause) {
  for (const char* key : {"kill", "pause", "mode"}) {
    const StatedWish stated = WishFrom({{key, "careful"}});
    EXPECT_EQ(stated.wish, (Wish{.paused = true})) << key;
    EXPECT_THAT(stated.problem, testing::HasSubstr("as `pause`")) << key;
  }
  const StatedWish both = WishFrom({{"pause", "true"}, {"resume", "true"}});
  EXPECT_TRUE(both.wish.paused);
  EXPECT_THAT(both.problem, testing::HasSubstr("both"));
  EXPECT_EQ(WishFrom({{"resume", "maybe"}}).wish, Wish());
}

}  // namespace
}  // namespace rudderfish
