// SPDX-License-Identifier: Apache-2.0
#include "policy/familiarity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "task/placement.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

constexpr size_t kContexts = 31, kCandidates = 46;

// All features lay between 0 and 1.
Familiarity UnitRanges() {
  Familiarity unit;
  unit.context = {std::vector<float>(kContexts, 0), std::vector<float>(kContexts, 1)};
  unit.candidate = {std::vector<float>(kCandidates, 0), std::vector<float>(kCandidates, 1)};
  return unit;
}

TEST(Familiarity, WithinAllRangesNothingIsStrange) {
  const std::vector<float> candidate(48, 1), context(32, 0.5F);
  const Strangeness none = StrangenessOf(UnitRanges(), candidate, context);
  EXPECT_EQ(none.score, 0);
  EXPECT_EQ(StrangenessText(none), "");
  EXPECT_EQ(StrangenessOf({}, candidate, std::vector<float>(32, 9)).score, 0);
}

TEST(Familiarity, TheMostUnlikeFeatureCountsInWidthsOfItsRange) {
  std::vector<float> candidate(48, 0.5F), context(32, 0.5F);
  context[0] = 1.25F;
  EXPECT_DOUBLE_EQ(StrangenessOf(UnitRanges(), candidate, context).score, 0.25);
  candidate[19] = -2;
  const Strangeness strange = StrangenessOf(UnitRanges(), candidate, context);
  EXPECT_DOUBLE_EQ(strange.score, 2);
  EXPECT_TRUE(strange.is_of_candidate);
  EXPECT_EQ(strange.feature, 19);
  EXPECT_EQ(StrangenessText(strange), "`free_cpu` is -1, of 0 to 0.5 in training");
  // What never varied: a tenth of the feature's scale.
  Familiarity narrow = UnitRanges();
  narrow.candidate.high.assign(kCandidates, 0.5F);
  narrow.candidate.low.assign(kCandidates, 0.5F);
  candidate[19] = 0.55F;
  EXPECT_NEAR(StrangenessOf(narrow, candidate, std::vector<float>(32, 0.5F)).score, 0.5, 1e-6);
}

TEST(Familiarity, RangesLeaveOutTheTailsOfASample) {
  GraphBatch batch{.widths = PlacementTask::kWidths};
  FamiliaritySample sample;
  for (int i = 0; i <= 4000; ++i) {
    batch.Clear();
    batch.samples = 1;
    batch.candidate_begin = {0, 1};
    batch.candidates.assign(48, static_cast<float>(i) / 4000);
    batch.context.assign(32, i == 7 ? 1000.0F : static_cast<float>(i % 2));
    sample.Add(batch, 0);
  }
  const Familiarity ranges = sample.Ranges();
  ASSERT_EQ(ranges.context.low.size(), kContexts);
  EXPECT_FLOAT_EQ(ranges.candidate.low[0], 0.001F);
  EXPECT_FLOAT_EQ(ranges.candidate.high[0], 0.999F);
  EXPECT_EQ(ranges.context.high[0], 1);  // One in four thousand is no rule.
  Familiarity joined = UnitRanges(), both;
  joined.Join(ranges);
  EXPECT_EQ(joined, UnitRanges());
  both.Join(ranges);
  EXPECT_EQ(both, ranges);
}

}  // namespace
}  // namespace rudderfish
