// SPDX-License-Identifier: Apache-2.0
#include "report/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Svg, TextAndAttributesAreEscaped) {
  EXPECT_EQ(EscapeXml("<b & \"c\" 'd'>"), "&lt;b &amp; &quot;c&quot; &#39;d&#39;&gt;");
  EXPECT_EQ(EscapeXml(std::string_view("a\0b", 3)), "a b");
  Svg svg(10, 10, "\"><script>", "d");
  svg.Text({1, 2}, "</text>", "name");
  const std::string text = std::move(svg).Finish();
  EXPECT_THAT(text, Not(HasSubstr("<script>")));
  EXPECT_THAT(text, HasSubstr("&lt;/text&gt;"));
}

TEST(Svg, StepsHoldTheirHeightUntilTheNextPoint) {
  Svg svg(10, 10, "t", "d");
  const SvgPoint points[] = {{0, 5}, {3, 5}, {4, 1}};
  svg.Steps(points, "curve");
  EXPECT_THAT(std::move(svg).Finish(), HasSubstr("d=\"M0 5H3H4V1\""));
}

TEST(Ticks, AreMultiplesOfOneTwoOrFive) {
  EXPECT_THAT(NiceTicks(0, 100, 5), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(NiceTicks(-12, 31, 4), ElementsAre(-10, 0, 10, 20, 30));
  EXPECT_THAT(NiceTicks(0.1, 0.32, 2),
              ElementsAre(DoubleNear(0.1, 1e-12), DoubleNear(0.2, 1e-12), DoubleNear(0.3, 1e-12)));
  EXPECT_THAT(NiceTicks(201, 204, 3), ElementsAre(201, 202, 203, 204));
}

TEST(Ticks, HaveAsManyDigitsAsTellThemApart) {
  EXPECT_EQ(TickText(0.25, 0.05), "0.25");
  EXPECT_EQ(TickText(1200, 200), "1,200");
  EXPECT_EQ(TickText(-50, 50), "\u221250");
  EXPECT_EQ(TickText(2500000, 500000), "2.5 M");
  EXPECT_EQ(TickText(0, 500000), "0");
  EXPECT_EQ(TickText(3, 0.5), "3.0");
}

TEST(Labels, StayWhereTheyAreIfThereIsRoom) {
  EXPECT_THAT(SpreadLabels({30, 10, 50}, 15, 0, 100), ElementsAre(30, 10, 50));
}

TEST(Labels, MoveApartByAsLittleAsItTakes) {
  EXPECT_THAT(SpreadLabels({50, 52}, 10, 0, 100), ElementsAre(46, 56));
  EXPECT_THAT(SpreadLabels({50, 50, 50}, 10, 0, 100), ElementsAre(40, 50, 60));
}

TEST(Labels, StayWithinTheirBounds) {
  EXPECT_THAT(SpreadLabels({99, 100}, 10, 0, 100), ElementsAre(90, 100));
  EXPECT_THAT(SpreadLabels({0, 1}, 10, 0, 100), ElementsAre(0, 10));
  EXPECT_THAT(SpreadLabels({5, 6, 7}, 60, 0, 100), ElementsAre(0, 50, 100));
}

TEST(Plot, CutsCurvesAtItsRightEdge) {
  Svg svg(100, 100, "t", "d");
  Plot plot(&svg, {.left = 0, .top = 0, .right = 100, .bottom = 100}, {.low = 0, .high = 10},
            {.low = 0, .high = 10});
  const SvgPoint data[] = {{0, 0}, {20, 10}};
  plot.Curve(data, "curve");
  EXPECT_THAT(std::move(svg).Finish(), HasSubstr("d=\"M0 100L100 50\""));
}

}  // namespace
}  // namespace rudderfish
