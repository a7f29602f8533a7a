// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/normals.h"

namespace rudderfish {
namespace {

using Block = std::array<uint32_t, 4>;

// The vectors published with the paper: philox4x32, 10 rounds, in Random123's kat_vectors.
TEST(Philox, AnswersThePublishedVectors) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<uint32_t> FirstWords(Rng rng, int count) {
  std::vector<uint32_t> words;
  for (int i = 0; i < count; ++i) words.push_back(rng.Next32());
  return words;
}

// Computed by a separate implementation of the keying: these bits may never change, results hang on
// them.
TEST(Rng, WordsAreThoseOfEveryEarlierVersion) {
  EXPECT_EQ(FirstWords(Rng(0), 6), (std::vector<uint32_t>{0xcb63db8c, 0x50282a4d, 0xf5b1dcfb,
                                                          0x8afd3d08, 0x5d36c824, 0x3d02504b}));
  EXPECT_EQ(FirstWords(Rng(42, 7, 3), 6),
            (std::vector<uint32_t>{0x00214d39, 0xea161152, 0x54ac0ffd, 0xfa9629e6, 0x8d4752fb,
                                   0xae4edc8d}));
  EXPECT_EQ(FirstWords(Rng((1ULL << 63) + 5, 1ULL << 40, (1ULL << 33) + 1), 6),
            (std::vector<uint32_t>{0x615ad8bd, 0xd2cf60c6, 0x864b14d8, 0x4f36567a, 0x9d2e7f48,
                                   0x2759feae}));
}

RC_GTEST_PROP(Rng, SeekContinuesWhereAnotherStopped, (uint64_t seed, uint64_t stream)) {
  Rng drawn(seed, stream);
  const int words = *rc::gen::inRange(0, 20);
  for (int i = 0; i < words; ++i) drawn.Next32();
  RC_ASSERT(drawn.position() == static_cast<uint64_t>(words));
  Rng sought(seed, stream);
  sought.Seek(drawn.position());
  for (int i = 0; i < 9; ++i) RC_ASSERT(sought.Next32() == drawn.Next32());
}

TEST(Rng, SeekGoesBackToTheStart) {
  Rng rng(3);
  const uint64_t first = rng.Next64();
  rng.Next32();
  rng.Seek(0);
  EXPECT_EQ(rng.Next64(), first);
}

TEST(Rng, EveryPartOfTheKeyGivesAnotherStream) {
  std::set<uint64_t> firsts;
  for (uint64_t part : {0ULL, 1ULL, 2ULL, 1ULL << 32, 1ULL << 63}) {
    firsts.insert(Rng(part, 9, 9).Next64());
    firsts.insert(Rng(9, part, 9).Next64());
    firsts.insert(Rng(9, 9, part).Next64());
  }
  EXPECT_EQ(firsts.size(), 15U);
}

TEST(Rng, UniformFillsTheUnitIntervalEvenly) {
  Rng rng(1);
  constexpr int kDraws = 100000;
  std::array<int, 10> bins{};
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.Uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    ++bins[static_cast<int>(x * 10)];
  }
  for (const int bin : bins) EXPECT_NEAR(bin, kDraws / 10, 500);  // Five standard deviations.
}

TEST(Rng, UniformFloatStaysBelowOne) {
  Rng rng(2);
  float most = 0;
  for (int i = 0; i < 100000; ++i) most = std::max(most, rng.UniformFloat());
  EXPECT_LT(most, 1.0F);
  EXPECT_GT(most, 0.999F);
}

RC_GTEST_PROP(Rng, UniformStaysBetweenItsBounds, (uint64_t seed)) {
  const double low = *rc::gen::inRange(-1000, 1000) / 7.0;
  const double width = *rc::gen::inRange(0, 1000) * 0x1p-52;
  Rng rng(seed);
  for (int i = 0; i < 20; ++i) {
    const double x = rng.Uniform(low, low + width);
    RC_ASSERT(x >= low);
    RC_ASSERT(x < low + width || low == low + width);
  }
}

TEST(Rng, BelowIsEvenWhereTheRangeDoesNotDivideTheWord) {
  Rng rng(4);
  constexpr uint32_t kThird =
      3U << 30;  // Without rejection the first third would come up twice as often.
  int low = 0;
  for (int i = 0; i < 30000; ++i) low += rng.Below(kThird) < kThird / 3 ? 1 : 0;
  EXPECT_NEAR(low, 10000, 400);
}

RC_GTEST_PROP(Rng, BelowAndBetweenStayInRange, (uint64_t seed, int a, int b)) {
  Rng rng(seed);
  const int low = std::min(a, b);
  const int high = std::max(a, b);
  for (int i = 0; i < 20; ++i) {
    const int x = rng.Between(low, high);
    RC_ASSERT(x >= low);
    RC_ASSERT(x <= high);
  }
  RC_ASSERT(rng.Below(1) == 0U);
}

TEST(RngDeathTest, RefusesEmptyRanges) {
  Rng rng(1);
  EXPECT_DEATH(rng.Below(0), "CHECK failed: n > 0");
  EXPECT_DEATH(rng.Between(1, 0), "CHECK failed");
}

TEST(Rng, BetweenReachesBothEnds) {
  Rng rng(5);
  std::set<int> seen;
  for (int i = 0; i < 200; ++i) seen.insert(rng.Between(-2, 2));
  EXPECT_EQ(seen, (std::set<int>{-2, -1, 0, 1, 2}));
}

TEST(Rng, BetweenCoversAllIntegers) {
  Rng rng(6);
  int negative = 0;
  for (int i = 0; i < 1000; ++i) negative += rng.Between(INT32_MIN, INT32_MAX) < 0 ? 1 : 0;
  EXPECT_NEAR(negative, 500, 80);
}

TEST(Rng, NormalHasTheMomentsAndTailsOfTheNormalDistribution) {
  Rng rng(7);
  constexpr int kDraws = 200000;
  double sum = 0;
  double squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.Normal();
    sum += x;
    squares += x * x;
    beyond_two += std::fabs(x) > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.012);
  EXPECT_NEAR(squares / kDraws, 1, 0.016);
  EXPECT_NEAR(beyond_two, 0.0455003 * kDraws, 470);
}

// Every draw against the cumulative function of the standard library, which is accurate but not
// portable to the bit.
TEST(Rng, NormalInvertsTheCumulativeFunction) {
  Rng rng(8);
  for (int i = 0; i < 200000; ++i) {
    Rng same = rng;
    const double p = (static_cast<double>(same.Next64() >> 11) + 0.5) * 0x1p-53;
    const double x = rng.Normal();
    const double tail = std::min(p, 1 - p);
    ASSERT_NEAR(0.5 * std::erfc(std::fabs(x) / std::sqrt(2.0)) / tail, 1, 1e-13) << x;
    ASSERT_EQ(x < 0, p < 0.5);
  }
}

TEST(Rng, NormalsAreTheSameOneByOneAndTogether) {
  Rng one(7, 2), words(7, 2);
  for (const size_t count : {1U, 64U, 1001U}) {
    std::vector<uint64_t> drawn(count);
    for (uint64_t& word : drawn) word = words.Next64();
    std::vector<double> normals(count);
    NormalsOf(drawn, normals);
    for (const double normal : normals) EXPECT_EQ(normal, one.Normal());
  }
}

TEST(Rng, NormalsAreThoseOfEveryEarlierVersion) {
  Rng rng(42, 7, 3);
  EXPECT_EQ(rng.Normal(), 1.3683531913319313);
  EXPECT_EQ(rng.Normal(), 2.030631710649131);
  EXPECT_EQ(rng.Normal(), 0.4701913172921446);
  EXPECT_EQ(rng.position(), 6U);
}

}  // namespace
}  // namespace rudderfish
