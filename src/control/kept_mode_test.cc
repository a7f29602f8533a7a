// SPDX-License-Identifier: Apache-2.0
#include "control/kept_mode.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

const KeptMode kKept{.configured = Mode::kShadow,
                     .mode = Mode::kCanary,
                     .policy = "runs/a@12345678",
                     .objective = "balance",
                     .since = 1'700'000'000'123,
                     .serves = true,
                     .why = "promoted from \"shadow\"\nby hand"};
const LeaseWord kWord{.modes = {{"migration", {.policy = "greedy"}}, {"placement", kKept}},
                      .pause = {.since = 1'700'000'000'456, .by = "the command line of a_1"}};

TEST(LeaseWord, ReadsBackWhatItWrites) {
  EXPECT_EQ(LeaseWordFrom(LeaseWordText(kWord), "x").value(), kWord);
  const LeaseWord unpaused{.modes = kWord.modes, .pause = {}};
  const LeaseWord no_mode{.modes = {}, .pause = kWord.pause};
  EXPECT_EQ(LeaseWordFrom(LeaseWordText(unpaused), "x").value(), unpaused);
  EXPECT_EQ(LeaseWordFrom(LeaseWordText(no_mode), "x").value(), no_mode);
  EXPECT_EQ(LeaseWordFrom(LeaseWordText({}), "x").value(), LeaseWord());
}

TEST(LeaseWord, WhatIsNoneIsRefusedByPlace) {
  EXPECT_FALSE(LeaseWordFrom("", "the Lease"));
  EXPECT_FALSE(LeaseWordFrom(R"({"mode":"shadow"})", "the Lease"));
  EXPECT_FALSE(LeaseWordFrom(R"({"modes":{"placement":"shadow"}})", "the Lease"));
  EXPECT_FALSE(LeaseWordFrom(R"({"modes":{},"paused_since_ms":"yes"})", "the Lease"));
  std::string text = LeaseWordText(kWord);
  text.replace(text.find("canary"), 6, "canari");
  EXPECT_EQ(LeaseWordFrom(text, "the Lease").error().message,
            "the Lease: modes.placement.mode: no mode is called \"canari\"; did you mean "
            "`canary`?");
}

}  // namespace
}  // namespace rudderfish
