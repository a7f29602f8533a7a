// SPDX-License-Identifier: Apache-2.0
#include "base/timestamp.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rudderfish {
namespace {

TEST(Timestamp, DatesOfKubernetesAreRead) {
  const Date second = Date(std::chrono::seconds(1795246012));
  EXPECT_EQ(ParseDate("2026-11-21T07:26:52Z"), second);
  EXPECT_EQ(ParseDate("2026-11-21T08:26:52+01:00"), second);
  EXPECT_EQ(ParseDate("2026-11-20T23:26:52-08:00"), second);
  EXPECT_EQ(ParseDate("2026-11-21T07:26:52.7826879Z"), second + std::chrono::microseconds(782687));
}

TEST(Timestamp, AnythingElseIsRefused) {
  for (const char* wrong :
       {"", "2026", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-11-21 07:26:52Z",
        "2026-11-21T24:00:00Z", "2026-11-21T07:26:52", "2026-11-21T07:26:52.Z",
        "2026-11-21T07:26:52Z ", "2026-11-21T07:26:52+1:00"}) {
    EXPECT_EQ(ParseDate(wrong), std::nullopt) << wrong;
  }
}

RC_GTEST_PROP(Timestamp, WrittenDatesAreReadAgain, ()) {
  const auto micros = *rc::gen::inRange<int64_t>(0, int64_t{4'000'000'000} * 1'000'000);
  const Date date{std::chrono::microseconds(micros)};
  RC_ASSERT(ParseDate(ToMicroTime(date)) == date);
}

}  // namespace
}  // namespace rudderfish
