// SPDX-License-Identifier: Apache-2.0
#include "task/feature_rows.h"

#include <gtest/gtest.h>

#include <array>

namespace rudderfish {
namespace {

struct Left {
  float x;
};
struct Right {
  float y;
};

constexpr std::array<Feature<Left, Right>, 3> kTable{{
    {"x", "ms", 2, [](const Left& v) { return v.x; }, "of the left"},
    {"y", "", 1, [](const Right& v) { return v.y; }, "of the right"},
    {"x_again", "ms", 4, [](const Left& v) { return v.x; }, "of the left, magnified less"},
}};

TEST(FeatureRows, AFeatureIsWrittenFromTheViewItsReaderTakesAndIsZeroInTheOthers) {
  float left[] = {7, 7, 7}, right[] = {7, 7, 7};
  WriteRow<kTable>(Left{3}, left);
  WriteRow<kTable>(Right{5}, right);
  EXPECT_EQ(std::to_array({left[0], left[1], left[2]}), std::to_array({1.5f, 0.0f, 0.75f}));
  EXPECT_EQ(std::to_array({right[0], right[1], right[2]}), std::to_array({0.0f, 5.0f, 0.0f}));
}

TEST(FeatureRows, FeaturesOfOtherViewsCanBeKept) {
  float row[] = {7, 7, 7};
  WriteRow<kTable, Others::kKeep>(Right{5}, row);
  EXPECT_EQ(std::to_array({row[0], row[1], row[2]}), std::to_array({7.0f, 5.0f, 7.0f}));
}

TEST(FeatureRows, ValuesAreClippedAfterScaling) {
  float row[3];
  WriteRow<kTable>(Left{20}, row);
  EXPECT_EQ(row[0], 8);
  EXPECT_EQ(row[2], 5);
  WriteRow<kTable>(Left{-20}, row);
  EXPECT_EQ(row[0], -8);
}

TEST(FeatureRows, ADescriptionHasWhatTheTableSays) {
  const std::vector<FeatureDescription> descriptions = Describe(kTable);
  ASSERT_EQ(descriptions.size(), 3u);
  EXPECT_EQ(descriptions[2].name, "x_again");
  EXPECT_EQ(descriptions[2].unit, "ms");
  EXPECT_EQ(descriptions[2].scale, 4);
  EXPECT_EQ(descriptions[2].meaning, "of the left, magnified less");
}

TEST(FeatureRows, AddedRowsAreZeroAndFollowThoseThere) {
  std::vector<float> rows(2, 1.0f);
  float* added = AddRows(2, 3, &rows);
  EXPECT_EQ(rows.size(), 8u);
  EXPECT_EQ(added, rows.data() + 2);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(added[i], 0);
}

}  // namespace
}  // namespace rudderfish
