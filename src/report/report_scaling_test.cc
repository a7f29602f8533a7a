// SPDX-License-Identifier: Apache-2.0
#include "report/report_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/files.h"
#include "evaluation/scaling_difference.h"
#include "report/scaling_figures.h"
#include "tests/support/small_scaling.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::SmallScalingSummary;

int Occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The candidate won the first load and lost the second.
ScalingSummary Decided() {
  ScalingSummary summary = SmallScalingSummary();
  for (ScalingLoadSummary& load : summary.loads) {
    load.episodes = kEpisodesForFinding;
    load.baseline = 0;
    load.policies[0].violation_share = load.policies.back().violation_share;
    load.policies.back().against_baseline = ScalingDifference{
        .core_hours = -.1, .core_hours_ci95 = {-.12, -.08}, .violation_share_ci95 = {-.01, 0}};
  }
  summary.loads[1].policies.back().against_baseline->violation_share_ci95 = {.02, .03};
  return summary;
}

TEST(ScalingReport, IsSelfContained) {
  const std::string html = ScalingReportHtml(SmallScalingSummary(), {.command = "evaluate x"});
  for (const char* outside :
       {"http:", "https:", "<script", "<link", "<img", "url(", "@import", "src="}) {
    EXPECT_EQ(Occurrences(html, outside), 0) << outside;
  }
  // A row of differences, per load latencies, cost and two of an episode; the graph.
  EXPECT_EQ(Occurrences(html, "<svg "), 1 + 2 * 4 + 1);
  EXPECT_EQ(Occurrences(html, "role=\"img\" aria-label="), 10);
  EXPECT_EQ(Occurrences(html, "<desc></desc>"), 0);
  for (const char* tag : {"figure", "svg", "g", "table", "tr", "td", "th", "text"}) {
    EXPECT_EQ(
        Occurrences(html, fmt::format("<{}>", tag)) + Occurrences(html, fmt::format("<{} ", tag)),
        Occurrences(html, fmt::format("</{}>", tag)))
        << tag;
  }
}

TEST(ScalingReport, SaysTheVerdictOfEveryLoadInWords) {
  const std::string html = ScalingReportHtml(Decided(), {});
  EXPECT_LT(html.find("hpa:cpu=60 beats the best of the others on"), html.find("<svg"));
  EXPECT_THAT(html, HasSubstr("1 of 2 loads"));
  EXPECT_THAT(html, HasSubstr("verdict good\">better</b>"));
  EXPECT_THAT(html, HasSubstr("% fewer core-hours (\u22120.100 [\u22120.120, \u22120.080])"));
  EXPECT_THAT(html, HasSubstr("verdict bad\">not better</b>"));
  EXPECT_THAT(html, HasSubstr("; its violations are more than 0.1 points above."));
}

TEST(ScalingReport, WhatIsNotShownIsSaidSo) {
  ScalingSummary summary = Decided();
  summary.loads.resize(1);
  ScalingDifference& difference = *summary.loads[0].policies.back().against_baseline;
  EXPECT_THAT(ScalingReportHtml(summary, {}), HasSubstr("<h1>hpa:cpu=60 serves steady with "));
  difference.core_hours_ci95 = {-.12, .01};
  EXPECT_THAT(ScalingReportHtml(summary, {}), HasSubstr("is not shown to be better than hold"));
  difference.core_hours_ci95 = {.01, .02};
  EXPECT_THAT(ScalingReportHtml(summary, {}), HasSubstr("; it costs more."));
  difference.core_hours_ci95 = {-.12, -.1};
  difference.violation_share_ci95 = {-.01, .01};
  EXPECT_THAT(ScalingReportHtml(summary, {}), HasSubstr("; it is cheaper, but violations may be"));
}

TEST(ScalingReport, NamesCannotBreakOut) {
  ScalingSummary summary = SmallScalingSummary();
  for (ScalingLoadSummary& load : summary.loads) {
    load.load = "<img src=x>";
    load.policies.back().name = "<script>\"'&";
  }
  summary.nodes[1].name = "<img src=y>";
  summary.scenario = "<script>";
  const std::string html = ScalingReportHtml(summary, {.command = "evaluate '<script>'"});
  EXPECT_EQ(Occurrences(html, "<img"), 0);
  EXPECT_EQ(Occurrences(html, "<script"), 0);
}

TEST(ScalingReport, OnePolicyOnOneLoadMakesAPageWithoutVerdict) {
  ScalingSummary summary = SmallScalingSummary();
  summary.loads.resize(1);
  ScalingLoadSummary& load = summary.loads[0];
  load.policies.erase(load.policies.begin(), load.policies.end() - 1);
  load.baseline = -1;
  load.policies[0].against_baseline.reset();
  const std::string html = ScalingReportHtml(summary, {});
  EXPECT_THAT(html, HasSubstr("hpa:cpu=60 under steady"));
  EXPECT_THAT(html, Not(HasSubstr("Load by load")));
  EXPECT_THAT(html, HasSubstr("Call graph"));
}

// Values that make scales collapse, or logarithms of zero.
TEST(ScalingReport, ExtremesAreDrawn) {
  ScalingSummary summary = SmallScalingSummary();
  for (ScalingLoadSummary& load : summary.loads) {
    for (ScalingPolicySummary& policy : load.policies) {
      policy.core_hours = policy.violation_share = policy.p95_ms = 0;
      policy.latency_ms.clear();
      for (ScalingMoment& moment : policy.timeline)
        moment = {.at_s = moment.at_s, .replicas = {0, 0, 0}};
    }
  }
  const std::string html = ScalingReportHtml(summary, {});
  EXPECT_EQ(Occurrences(html, "nan"), 0);
  EXPECT_EQ(Occurrences(html, "inf"), 0);
}

TEST(ScalingReport, IsWrittenWholeOrRefusedByPath) {
  const auto refused = WriteScalingReport(SmallScalingSummary(), {}, "/nowhere/report.html");
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("/nowhere/report.html"));
}

// As under a replay with minutes without requests.
TEST(ScalingFigures, AnIntervalWithoutAnswersIsAGapInThePanelOfResponses) {
  ScalingSummary summary = SmallScalingSummary();
  const auto lines = [&] { return Occurrences(TimelineFigure(summary, 0), "class=\"curve\""); };
  const int whole = lines();
  std::vector<ScalingMoment>& moments = summary.loads[0].policies.back().timeline;
  ASSERT_GE(moments.size(), 3u);
  moments[1].p95_ms = 0;
  EXPECT_EQ(lines(), whole + 1);
  const std::string svg = TimelineFigure(summary, 0);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  // Nothing is drawn below the picture.
  std::smatch box;
  ASSERT_TRUE(std::regex_search(svg, box, std::regex("viewBox=\"0 0 ([0-9.]+) ([0-9.]+)\"")));
  const std::regex down("V([0-9.]+)");
  for (std::sregex_iterator at(svg.begin(), svg.end(), down), end; at != end; ++at) {
    EXPECT_LE(std::stod((*at)[1]), std::stod(box[2]));
  }
}

// Nothing that is no end of a call lies on its way.
TEST(ScalingFigures, ACallPastAColumnHasALaneThere) {
  ScalingSummary summary = SmallScalingSummary();
  const auto flows = [&] { return Occurrences(CallGraphFigure(summary, 10), "class=\"flow\""); };
  ASSERT_GE(summary.nodes.size(), 3u);
  const int before = flows();
  int deepest = 0, root = 0;
  for (size_t n = 0; n < summary.nodes.size(); ++n) {
    if (summary.nodes[n].depth > summary.nodes[deepest].depth) deepest = static_cast<int>(n);
    if (summary.nodes[n].depth == 0) root = static_cast<int>(n);
  }
  const int columns = summary.nodes[deepest].depth;
  ASSERT_GE(columns, 2);
  summary.edges.push_back({.from = root, .to = deepest, .calls_per_request = 1});
  EXPECT_EQ(flows(), before + columns + (columns - 1));
}

TEST(ScalingFigures, APolicyHasOneColourOnAllLoads) {
  ScalingSummary summary = Decided();
  EXPECT_THAT(ScalingSeries(summary), ::testing::ElementsAre("s1", "s2", "s0"));
  summary.loads[0].baseline = summary.loads[1].baseline = 1;
  EXPECT_THAT(ScalingSeries(summary), ::testing::ElementsAre("s2", "s1", "s0"));
}

TEST(ScalingFigures, LatenciesAreMarkedAsPeopleSayThem) {
  const auto marks = internal::LatencyMarks(5, 2000);
  std::vector<std::string> texts;
  for (const auto& [at, text] : marks) texts.push_back(text);
  EXPECT_THAT(texts, ::testing::ElementsAre("10 ms", "30 ms", "100 ms", "300 ms", "1 s"));
  EXPECT_EQ(LatencyText(9.96), "10.0 ms");
  EXPECT_EQ(LatencyText(1500), "1.5 s");
}

}  // namespace
}  // namespace rudderfish
