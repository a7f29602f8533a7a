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

using Row = std::array<float, 8>;

TEST(FeatureRows, AFeatureIsWrittenFromTheViewItsReaderTakesAndAllElseIsZero) {
  Row left, right;
  left.fill(7);
  right.fill(7);
  WriteRow<kTable, 8>(Left{3}, left.data());
  WriteRow<kTable, 8>(Right{5}, right.data());
  EXPECT_EQ(left, (Row{1.5f, 0, 0.75f}));
  EXPECT_EQ(right, (Row{0, 5}));
}

// Of a candidate: in the first quad features of all three, in the second of one.
struct Join {
  float z;
};
constexpr std::array<Feature<Left, Right, Join>, 5> kJoined{{
    {"x", "", 1, [](const Left& v) { return v.x; }, ""},
    {"y", "", 1, [](const Right& v) { return v.y; }, ""},
    {"z", "", 2, [](const Join& v) { return v.z; }, ""},
    {"y_again", "", 1, [](const Right& v) { return v.y; }, ""},
    {"x_again", "", 1, [](const Left& v) { return v.x; }, ""},
}};

TEST(FeatureRows, ARowIsJoinedFromTwoPartsAndFromWhatOnlyItsViewKnows) {
  Row left, right, row;
  for (Row* r : {&left, &right, &row}) r->fill(7);  // Values that no part writes are not read.
  WritePart<kJoined, 8>(Left{3}, left.data());
  WritePart<kJoined, 8>(Right{5}, right.data());
  JoinRows<kJoined, 8, Left, Right>(Join{4}, left.data(), right.data(), row.data());
  EXPECT_EQ(row, (Row{3, 5, 2, 5, 3}));
}

TEST(FeatureRows, APartHoldsOnlyTheQuadsThatItsViewIsReadFor) {
  Row right;
  right.fill(7);
  WritePart<kJoined, 8>(Right{5}, right.data());
  EXPECT_EQ(right, (Row{0, 5, 0, 5, 7, 7, 7, 7}));
}

TEST(FeatureRows, ValuesAreClippedAfterScaling) {
  Row row;
  WriteRow<kTable, 8>(Left{20}, row.data());
  EXPECT_EQ(row[0], 8);
  EXPECT_EQ(row[2], 5);
  WriteRow<kTable, 8>(Left{-20}, row.data());
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

TEST(FeatureRows, AddedRowsFollowThoseThere) {
  FloatRows rows(2, 1.0f);
  float* added = AddRows(2, 3, &rows);
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(added, rows.data() + 2);
  EXPECT_EQ(rows[1], 1);
}

}  // namespace
}  // namespace rudderfish
