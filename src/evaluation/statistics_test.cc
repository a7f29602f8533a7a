// SPDX-License-Identifier: Apache-2.0
#include "evaluation/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "sim/ratio_tally.h"

namespace rudderfish {
namespace {

RunMatrix Column(std::vector<double> values) {
  const int starts = static_cast<int>(values.size());
  return {.starts = starts, .seeds = 1, .values = std::move(values)};
}

TEST(Statistics, InterquartileMeanLeavesOutAQuarterAtEitherEnd) {
  EXPECT_DOUBLE_EQ(InterquartileMean({8, 1, 2, 7, 3, 6, 4, 5}), 4.5);  // 3 4 5 6
  EXPECT_DOUBLE_EQ(InterquartileMean({1000, 2, 3, 4, -500}), 3);       // 2 3 4
  EXPECT_DOUBLE_EQ(InterquartileMean({1, 2, 6}), 3);                   // 3 / 4 is none.
  EXPECT_DOUBLE_EQ(InterquartileMean({7}), 7);
}

TEST(Statistics, QuantileIsBetweenTwoValuesByTheirDistance) {
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(Quantile({5}, 0.975), 5);
}

// 1 and 3 of 10: of equal trials it is that of a mean, here of 1 and 3, over 10.
TEST(Statistics, ARatioHasTheStandardErrorThatTrialsTell) {
  RatioTally tally;
  EXPECT_EQ(tally.ratio(), 0);
  tally.Add(1, 10);
  EXPECT_EQ(tally.standard_error(), 0);
  tally.Add(3, 10);
  EXPECT_EQ(tally.trials(), 2);
  EXPECT_DOUBLE_EQ(tally.ratio(), 0.2);
  EXPECT_DOUBLE_EQ(tally.standard_error(), 0.1);
  // Trials that differ in size alone tell the same share, and leave no doubt.
  RatioTally sizes;
  for (const double of : {10, 50, 400}) sizes.Add(of / 5, of);
  EXPECT_DOUBLE_EQ(sizes.ratio(), 0.2);
  EXPECT_NEAR(sizes.standard_error(), 0, 1e-7);
}

TEST(Statistics, EqualValuesHaveAnIntervalWithoutWidth) {
  const RunMatrix runs{.starts = 3, .seeds = 2, .values = {7, 7, 7, 7, 7, 7}};
  EXPECT_EQ(BootstrapMean(runs, {}), (ConfidenceInterval{7, 7}));
  EXPECT_EQ(BootstrapInterquartileMean(runs, {}), (ConfidenceInterval{7, 7}));
}

// Means of two draws from {0, 1}: 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4.
TEST(Statistics, BootstrapOfTwoValuesHasTheirKnownDistribution) {
  const RunMatrix runs = Column({0, 1});
  EXPECT_EQ(BootstrapMean(runs, {.confidence = 0.95}), (ConfidenceInterval{0, 1}));
  EXPECT_EQ(BootstrapMean(runs, {.confidence = 0.4}), (ConfidenceInterval{0.5, 0.5}));
}

TEST(Statistics, BootstrapIsAFunctionOfItsSeed) {
  Rng rng(3);
  std::vector<double> values(40);
  for (double& value : values) value = rng.Normal();
  const RunMatrix runs{.starts = 10, .seeds = 4, .values = values};
  EXPECT_EQ(BootstrapMean(runs, {.seed = 5}), BootstrapMean(runs, {.seed = 5}));
  EXPECT_NE(BootstrapMean(runs, {.seed = 5}), BootstrapMean(runs, {.seed = 6}));
}

// The standard error of a mean of n values of deviation s is s / sqrt(n).
TEST(Statistics, IntervalOfAMeanIsAsWideAsItsStandardErrorSays) {
  Rng rng(11);
  std::vector<double> values(400);
  for (double& value : values) value = 50 + 8 * rng.Normal();
  double variance = 0;
  for (double value : values) variance += std::pow(value - Mean(values), 2) / 400;
  const double expected = 2 * 1.96 * std::sqrt(variance / 400);
  const ConfidenceInterval interval = BootstrapMean(Column(values), {});
  EXPECT_NEAR(interval.high - interval.low, expected, 0.1 * expected);
  EXPECT_NEAR((interval.high + interval.low) / 2, Mean(values), 0.1 * expected);
}

TEST(Statistics, IntervalsCoverTheTruthAboutAsOftenAsTheySay) {
  int covered = 0;
  const int samples = 300;
  for (int s = 0; s < samples; ++s) {
    Rng rng(17, 0, s);
    RunMatrix runs{.starts = 40, .seeds = 1, .values = std::vector<double>(40)};
    for (double& value : runs.values) value = rng.Normal();
    const ConfidenceInterval interval =
        BootstrapMean(runs, {.seed = static_cast<uint64_t>(s), .resamples = 400});
    covered += interval.low <= 0 && 0 <= interval.high;
  }
  EXPECT_GE(covered, 0.91 * samples);
  EXPECT_LE(covered, 0.98 * samples);
}

// All the variation is between seeds: more starts must not make the interval narrower.
TEST(Statistics, SeedsAreResampledAndNotOnlyStarts) {
  RunMatrix runs{.starts = 100, .seeds = 2, .values = {}};
  for (int start = 0; start < runs.starts; ++start) {
    runs.values.insert(runs.values.end(), {0, 1});
  }
  EXPECT_EQ(BootstrapMean(runs, {}), (ConfidenceInterval{0, 1}));
}

TEST(Statistics, StrataKeepTheirShareInEveryResample) {
  const RunMatrix runs = Column({0, 0, 100, 100});
  EXPECT_EQ(BootstrapMean(runs, {.strata = {0, 0, 1, 1}}), (ConfidenceInterval{50, 50}));
  EXPECT_NE(BootstrapMean(runs, {}), (ConfidenceInterval{50, 50}));
}

TEST(Statistics, IntervalOfTheInterquartileMeanHoldsItAndLeavesOutTheTails) {
  Rng rng(23);
  RunMatrix runs{.starts = 60, .seeds = 5, .values = std::vector<double>(300)};
  for (double& value : runs.values) value = std::exp(rng.Normal());
  const ConfidenceInterval interval = BootstrapInterquartileMean(runs, {});
  const double iqm = InterquartileMean(runs.values);
  EXPECT_LT(interval.low, iqm);
  EXPECT_GT(interval.high, iqm);
  // The upper tail does not reach the middle half: far below the mean of exp(Normal), 1.65.
  EXPECT_LT(interval.high, 1.3);
}

TEST(Statistics, PairingRemovesWhatStartsHaveInCommon) {
  const RunMatrix baseline = Column({100, 500, 900});
  const RunMatrix candidate = Column({98, 498, 898});
  EXPECT_DOUBLE_EQ(PairedDifference(candidate, baseline), -2);
  EXPECT_EQ(BootstrapPairedDifference(candidate, baseline, {}), (ConfidenceInterval{-2, -2}));
}

TEST(Statistics, PairedDifferenceTakesTheMeanOverEitherSidesSeeds) {
  const RunMatrix candidate{.starts = 2, .seeds = 2, .values = {1, 3, 5, 7}};  // 2, 6
  const RunMatrix baseline = Column({4, 5});
  EXPECT_DOUBLE_EQ(PairedDifference(candidate, baseline), -0.5);
  const ConfidenceInterval interval = BootstrapPairedDifference(candidate, baseline, {});
  EXPECT_DOUBLE_EQ(interval.low, -3);  // First start twice, first seed twice.
  EXPECT_DOUBLE_EQ(interval.high, 2);  // Second start twice, second seed twice.
}

TEST(Statistics, ProbabilityOfImprovementCountsTiesHalf) {
  EXPECT_DOUBLE_EQ(ProbabilityOfImprovement(Column({1, 2, 3, 4}), Column({2, 2, 2, 5})),
                   (1 + 0.5 + 0 + 1) / 4);
  // Equal but for rounding.
  EXPECT_DOUBLE_EQ(ProbabilityOfImprovement(Column({2}), Column({2 + 1e-12})), 0.5);
}

TEST(Statistics, ProbabilityOfImprovementMeetsEverySeedWithEverySeed) {
  const RunMatrix candidate{.starts = 1, .seeds = 2, .values = {1, 3}};
  const RunMatrix baseline{.starts = 1, .seeds = 3, .values = {2, 3, 4}};
  // 1 beats all three; 3 loses to 2, ties with 3, beats 4.
  EXPECT_DOUBLE_EQ(ProbabilityOfImprovement(candidate, baseline), (3 + 0 + 0.5 + 1) / 6);
  const ConfidenceInterval interval = BootstrapProbabilityOfImprovement(candidate, baseline, {});
  EXPECT_LT(interval.low, 4.5 / 6);
  EXPECT_GT(interval.high, 4.5 / 6);
  EXPECT_GE(interval.low, 0);
  EXPECT_LE(interval.high, 1);
}

TEST(Statistics, ShareWonWeighsStartsByWhatCanBeWon) {
  const std::vector<double> initial = {100, 10}, final = {60, 10}, best = {50, 5};
  EXPECT_DOUBLE_EQ(ShareWon(initial, final, best).value(), 40.0 / 55.0);
  EXPECT_FALSE(ShareWon(initial, final, initial).has_value());
}

}  // namespace
}  // namespace rudderfish
