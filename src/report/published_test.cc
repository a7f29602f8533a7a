// SPDX-License-Identifier: Apache-2.0
#include "evaluation/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/files.h"
#include "evaluation/experiment.h"
#include "evaluation/pairs.h"
#include "report/published_html.h"
#include "report/report_experiment.h"
#include "report/report_placing.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kWorks = R"(
- by: A & B, 2024
  note: Not the same <quantity>.
  figures:
    - {what: active nodes, said: "1 of 3", objective: EE,
       ours: {metric: active_nodes, policy: learned}}
    - {what: imbalance, said: 2 times, scenario: one,
       ours: {metric: imbalance_cpu, policy: kube, over: learned}}
    - {what: makespan, said: +3 %, ours: {metric: makespan, policy: learned, above: kube}}
    - {what: overhead, said: 3.27 %, variant: near, ours: {metric: overhead, policy: learned}}
    - {what: a chart, said: rises}
)";

PublishedNames QuotedNames(Quoting quoting = Quoting::kAll) {
  return {.scenarios = {"one", "two"},
          .objectives = {"EE"},
          .variants = {"as-shipped", "near"},
          .policies = {"kube", "learned"},
          .quoting = quoting};
}

Result<std::vector<PublishedWork>> Parse(std::string_view text, Quoting quoting = Quoting::kAll) {
  const Result<YamlNode> node = ParseYaml(text, "e.yaml");
  CHECK(node.has_value());
  return ParsePublished(*node, QuotedNames(quoting));
}

// kube: 3 nodes, imbalance 0.3, 100 s. learned: 1.5 nodes, imbalance 0.2, 110 s, of which decisions
// take 1.1 s.
PlacementEvaluation TwoPolicies() {
  PlacementEvaluation evaluation{.scenario = "one", .objective = "energy", .episodes = 1};
  const auto add = [&](const char* name, double nodes, double imbalance, double seconds) {
    LifecycleMetrics metrics;
    metrics.seconds = seconds;
    metrics.active_nodes_s = nodes * seconds;
    metrics.sd_s[0] = imbalance * seconds;
    metrics.first_arrival = SimTime(0);
    metrics.end = SimTime(static_cast<int64_t>(seconds * 1e9));
    EvaluatedPlacement policy{.name = name, .training_seeds = 1, .episodes = {metrics}};
    policy.decide_s = 0.01 * seconds;
    evaluation.policies.push_back(std::move(policy));
  };
  add("kube", 3, 0.3, 100);
  add("learned", 1.5, 0.2, 110);
  return evaluation;
}

TEST(Published, EveryFigureStandsBesideOurs) {
  const auto works = Parse(kWorks);
  ASSERT_TRUE(works.has_value()) << works.error().message;
  const OrderedJson quotes = QuotesOf(*works, {"one", "EE", "near"}, "one.EE.near", TwoPolicies());
  ASSERT_EQ(quotes.size(), 5U);
  EXPECT_EQ(quotes[0]["by"], "A & B, 2024");
  EXPECT_EQ(quotes[0]["said"], "1 of 3");
  EXPECT_EQ(quotes[0]["cell"], "one.EE.near");
  EXPECT_DOUBLE_EQ(quotes[0]["ours"], 1.5);
  EXPECT_EQ(quotes[0]["ours_text"], "1.50 nodes");
  EXPECT_EQ(quotes[0]["ours_of"], "active nodes of learned");
  EXPECT_DOUBLE_EQ(quotes[1]["ours"], 1.5);
  EXPECT_EQ(quotes[1]["ours_text"], "1.50 times");
  EXPECT_EQ(quotes[1]["ours_of"], "imbalance of CPU of kube over learned");
  EXPECT_NEAR(quotes[2]["ours"], 10, 1e-9);
  EXPECT_EQ(quotes[2]["ours_text"], "+10.0 %");
  EXPECT_EQ(quotes[2]["ours_of"], "makespan of learned against kube");
  EXPECT_NEAR(quotes[3]["ours"], 1, 1e-9);
  EXPECT_EQ(quotes[3]["ours_text"], "1 %");
  EXPECT_EQ(quotes[3]["ours_of"], "share of the makespan of learned");
  EXPECT_EQ(quotes[4]["ours"], nullptr);
  EXPECT_EQ(quotes[4]["ours_text"], "");
}

TEST(Published, FiguresAreOfTheirCellsAlone) {
  const auto works = Parse(kWorks);
  const auto whats = [&](const PlacementPlace& place) {
    std::string all;
    for (const OrderedJson& quote : QuotesOf(*works, place, "c", TwoPolicies()))
      all += quote["what"].get<std::string>() + ";";
    return all;
  };
  EXPECT_EQ(whats({"two", "LB", "as-shipped"}), "makespan;a chart;");
  EXPECT_EQ(whats({"two", "EE", "as-shipped"}), "active nodes;makespan;a chart;");
  EXPECT_EQ(whats({"one", "LB", "near"}), "imbalance;makespan;overhead;a chart;");
}

TEST(Published, WhatTheClockSaysIsNoResult) {
  const auto works = Parse(kWorks);
  const OrderedJson rest =
      WithoutClock(QuotesOf(*works, {"one", "EE", "near"}, "c", TwoPolicies()));
  ASSERT_EQ(rest.size(), 5U);
  EXPECT_EQ(rest[3]["said"], "3.27 %");
  EXPECT_EQ(rest[3]["ours"], nullptr);
  EXPECT_DOUBLE_EQ(rest[0]["ours"], 1.5);
}

TEST(Published, WhatIsNotThereIsLeftOut) {
  constexpr std::string_view kOther = R"(
- by: C
  figures:
    - {what: gone, said: x, scenario: three}
    - {what: nobody, said: y, ours: {metric: makespan, policy: greedy}}
    - {what: over nobody, said: z, ours: {metric: makespan, policy: kube, over: greedy}}
    - {what: over nothing, said: z, ours: {metric: hard_misses, policy: kube, over: learned}}
)";
  EXPECT_FALSE(Parse(kOther).has_value());
  const auto works = Parse(kOther, Quoting::kWhatIsThere);
  ASSERT_TRUE(works.has_value()) << works.error().message;
  const OrderedJson quotes = QuotesOf(*works, {"one", "EE", "near"}, "c", TwoPolicies());
  ASSERT_EQ(quotes.size(), 3U);
  for (const OrderedJson& quote : quotes) EXPECT_EQ(quote["ours"], nullptr) << quote["what"];
}

TEST(Published, WhatIsWrongIsNamedWithItsPlace) {
  const auto refused = [](std::string_view figure) {
    const auto works = Parse(fmt::format("- by: A\n  figures:\n    - {}\n", figure));
    return works ? "" : works.error().message;
  };
  EXPECT_EQ(refused("{what: a, said: b}"), "");
  EXPECT_THAT(refused("{what: a, said: b, scenario: tow}"),
              HasSubstr("e.yaml:3:36: `[0].figures[0].scenario`: the experiment has no scenario "
                        "called tow; did you mean `two`?"));
  EXPECT_THAT(refused("{what: a, said: b, objective: EEE}"), HasSubstr("did you mean `EE`"));
  EXPECT_THAT(refused("{what: a, said: b, variant: nea}"), HasSubstr("did you mean `near`"));
  EXPECT_THAT(refused("{what: a}"), HasSubstr("missing key `said`"));
  EXPECT_THAT(refused("{what: '', said: b}"), HasSubstr("figures[0].what"));
  EXPECT_THAT(refused("{what: a, said: b, our: 5}"), HasSubstr("did you mean `ours`"));
  const auto own = [&](std::string_view ours) {
    return refused(fmt::format("{{what: a, said: b, ours: {{{}}}}}", ours));
  };
  EXPECT_EQ(own("metric: makespan, policy: kube"), "");
  EXPECT_THAT(own("metric: makespam, policy: kube"), HasSubstr("did you mean `makespan`"));
  EXPECT_THAT(own("metric: makespan, policy: lerned"), HasSubstr("did you mean `learned`"));
  EXPECT_THAT(own("metric: makespan, policy: kube, over: kub"), HasSubstr("did you mean `kube`"));
  EXPECT_THAT(own("metric: makespan"), HasSubstr("missing key `policy`"));
  EXPECT_THAT(own("metric: makespan, policy: kube, over: kube, above: kube"),
              HasSubstr("not both"));
  EXPECT_FALSE(Parse("[]").has_value());
  EXPECT_FALSE(Parse("- {by: A, figures: []}").has_value());
  EXPECT_FALSE(Parse("- {figures: [{what: a, said: b}]}").has_value());
}

TEST(Published, PagesQuoteThemBesideOurs) {
  const auto works = Parse(kWorks);
  const PlacementEvaluation evaluation = TwoPolicies();
  const OrderedJson quotes = QuotesOf(*works, {"one", "EE", "near"}, "one.EE.near", evaluation);
  const std::string page = PlacingReportHtml(evaluation, quotes, {});
  EXPECT_THAT(
      page,
      HasSubstr("A &amp; B, 2024, and our results next to it. Not the same &lt;quantity&gt;."));
  EXPECT_THAT(page, HasSubstr("1 of 3</td><td><b>1.50 nodes</b></td><td class=\"left\">active "
                              "nodes of learned</td>"));
  EXPECT_THAT(page, HasSubstr("rises</td><td><b>\u2013</b></td>"));
  EXPECT_THAT(page, Not(HasSubstr("one.EE.near")));  // Its own cell goes without saying.
  EXPECT_THAT(PlacingReportHtml(evaluation, OrderedJson::array(), {}),
              Not(HasSubstr("Published elsewhere")));
  OrderedJson all = quotes;
  for (const OrderedJson& quote :
       QuotesOf(*works, {"two", "LB", "near"}, "two.LB.near", evaluation))
    all.push_back(quote);
  const OrderedJson pairs = PairsOf(
      OutcomesOf(evaluation), {}, {{"scenario", "one"}, {"objective", "EE"}, {"variant", "near"}});
  const std::string whole =
      ExperimentPage("e", {{"one.EE.near", "x.html", &pairs}}, OrderedJson::array(), all, {});
  EXPECT_THAT(whole, HasSubstr("colspan=\"4\">two.LB.near</th>"));
  EXPECT_THAT(whole, HasSubstr("<b>1.50 nodes</b>"));
}

// Without this test a mistyped name would drop a figure unnoticed.
TEST(Published, EveryFigureOfAShippedExperimentIsQuotedWithOurs) {
  int figures = 0;
  for (const char* name : {"placing-thesis", "placing-drs"}) {
    const std::string path = SourcePath(fmt::format("experiments/{}.yaml", name));
    const auto root = ParseYaml(*ReadFile(path), path);
    ASSERT_TRUE(root.has_value()) << root.error().message;
    const auto experiment = ParseExperiment(*root);
    ASSERT_TRUE(experiment.has_value()) << experiment.error().message;
    for (const PublishedWork& work : experiment->placement->published) {
      EXPECT_FALSE(work.note.empty()) << name;
      for (const PublishedFigure& figure : work.figures) {
        EXPECT_FALSE(figure.ours.metric.empty()) << figure.what;
        ++figures;
      }
    }
  }
  EXPECT_EQ(figures, 7 + 11);
}

}  // namespace
}  // namespace rudderfish
