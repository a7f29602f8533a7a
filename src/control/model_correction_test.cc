// SPDX-License-Identifier: Apache-2.0
#include "control/model_correction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "control/journal_reader.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

// Changes of some tens of milliseconds, measured as `factor` times what was predicted, and noise.
std::vector<MeasuredChange> Changes(int count, double factor, double noise_ms, uint64_t seed) {
  Rng rng(seed);
  std::vector<MeasuredChange> changes;
  for (int i = 0; i < count; ++i) {
    const double predicted = 60 * rng.Uniform() - 30;
    const double measured = factor * predicted + noise_ms * (2 * rng.Uniform() - 1);
    changes.push_back({"shop", "latency_ms", predicted, measured});
  }
  return changes;
}

TEST(ModelCorrection, AKnownFactorLiesInItsIntervalAndLowersTheError) {
  int inside = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const ModelCorrection fit = FitCorrection(Changes(30, 0.7, 4, seed));
    inside += fit.low <= 0.7 && 0.7 <= fit.high ? 1 : 0;
    EXPECT_LT(fit.corrected_error_ms, fit.error_ms);
    EXPECT_EQ(fit.changes, 30);
  }
  EXPECT_GE(inside, 36);
}

TEST(ModelCorrection, TheIntervalHoldsForFewChangesToo) {
  int inside = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const ModelCorrection fit = FitCorrection(Changes(6, 0.7, 4, seed));
    inside += fit.low <= 0.7 && 0.7 <= fit.high ? 1 : 0;
  }
  EXPECT_GE(inside, 360);
}

TEST(ModelCorrection, AModelThatIsRightIsNotCorrected) {
  const ModelCorrection fit = FitCorrection(Changes(50, 1, 4, 3));
  EXPECT_NEAR(fit.factor, 1, 0.1);
  EXPECT_LT(fit.low, 1);
  EXPECT_GT(fit.high, 1);
}

TEST(ModelCorrection, OutliersCountLess) {
  std::vector<MeasuredChange> changes = Changes(30, 0.8, 2, 5);
  for (int i = 0; i < 4; ++i) changes[static_cast<size_t>(7 * i)].measured_ms += 400;
  EXPECT_NEAR(FitCorrection(changes).factor, 0.8, 0.1);
}

TEST(ModelCorrection, NeverMoreThanTheDataSay) {
  // Nothing was predicted to change: a factor of it cannot be known.
  std::vector<MeasuredChange> nothing(20, {"shop", "latency_ms", 0, 3});
  EXPECT_EQ(FitCorrection(nothing).factor, 1);
  EXPECT_GT(FitCorrection(nothing).high - 1, 0.98);
  // One change, however far off, is one change.
  const std::vector<MeasuredChange> one{{"shop", "latency_ms", 20, 5}};
  EXPECT_GT(FitCorrection(one).factor, 0.6);
  EXPECT_GT(FitCorrection(one).high, 1);
  // A sign that is wrong is not turned around.
  EXPECT_DOUBLE_EQ(FitCorrection(Changes(100, -2, 1, 1)).factor, 1.0 / 3);
  EXPECT_TRUE(FitCorrection(Changes(100, -2, 1, 1)).is_at_bound);
  EXPECT_FALSE(FitCorrection(Changes(100, 0.7, 1, 1)).is_at_bound);
  EXPECT_EQ(FitCorrection({}).changes, 0);
}

TEST(ModelCorrection, EachApplicationAndTermIsItsOwn) {
  std::vector<MeasuredChange> changes = Changes(30, 0.5, 1, 2);
  for (MeasuredChange one : Changes(30, 1.5, 1, 2)) {
    one.term = "network_ms";
    changes.push_back(one);
  }
  const std::vector<ModelCorrection> fits = FitCorrections(changes);
  ASSERT_EQ(fits.size(), 2);
  EXPECT_NEAR(fits[0].factor, 0.5, 0.05);
  EXPECT_EQ(fits[1].term, "network_ms");
  EXPECT_NEAR(fits[1].factor, 1.5, 0.05);
}

TEST(ModelCorrection, EndpointsOfOneChangeAreOneChangeOfTheJournal) {
  const testing::TestFolder folder;
  const auto journal = SqliteJournal::Open(folder / "j.db", {}).value();
  for (const double measured : {8.0, 12.0}) {
    for (const char* endpoint : {"buy", "look"}) {
      ASSERT_TRUE(journal->AppendEvidence({.application = "shop",
                                           .change = "a from b to c",
                                           .endpoint = endpoint,
                                           .term = "latency_ms",
                                           .source = "p",
                                           .predicted_change_ms = 20,
                                           .measured_change_ms = measured}));
    }
  }
  const auto changes = JournalReader::Open(folder / "j.db").value().Changes();
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 2);
  EXPECT_EQ((*changes)[0].measured_ms, 8);
  EXPECT_EQ((*changes)[1].measured_ms, 12);
  EXPECT_EQ(FitCorrections(*changes).at(0).error_ms, 10);
}

}  // namespace
}  // namespace rudderfish
