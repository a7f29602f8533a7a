// SPDX-License-Identifier: Apache-2.0
#include "kube/quantity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>

namespace rudderfish::kube {
namespace {

int64_t Millis(std::string_view text) { return Quantity::Parse(text)->MilliValue(); }
int64_t Units(std::string_view text) { return Quantity::Parse(text)->Value(); }

TEST(Quantity, ReadsEverySuffix) {
  EXPECT_EQ(Millis("100m"), 100);
  EXPECT_EQ(Millis("2"), 2000);
  EXPECT_EQ(Millis("1.5"), 1500);
  EXPECT_EQ(Millis("1500000u"), 1500);
  EXPECT_EQ(Millis("250000000n"), 250);
  EXPECT_EQ(Units("2k"), 2000);
  EXPECT_EQ(Units("3M"), 3'000'000);
  EXPECT_EQ(Units("4G"), 4'000'000'000);
  EXPECT_EQ(Units("5T"), 5'000'000'000'000);
  EXPECT_EQ(Units("6P"), 6'000'000'000'000'000);
  EXPECT_EQ(Units("7E"), 7'000'000'000'000'000'000);
  EXPECT_EQ(Units("1Ki"), int64_t{1} << 10);
  EXPECT_EQ(Units("1Mi"), int64_t{1} << 20);
  EXPECT_EQ(Units("1Gi"), int64_t{1} << 30);
  EXPECT_EQ(Units("1Ti"), int64_t{1} << 40);
  EXPECT_EQ(Units("1Pi"), int64_t{1} << 50);
  EXPECT_EQ(Units("1Ei"), int64_t{1} << 60);
  EXPECT_EQ(Units("12e3"), 12'000);
  EXPECT_EQ(Units("12E3"), 12'000);
  EXPECT_EQ(Units("1.25e+2"), 125);
  EXPECT_EQ(Millis("5e-1"), 500);
  EXPECT_EQ(Units("1E"), 1'000'000'000'000'000'000);
}

TEST(Quantity, RoundsUp) {
  EXPECT_EQ(Millis("1n"), 1);
  EXPECT_EQ(Millis("100.1m"), 101);
  EXPECT_EQ(Millis("1e-900"), 1);
  EXPECT_EQ(Units("1m"), 1);
  EXPECT_EQ(Units("1.5"), 2);
  EXPECT_EQ(Units("0.1Ki"), 103);
  EXPECT_EQ(Units("128974848000m"), 128974848);
  EXPECT_EQ(Units("0.5Gi"), int64_t{1} << 29);
  EXPECT_EQ(Units("0.0000000000000000000000000000000001Ei"), 1);
}

TEST(Quantity, ReadsPlainForms) {
  for (const char* zero : {"0", "0m", "0Ei", "0e999", "0.0", ".0", "0."}) {
    EXPECT_EQ(Millis(zero), 0) << zero;
  }
  EXPECT_EQ(Millis(".5"), 500);
  EXPECT_EQ(Millis("5."), 5000);
  EXPECT_EQ(Millis("+1"), 1000);
  EXPECT_EQ(Millis("000000000000000000000000000001"), 1000);
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text :
       {"",    " ",     "x",     "1x",   "1 ",  "1kk", "1ki", "Ki",   ".", "1e",
        "1e+", "1e3Ki", "1.2.3", "0x10", "nan", "1,5", "m",   "1Kib", "+", "+-1"}) {
    EXPECT_FALSE(Quantity::Parse(text)) << text;
  }
  EXPECT_EQ(Quantity::Parse("-1").error().message, "expected a quantity of 0 or more, found `-1`");
  EXPECT_FALSE(Quantity::Parse(std::string(10'000, '1')));
}

TEST(Quantity, WhatIsBeyond64BitsCountsAsTheMostThatFits) {
  EXPECT_EQ(Units("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* text : {"9223372036854775808", "9223372036854775807.1", "8Ei", "10E", "1e19",
                           "1e999", "99999999999999999999999999Ki"}) {
    EXPECT_EQ(Units(text), std::numeric_limits<int64_t>::max()) << text;
  }
  EXPECT_EQ(Millis("9e18"), std::numeric_limits<int64_t>::max());
}

TEST(Quantity, AddsBeforeItRounds) {
  Quantity sum = *Quantity::Parse("1500m");
  sum += *Quantity::Parse("1500m");
  EXPECT_EQ(sum.Value(), 3) << "not 2 + 2";
}

RC_GTEST_PROP(Quantity, KeepsMilliCores, ()) {
  const auto millis = *rc::gen::inRange<int64_t>(0, 1'000'000'000'000);
  RC_ASSERT(Millis(fmt::format("{}m", millis)) == millis);
  RC_ASSERT(Millis(fmt::format("{}.{:03}", millis / 1000, millis % 1000)) == millis);
  RC_ASSERT(Millis(fmt::format("{}e-3", millis)) == millis);
  RC_ASSERT(Millis(fmt::format("{}u", millis * 1000)) == millis);
  RC_ASSERT(Millis(fmt::format("{}u", millis * 1000 + 1)) == millis + 1);
}

RC_GTEST_PROP(Quantity, BinarySuffixesMultiplyExactly, ()) {
  const auto thousandths = *rc::gen::inRange<int64_t>(0, 1'000'000'000);
  const int power = *rc::gen::inRange(1, 4);
  const char* suffix[] = {"", "Ki", "Mi", "Gi"};
  const __int128 exact = static_cast<__int128>(thousandths) << (10 * power);
  RC_ASSERT(Units(fmt::format("{}.{:03}{}", thousandths / 1000, thousandths % 1000,
                              suffix[power])) == static_cast<int64_t>((exact + 999) / 1000));
}

}  // namespace
}  // namespace rudderfish::kube
