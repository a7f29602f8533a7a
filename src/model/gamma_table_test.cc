// SPDX-License-Identifier: Apache-2.0
#include "model/gamma_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace rudderfish {
namespace {

TEST(GammaTable, IsTheLawWithinThreeThousandths) {
  const GammaTable& table = GammaTable::Shared();
  for (const double scv : {0.02, 0.3, 1.0, 2.5}) {
    for (const double mean : {0.004, 0.7, 30.0}) {
      const GammaLaw law{mean, scv * mean * mean};
      const GammaTable::Place place = table.Find(law);
      for (const double times : {0.1, 0.5, 0.9, 1.0, 1.3, 2.0, 4.0}) {
        const double x = times * mean;
        EXPECT_NEAR(table.Below(place, std::log(x)), law.Below(x), 0.003) << scv << " " << times;
      }
      std::vector<double> buckets(ResponseBuckets::kCount);
      table.Spread(place, 10, buckets);
      double below = 0, bound = ResponseBuckets::kLeastS;
      for (const double count : buckets) {
        below += count / 10;
        if (bound > mean / 500) {  // What is shorter is not told apart.
          EXPECT_GE(below, law.Below(bound / ResponseBuckets::kRatio) - 0.02) << scv << mean;
          EXPECT_LE(below, law.Below(bound * ResponseBuckets::kRatio) + 0.02) << scv << mean;
        }
        bound *= ResponseBuckets::kRatio;
      }
      EXPECT_NEAR(below, 1, 1e-4);
    }
  }
  EXPECT_EQ(table.Below(table.Find({0, 0}), std::log(1e-6)), 1);
}

// Rows are laws of 128 scv in equal ratios from a thousandth to ten; beyond these, the last ones.
TEST(GammaTable, PlacesAreRowsByTheLogarithmOfTheScv) {
  const GammaTable& table = GammaTable::Shared();
  const double per_row = std::log(10 / 1e-3) / 127;
  for (const double at : {0.0, 0.25, 17.5, 100.75, 126.5}) {
    const double mean = 0.3, scv = 1e-3 * std::exp(at * per_row);
    const GammaTable::Place place = table.Find({mean, scv * mean * mean});
    EXPECT_NEAR(place.row + place.share, at, 1e-4);
    EXPECT_GE(place.share, 0);
    EXPECT_LE(place.share, 1);
    EXPECT_DOUBLE_EQ(place.log_mean, std::log(mean));
    EXPECT_FALSE(place.constant);
  }
  EXPECT_NEAR(table.Find({2, 1e-9}).row + table.Find({2, 1e-9}).share, 0, 1e-5);
  const GammaTable::Place widest = table.Find({2, 400});
  EXPECT_EQ(widest.row, 127);
  EXPECT_NEAR(table.Below(widest, std::log(2)), (GammaLaw{2, 40}.Below(2)), 0.003);
  EXPECT_TRUE(table.Find({0, 1}).constant);
}

// Where the table has a time, and a row, it has the law itself.
TEST(GammaTable, IsExactAtItsPoints) {
  const GammaTable& table = GammaTable::Shared();
  for (const int row : {0, 40, 90, 127}) {
    const double scv = 1e-3 * std::exp(row * std::log(1e4) / 127);
    const GammaTable::Place place{.row = row};
    for (int offset = -178; offset < 88; offset += 5) {
      const double log_x = offset * std::log(1.04);
      EXPECT_NEAR(table.Below(place, log_x), (GammaLaw{1, scv}.Below(std::exp(log_x))), 3e-6)
          << row << " " << offset;
      // Between them it is straight.
      EXPECT_NEAR(table.Below(place, log_x + std::log(1.04) / 2),
                  (table.Below(place, log_x) + table.Below(place, log_x + std::log(1.04))) / 2,
                  2e-5);
    }
    EXPECT_EQ(table.Below(place, -181 * std::log(1.04)), 0);
    EXPECT_EQ(table.Below(place, 90 * std::log(1.04)), 1);
  }
}

// A time of the row falls between two buckets in the ratio in which it lies between their bounds.
TEST(GammaTable, SpreadsALawOverBucketsByItsOwnProbabilities) {
  const GammaTable& table = GammaTable::Shared();
  const double step = std::log(1.04), log_least = std::log(ResponseBuckets::kLeastS);
  for (const double scv : {1e-3, 0.3, 5.0, 10.0}) {
    const int row = scv == 1e-3 ? 0 : scv == 10 ? 127 : table.Find({1, scv}).row;
    for (const double share : {0.3, 0.7}) {
      const double mean_at = 250.25;  // Buckets above the least.
      const GammaTable::Place place{
          .row = row, .share = static_cast<float>(share), .log_mean = log_least + mean_at * step};
      std::vector<double> buckets(ResponseBuckets::kCount);
      table.Spread(place, 10, buckets);
      EXPECT_NEAR(std::accumulate(buckets.begin(), buckets.end(), 0.0), 10, 1e-3);
      // The nearer row alone.
      const GammaTable::Place nearer{.row = std::min(127, share > 0.5 ? row + 1 : row),
                                     .log_mean = place.log_mean};
      for (int i = 1; i < ResponseBuckets::kCount - 1; ++i) {
        const auto within = [&](int offset) {
          const double end = place.log_mean + offset * step;
          return table.Below(nearer, end) - table.Below(nearer, end - step);
        };
        const int offset = i - 250;  // Ends a quarter above the bucket's bound.
        if (offset < -178 || offset > 87) continue;
        EXPECT_NEAR(buckets[i], 10 * (0.75 * within(offset) + 0.25 * within(offset - 1)), 2e-3)
            << scv << " " << i;
      }
    }
  }
}

TEST(GammaTable, WhatIsShorterOrLongerThanAllBucketsIsInTheFirstOrLast) {
  const GammaTable& table = GammaTable::Shared();
  std::vector<double> buckets(ResponseBuckets::kCount);
  table.Spread(table.Find({0, 0}), 3, buckets);
  EXPECT_EQ(buckets[0], 3);
  table.Spread(table.Find({1e-6, 1e-14}), 4, buckets);
  EXPECT_NEAR(buckets[0], 7, 1e-4);
  table.Spread(table.Find({1e5, 1e6}), 5, buckets);
  EXPECT_NEAR(buckets.back(), 5, 1e-4);
  // Half of a law at either end.
  std::vector<double> low(ResponseBuckets::kCount), high(low);
  table.Spread(table.Find({ResponseBuckets::kLeastS, 1e-3 * 1e-8}), 100, low);
  EXPECT_NEAR(std::accumulate(low.begin(), low.end(), 0.0), 100, 1e-3);
  EXPECT_NEAR(low[0], 51, 25);
  EXPECT_GT(low[1], 10);
  const double last = ResponseBuckets::kLeastS * std::pow(1.04, 399);
  table.Spread(table.Find({last, 1e-3 * last * last}), 100, high);
  EXPECT_NEAR(std::accumulate(high.begin(), high.end(), 0.0), 100, 1e-3);
  EXPECT_GT(high[398], 10);
  EXPECT_GT(high[399], 25);
}

}  // namespace
}  // namespace rudderfish
