// SPDX-License-Identifier: Apache-2.0
#include "report/report_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

OrderedJson PairAgainst(const char* baseline, const char* metric, double difference,
                        const OrderedJson& better) {
  return {{"metric", metric},
          {"unit", "hours"},
          {"candidate", "a<b"},
          {"baseline", baseline},
          {"candidate_iqm", 2 + difference},
          {"baseline_iqm", 2.0},
          {"difference", difference},
          {"difference_ci95", {difference - 0.1, difference + 0.1}},
          {"better", better}};
}

TEST(ExperimentPage, HasEveryComparisonOfTheFirstMetricAndLinksToItsCell) {
  const auto steady = OrderedJson::array({PairAgainst("hpa", "core_hours", -0.5, true),
                                          PairAgainst("hpa", "changes", 3, false),
                                          PairAgainst("mpc", "core_hours", 0.01, nullptr)});
  auto ramp = OrderedJson::array({PairAgainst("hpa", "core_hours", 0.75, false)});
  ramp[0]["unit"] = "";
  const std::string html =
      ExperimentPage("six",
                     {{"shop.steady", "cells/shop.steady/report.html", &steady},
                      {"shop.ramp", "cells/shop.ramp/report.html", &ramp}},
                     OrderedJson::array(), OrderedJson::array(),
                     {.command = "rudderfish experiment x.yaml", .version = "1.2.3"});
  EXPECT_THAT(html, HasSubstr("<title>six: a&lt;b is better in 1 of 3 comparisons</title>"));
  EXPECT_THAT(html, HasSubstr(">shop.steady</a>: core_hours (hours)</th>"));
  EXPECT_THAT(html,
              HasSubstr("<a href=\"cells/shop.ramp/report.html\">shop.ramp</a>: core_hours</th>"));
  EXPECT_THAT(html,
              HasSubstr("<td>2.000</td><td>1.500</td><td>\u22120.500 [\u22120.600, "
                        "\u22120.400]</td><td class=\"left\"><b class=\"verdict good\">better"));
  EXPECT_THAT(html, HasSubstr("<b class=\"verdict open\">not shown"));
  EXPECT_THAT(html, HasSubstr("<b class=\"verdict bad\">worse"));
  EXPECT_THAT(html, HasSubstr("Worse in 1. The others"));
  EXPECT_THAT(html, Not(HasSubstr("changes")));
  EXPECT_THAT(html, HasSubstr("<code>rudderfish experiment x.yaml</code>"));
}

}  // namespace
}  // namespace rudderfish
