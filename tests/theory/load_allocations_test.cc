// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/rng.h"
#include "model/forecast.h"
#include "model/load_model.h"
#include "scenario/scenario.h"
#include "tests/support/count_allocations.h"
#include "tests/support/source_path.h"

// What look-ahead asks of the model of load and of forecasts, time and again: nothing allocated,
// copies that do as their original does.

namespace rudderfish {
namespace {

std::shared_ptr<const LoadLaws> LawsOfTheBoutique() {
  const Result<Scenario> scenario = LoadScenario(SourcePath("scenarios/online-boutique.yaml"));
  CHECK(scenario.has_value());
  return std::make_shared<const LoadLaws>(
      std::make_shared<const ServedApplication>(ApplicationOf(*scenario, 0)));
}

// Half an hour of any load, pods coming and going.
void PlayAnyLoad(uint64_t seed, LoadModel* model) {
  Rng rng(seed, 1);
  for (int i = 0; i < 120; ++i) {
    model->SetReplicas(rng.Between(1, 11), rng.Between(1, 8));
    model->Advance(15, rng.Uniform(5, 150));
  }
}

TEST(LoadModel, AllocatesNothingOnceMade) {
  const std::shared_ptr<const LoadLaws> laws = LawsOfTheBoutique();
  LoadModel model(laws), other(laws);
  const long before = allocation_count;
  PlayAnyLoad(1, &model);
  other.CopyFrom(model);
  PlayAnyLoad(2, &other);
  other.Start();
  EXPECT_EQ(allocation_count, before);
  EXPECT_GT(model.outcome().violation_share(), .01);  // There was overload, too.
}

TEST(LoadModel, CopiesDoAsTheirOriginal) {
  const std::shared_ptr<const LoadLaws> laws = LawsOfTheBoutique();
  LoadModel model(laws), other(laws), apart(laws);
  PlayAnyLoad(1, &model);
  PlayAnyLoad(2, &other);
  other.CopyFrom(model);
  apart.CopyFrom(model);
  PlayAnyLoad(3, &model);
  PlayAnyLoad(3, &other);
  PlayAnyLoad(4, &apart);
  EXPECT_EQ(model.outcome().late, other.outcome().late);
  EXPECT_EQ(model.outcome().response_sum_s, other.outcome().response_sum_s);
  EXPECT_EQ(model.ResponseQuantileS(.99), other.ResponseQuantileS(.99));
  EXPECT_EQ(model.backlog(3), other.backlog(3));
  EXPECT_NE(model.outcome().late, apart.outcome().late);
}

// What a step of an interval leaves out is little beside what is believed anyway.
TEST(LoadModel, LongStepsSayWhatShortOnesSay) {
  const std::shared_ptr<const LoadLaws> laws = LawsOfTheBoutique();
  LoadModel by_interval(laws), by_second(laws);
  Rng rng(7, 1);
  for (int i = 0; i < 240; ++i) {
    const auto workload = static_cast<WorkloadId>(rng.Between(1, 11));
    const int replicas = rng.Between(4, 8);
    by_interval.SetReplicas(workload, replicas);
    by_second.SetReplicas(workload, replicas);
    const double rate = rng.Uniform(20, 110);
    by_interval.Advance(15, rate);
    for (int second = 0; second < 15; ++second) by_second.Advance(1, rate);
  }
  const LoadOutcome a = by_interval.outcome(), b = by_second.outcome();
  EXPECT_NEAR(a.requests / b.requests, 1, 1e-9);
  EXPECT_NEAR(a.core_s / b.core_s, 1, 1e-9);
  EXPECT_NEAR(a.mean_s() / b.mean_s(), 1, .02);
  EXPECT_NEAR(a.violation_share(), b.violation_share(), .02 * b.violation_share() + 1e-4);
}

TEST(Forecast, AllocatesNothingOnceMade) {
  Forecast forecast({.horizon = 8, .season = 40}), other(forecast);
  Rng rng(1, 1);
  const long before = allocation_count;
  double sum = 0;
  for (int i = 0; i < 500; ++i) {
    forecast.Observe(rng.Uniform(10, 20));
    sum += forecast.At(8) + forecast.ErrorQuantile(4, .9);
  }
  other.Reset();
  EXPECT_EQ(allocation_count, before);
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace rudderfish
