// SPDX-License-Identifier: Apache-2.0
#include "control/own_choice.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

TEST(OwnChoice, ACanaryTakesItsShareOfPodsThatDifferInTheirLastLettersOnly) {
  int taken = 0;
  for (int i = 0; i < 10'000; ++i)
    taken += IsInShare(fmt::format("0b2e5f3c-6f0e-4f57-9a44-{:012x}", i), 0.2) ? 1 : 0;
  EXPECT_NEAR(taken, 2000, 200);
}

TEST(OwnChoice, WhoIsInASmallShareIsInALargerOne) {
  for (int i = 0; i < 1000; ++i) {
    const std::string uid = fmt::format("uid-{}", i);
    EXPECT_LE(IsInShare(uid, 0.1), IsInShare(uid, 0.5)) << uid;
    EXPECT_FALSE(IsInShare(uid, 0));
    EXPECT_TRUE(IsInShare(uid, 1));
  }
}

}  // namespace
}  // namespace rudderfish
