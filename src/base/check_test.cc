// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

TEST(Check, PassesWhatHoldsAndEvaluatesItOnce) {
  int evaluated = 0;
  CHECK(++evaluated == 1);
  CHECK_EQ(++evaluated, 2);
  CHECK_LT(1, 2);
  EXPECT_EQ(evaluated, 2);
}

TEST(CheckDeathTest, NamesThePlaceTheConditionAndBothValues) {
  const int pods = 3;
  EXPECT_DEATH(CHECK(pods == 4), "check_test.cc:[0-9]+: CHECK failed: pods == 4");
  EXPECT_DEATH(CHECK_GE(pods, 4), "CHECK failed: pods >= 4: 3 against 4");
}

}  // namespace
}  // namespace rudderfish
