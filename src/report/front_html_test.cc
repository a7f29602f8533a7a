// SPDX-License-Identifier: Apache-2.0
#include "report/front_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

OrderedJson PointAt(double price, double cost, double carbon) {
  return {{"dollars_per_ton", price},
          {"cost", cost},
          {"carbon_g_per_million", carbon},
          {"late_percent", 0.5}};
}

TEST(FrontsHtml, HasADotForEachPriceAndTheVerdictOfEachPolicy) {
  EXPECT_EQ(FrontsHtml(OrderedJson::array()), "");
  OrderedJson front{{"scenario", "spot"},
                    {"place", "a<b"},
                    {"episodes", 100},
                    {"ideal", {{"cost", 0.7}, {"carbon_g_per_million", 20.0}}},
                    {"reference", {{"cost", 1.03}, {"carbon_g_per_million", 31.0}}}};
  front["policies"] = {{{"policy", "lp"},
                        {"hypervolume", 0.25},
                        {"hypervolume_ci95", {0.2, 0.3}},
                        {"difference", 0.5},
                        {"difference_ci95", {0.4, 0.6}},
                        {"better", true},
                        {"points", {PointAt(0, 0.9, 30), PointAt(6000, 1.0, 27)}}},
                       {{"policy", "mpc"},
                        {"hypervolume", 0.75},
                        {"hypervolume_ci95", {0.7, 0.8}},
                        {"points", {PointAt(0, 0.7, 25), PointAt(6000, 0.8, 20)}}}};
  const std::string html = FrontsHtml(OrderedJson::array({front}));
  EXPECT_THAT(html, HasSubstr("Cost against carbon: spot, a&lt;b"));
  EXPECT_THAT(html, HasSubstr("mpc at 6000 $/t: 0.8000, 20.00 g, 0.50 % late"));
  EXPECT_THAT(html, HasSubstr("<b class=\"verdict good\">larger</b>"));
  EXPECT_THAT(html, HasSubstr("<td>0.750 [0.700, 0.800]</td>"));
}

}  // namespace
}  // namespace rudderfish
