// SPDX-License-Identifier: Apache-2.0
#include "control/model_correction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "control/journal_reader.h"
#include "control/sqlite_journal.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

// Of a latency, half of it execution: changes of some tens of milliseconds.
MeasuredChange ChangeOf(double execution_ms, double network_ms, double measured_ms) {
  return {.application = "shop",
          .model = "m",
          .predicted = {.latency_ms = execution_ms + network_ms,
                        .execution_ms = execution_ms,
                        .network_ms = network_ms},
          .measured_ms = measured_ms};
}

// Measured as the factors times what was predicted, and noise.
std::vector<MeasuredChange> Changes(int count, double execution, double network, double noise_ms,
                                    uint64_t seed) {
  Rng rng(seed);
  std::vector<MeasuredChange> changes;
  for (int i = 0; i < count; ++i) {
    const double run = 60 * rng.Uniform() - 30, hop = 60 * rng.Uniform() - 30;
    const double noise = noise_ms * (2 * rng.Uniform() - 1);
    changes.push_back(ChangeOf(run, hop, execution * run + network * hop + noise));
  }
  return changes;
}

bool IsIn(const ModelCorrection::Factor& factor, double value) {
  return factor.low <= value && value <= factor.high;
}

TEST(ModelCorrection, KnownFactorsLieInTheirIntervalsAndLowerTheError) {
  int execution = 0, network = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const ModelCorrection fit = FitCorrection(Changes(30, 0.7, 1.4, 4, seed));
    execution += IsIn(fit.factors[0], 0.7) ? 1 : 0;
    network += IsIn(fit.factors[1], 1.4) ? 1 : 0;
    EXPECT_LT(fit.corrected_error_ms, fit.error_ms / 2);
    EXPECT_EQ(fit.changes, 30);
    EXPECT_TRUE(fit.Helps());
    EXPECT_NEAR(fit.ToApply().execution, 0.7, 0.12);
    EXPECT_NEAR(fit.ToApply().network, 1.4, 0.12);
  }
  EXPECT_GE(execution, 36);
  EXPECT_GE(network, 36);
}

TEST(ModelCorrection, TheIntervalsHoldForFewChangesToo) {
  int inside = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const ModelCorrection fit = FitCorrection(Changes(6, 0.7, 1.4, 4, seed));
    inside += IsIn(fit.factors[0], 0.7) ? 1 : 0;
  }
  EXPECT_GE(inside, 350);
}

TEST(ModelCorrection, AModelThatIsRightIsNotCorrected) {
  int helps = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const ModelCorrection fit = FitCorrection(Changes(50, 1, 1, 4, seed));
    EXPECT_NEAR(fit.factors[0].value, 1, 0.1);
    EXPECT_NEAR(fit.factors[1].value, 1, 0.1);
    helps += fit.Helps() ? 1 : 0;
  }
  EXPECT_LE(helps, 30);  // And then by a hundredth or two.
}

TEST(ModelCorrection, OutliersCountLess) {
  std::vector<MeasuredChange> changes = Changes(30, 0.8, 0.8, 2, 5);
  for (int i = 0; i < 4; ++i) changes[static_cast<size_t>(7 * i)].measured_ms += 400;
  EXPECT_NEAR(FitCorrection(changes).factors[0].value, 0.8, 0.1);
  EXPECT_NEAR(FitCorrection(changes).factors[1].value, 0.8, 0.1);
}

TEST(ModelCorrection, NeverMoreThanTheDataSay) {
  // Nothing was predicted to change: a factor of it cannot be known.
  const ModelCorrection nothing = FitCorrection(std::vector<MeasuredChange>(20, ChangeOf(0, 0, 3)));
  EXPECT_EQ(nothing.factors[0].value, 1);
  EXPECT_GT(nothing.factors[0].high - 1, 0.98);
  EXPECT_FALSE(nothing.factors[0].was_predicted);
  EXPECT_EQ(nothing.ToApply(), LatencyFactors());
  // Only hops were seen to change: how long calls run stays as it is.
  std::vector<MeasuredChange> hops;
  for (const double hop : {10.0, -20.0, 30.0, 15.0, -40.0, 25.0})
    hops.push_back(ChangeOf(0, hop, 1.5 * hop));
  EXPECT_EQ(FitCorrection(hops).factors[0].value, 1);
  EXPECT_NEAR(FitCorrection(hops).factors[1].value, 1.5, 0.02);
  // One change, however far off, is one change, and nothing is corrected by it.
  const std::vector<MeasuredChange> one{ChangeOf(20, 0, 5)};
  EXPECT_GT(FitCorrection(one).factors[0].value, 0.6);
  EXPECT_GT(FitCorrection(one).factors[0].high, 1);
  EXPECT_EQ(FitCorrection(one).ToApply(), LatencyFactors());
  // A sign that is wrong is not turned around.
  const ModelCorrection wrong = FitCorrection(Changes(100, -2, 1, 1, 1));
  EXPECT_DOUBLE_EQ(wrong.factors[0].value, 1.0 / 3);
  EXPECT_TRUE(wrong.factors[0].is_at_bound);
  EXPECT_FALSE(FitCorrection(Changes(100, 0.7, 1, 1, 1)).factors[0].is_at_bound);
  EXPECT_EQ(FitCorrection({}).changes, 0);
}

// Two parts that always change together cannot be told apart: each takes its share.
TEST(ModelCorrection, PartsThatChangeTogetherShareTheFactor) {
  std::vector<MeasuredChange> changes;
  for (const double by : {10.0, -20.0, 30.0, 15.0, -40.0, 25.0})
    changes.push_back(ChangeOf(by, by, 1.6 * by));
  const ModelCorrection fit = FitCorrection(changes);
  EXPECT_NEAR(fit.factors[0].value, 0.8, 0.02);
  EXPECT_NEAR(fit.factors[1].value, 0.8, 0.02);
  EXPECT_GT(fit.factors[0].high - fit.factors[0].low, 1);
}

TEST(ModelCorrection, EachApplicationIsItsOwnAndAnotherModelBeginsAgain) {
  std::vector<MeasuredChange> changes = Changes(30, 0.5, 0.5, 1, 2);
  for (MeasuredChange one : Changes(30, 1.5, 1.5, 1, 2)) {
    one.application = "blog";
    changes.push_back(one);
  }
  for (MeasuredChange one : Changes(7, 1.2, 1.2, 1, 3)) {  // The file of shop was mended.
    one.model = "n";
    changes.push_back(one);
  }
  const std::vector<ModelCorrection> fits = FitCorrections(changes);
  ASSERT_EQ(fits.size(), 2);
  EXPECT_EQ(fits[0].changes, 7);
  EXPECT_NEAR(fits[0].factors[0].value, 1.2, 0.1);
  EXPECT_EQ(fits[1].application, "blog");
  EXPECT_NEAR(fits[1].factors[0].value, 1.5, 0.05);
}

TEST(ModelCorrection, FactorsAreToldInWords) {
  EXPECT_EQ(InWords(LatencyFactors{}), "");
  EXPECT_EQ(InWords(LatencyFactors{.execution = 0.7, .queueing = 2}),
            "execution x 0.70, queueing x 2.00");
}

TEST(ModelCorrection, EndpointsOfOneChangeAreOneChangeOfTheJournal) {
  const testing::TestFolder folder;
  const auto journal = SqliteJournal::Open(folder / "j.db", {}).value();
  for (const double measured : {8.0, 12.0}) {
    for (const char* endpoint : {"buy", "look"}) {
      ASSERT_TRUE(journal->moves()->AppendEvidence(
          {.application = "shop",
           .change = "a from b to c",
           .endpoint = endpoint,
           .term = "latency_ms",
           .source = "p",
           .predicted_change_ms = 20,
           .measured_change_ms = measured,
           .model = "m",
           .uncorrected = {.latency_ms = 20, .execution_ms = 15, .network_ms = 5}}));
    }
  }
  const auto changes = JournalReader::Open(folder / "j.db").value().Changes();
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 2);
  EXPECT_EQ((*changes)[0].measured_ms, 8);
  EXPECT_EQ((*changes)[1].measured_ms, 12);
  EXPECT_EQ((*changes)[0].model, "m");
  EXPECT_EQ((*changes)[0].predicted.execution_ms, 15);
  EXPECT_EQ((*changes)[0].predicted.network_ms, 5);
  EXPECT_EQ(FitCorrections(*changes).at(0).error_ms, 10);
}

}  // namespace
}  // namespace rudderfish
