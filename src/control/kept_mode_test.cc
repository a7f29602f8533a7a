// SPDX-License-Identifier: Apache-2.0
#include "control/kept_mode.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

TEST(KeptMode, ReadsBackWhatItWrites) {
  const KeptMode kept{.configured = Mode::kShadow,
                      .mode = Mode::kCanary,
                      .policy = "runs/a@12345678",
                      .objective = "balance",
                      .since = 1'700'000'000'123,
                      .serves = true,
                      .why = "promoted from \"shadow\"\nby hand"};
  EXPECT_EQ(KeptModeFrom(KeptModeText(kept), "x").value(), kept);
}

TEST(KeptMode, WhatIsNoneIsRefusedByPlace) {
  EXPECT_FALSE(KeptModeFrom("", "the Lease"));
  EXPECT_FALSE(KeptModeFrom("{}", "the Lease"));
  std::string text = KeptModeText({});
  text.replace(text.find("shadow"), 6, "shadwo");
  EXPECT_EQ(KeptModeFrom(text, "the Lease").error().message,
            "the Lease: configured: no mode is called \"shadwo\"; did you mean `shadow`?");
}

}  // namespace
}  // namespace rudderfish
