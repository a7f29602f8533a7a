// SPDX-License-Identifier: Apache-2.0
#include "model/sum_of_maxima.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace rudderfish {
namespace {

using List = std::vector<std::pair<double, double>>;  // Values and weights.

double OfPairs(const List& left, const List& right) {
  double sum = 0;
  for (const auto& [a, of_a] : left) {
    for (const auto& [b, of_b] : right) sum += of_a * of_b * std::max(a, b);
  }
  return sum;
}

double Sum(const List& left, const List& right, SumOfMaxima* sums) {
  sums->Clear();
  for (const auto& [value, weight] : left) sums->AddLeft(value, weight);
  for (const auto& [value, weight] : right) sums->AddRight(value, weight);
  return sums->Sum();
}

TEST(SumOfMaxima, IsThatOfAllPairs) {
  SumOfMaxima sums;
  EXPECT_EQ(Sum({}, {}, &sums), 0);
  EXPECT_EQ(Sum({{1, 2}}, {}, &sums), 0);
  EXPECT_EQ(Sum({{1, 2}, {5, 1}}, {{3, 10}}, &sums), 2 * 10 * 3 + 1 * 10 * 5);
  EXPECT_EQ(Sum({{2, 1}, {2, 3}}, {{2, 1}, {2, 1}}, &sums), 4 * 2 * 2);
}

TEST(SumOfMaxima, AgreesWithALoopOverPairs) {
  Rng rng(3);
  SumOfMaxima sums;
  for (int round = 0; round < 200; ++round) {
    List left(rng.Below(40)), right(rng.Below(40));
    for (List* list : {&left, &right}) {
      // Some of them equal; of very different sizes.
      for (auto& [value, weight] : *list) {
        value = rng.Below(3) == 0 ? 0.125 : rng.Uniform(1e-4, 10);
        weight = 1.0 + rng.Below(5);
      }
    }
    const double expected = OfPairs(left, right);
    EXPECT_NEAR(Sum(left, right, &sums), expected, 1e-12 * (1 + expected));
  }
}

}  // namespace
}  // namespace rudderfish
