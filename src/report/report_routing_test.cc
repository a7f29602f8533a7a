// SPDX-License-Identifier: Apache-2.0
#include "report/report_routing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "base/check.h"
#include "policy/registry.h"
#include "report/figure_parts.h"
#include "report/routing_figures.h"
#include "scenario/scenario.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Judged {
  RoutingEvaluation evaluation;
  RoutingRecord record;
};

// On all sixteen regions, more than there are colours.
Judged JudgedOf(const std::vector<std::string>& policies,
                const std::vector<std::string>& variants) {
  Result<Scenario> scenario = LoadScenario(SourcePath("scenarios/multicloud-16.yaml"));
  CHECK(scenario.has_value());
  std::vector<NamedRoutingPolicy> made;
  for (const std::string& name : policies) {
    const PolicySpec spec = ParsePolicySpec(name == "<b>" ? "static" : name).value();
    made.push_back({name, {MakeRoutingPolicy(spec).value()}});
  }
  ThreadPool pool(1);
  const std::vector<int> positions = VariantsNamed(*scenario->regions, variants).value();
  Judged judged;
  judged.evaluation = EvaluateRouting("multicloud-16", scenario->regions, made,
                                      {.variants = positions, .episodes = 6, .trials = 2}, &pool);
  judged.record = RecordRouting(judged.evaluation, scenario->regions, made, positions, &pool);
  return judged;
}

std::string PageOf(const Judged& judged) {
  return RoutingReportHtml(judged.evaluation, judged.record, {.command = "rudderfish evaluate"});
}

TEST(RoutingReport, SaysWhatIsWonAndShowsEachVariant) {
  const std::string page = PageOf(JudgedOf({"<b>", "locality"}, {"calm", "full"}));
  EXPECT_THAT(page, HasSubstr("beats the best of the others in"));
  EXPECT_THAT(page, HasSubstr("<h2>Under calm</h2>"));
  EXPECT_THAT(page, HasSubstr("<h2>Under full</h2>"));
  EXPECT_THAT(page, HasSubstr("locality is better than &lt;b&gt; on these 6 episodes"));
  EXPECT_THAT(page, Not(HasSubstr("<b>: ")));
  EXPECT_THAT(page, HasSubstr("others"));  // Regions beyond the colours.
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(RoutingReport, ALossIsNotBetter) {
  const std::string page = PageOf(JudgedOf({"locality", "static:home=0"}, {"calm"}));
  EXPECT_THAT(page, HasSubstr("than locality: not better</h1>"));
}

TEST(RoutingReport, OnePolicyHasNoVerdict) {
  const std::string page = PageOf(JudgedOf({"locality"}, {"spot"}));
  EXPECT_THAT(page, HasSubstr("with a second one there would be a verdict"));
  EXPECT_THAT(page, Not(HasSubstr("not better")));
}

TEST(RoutingFigures, TheBarsOfARequestAddUpToTheObjective) {
  const Judged judged = JudgedOf({"static", "locality"}, {"full"});
  double objective = 0;
  for (int i = 0; i < 6; ++i) objective += judged.evaluation.at(0, 1, 0, i).objective() / 6;
  EXPECT_THAT(CostPartsFigure(judged.evaluation, 0),
              HasSubstr(fmt::format(">{:.4f}</text>", objective)));
  EXPECT_THAT(RoutingSeries(judged.evaluation, 0), ::testing::ElementsAre("s1", "s0"));
}

TEST(FigureParts, ACurveWithoutAnswersEndsLevel) {
  const double never = std::numeric_limits<double>::infinity();
  const std::string figure = LatencyCurvesFigure(
      {{.css = "s0", .name = "one", .within = {{10, 0}, {100, 0.9}, {never, 0.99}}}}, 0, 0);
  EXPECT_THAT(figure, HasSubstr("one no answer;"));
  EXPECT_THAT(figure, Not(HasSubstr("inf")));
  EXPECT_THAT(figure, Not(HasSubstr("target")));
}

TEST(FigureParts, TheFrontLeavesOutWhatAnotherBeatsInBoth) {
  Svg svg(100, 100, "t", "d");
  Plot plot(&svg, {.left = 0, .top = 0, .right = 100, .bottom = 100}, {.high = 10}, {.high = 10});
  DrawFront({{.x = 2, .y = 8}, {.x = 5, .y = 9}, {.x = 6, .y = 1}}, plot, &svg);
  const std::string text = std::move(svg).Finish();
  EXPECT_THAT(text, HasSubstr("L20 20L"));    // (2, 8)
  EXPECT_THAT(text, Not(HasSubstr("L50 ")));  // (5, 9)
  EXPECT_THAT(text, HasSubstr("L60 90L"));    // (6, 1)
}

}  // namespace
}  // namespace rudderfish
