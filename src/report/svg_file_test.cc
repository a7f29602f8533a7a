// SPDX-License-Identifier: Apache-2.0
#include "report/svg_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/report_page.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string OneCurve() {
  Svg svg(100, 50, "title", "description");
  svg.BeginGroup("s0", "a");
  const SvgPoint points[] = {{0, 0}, {10, 10}};
  svg.Polyline(points, "curve");
  svg.EndGroup();
  return std::move(svg).Finish();
}

TEST(SvgFile, VariablesArePutInByValue) {
  const std::string file = SvgFile("Title", "what it shows", OneCurve());
  EXPECT_THAT(file, Not(HasSubstr("var(")));
  // The stroke that the group .s0 hands down to curves in it, in the light colours.
  EXPECT_THAT(file, HasSubstr(".s0 .curve"));
  EXPECT_THAT(file, HasSubstr("stroke: #0b62c4"));
  EXPECT_THAT(file, Not(HasSubstr("#62aefc")));
}

TEST(SvgFile, HoldsOnlyRulesThatItNeedsAndItsCaption) {
  const std::string file = SvgFile("<Title>", "what & why", OneCurve());
  EXPECT_THAT(file, Not(HasSubstr(".whisker")));
  EXPECT_THAT(file, Not(HasSubstr("@media")));
  EXPECT_THAT(file, HasSubstr("&lt;Title&gt;"));
  EXPECT_THAT(file, HasSubstr("what &amp; why"));
  EXPECT_THAT(file, HasSubstr("viewBox=\"0 0 152 150\""));
}

TEST(ReportPage, NumbersHaveATrueMinusSign) {
  EXPECT_EQ(SignedNumber(-1.25), "\u22121.2");
  EXPECT_EQ(SignedNumber(-0.001), "0.0");
  EXPECT_EQ(SignedIntervalText({-1, 2}, 2), "[\u22121.00, +2.00]");
  EXPECT_EQ(ReportFact("a", ""), "");
  EXPECT_THAT(ReportTile("<1>", "a & b"), HasSubstr("&lt;1&gt;"));
}

}  // namespace
}  // namespace rudderfish
