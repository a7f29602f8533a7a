// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "base/files.h"
#include "policy/baselines.h"
#include "policy/greedy.h"
#include "report/report_figures.h"
#include "report/svg.h"
#include "task/migration.h"
#include "tests/support/small_evaluation.h"

namespace rudderfish {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

struct Rendered {
  Evaluation evaluation;
  std::string html;
};

Rendered Render(const std::string& candidate, const ReportOptions& options, int count = 12) {
  const std::vector<StartState> starts = testing::ContinuumStarts(count);
  const std::vector<PolicyGroup> policies = {{"stay", {std::make_shared<StayPolicy>()}},
                                             {"random", {std::make_shared<RandomPolicy>()}},
                                             {candidate, {std::make_shared<GreedyPolicy>()}}};
  const MigrationTask task({});
  ThreadPool pool(1);
  Rendered rendered;
  rendered.evaluation =
      Evaluate(LatencyLaw::Reach(), task, starts, policies, {.scenario = "small"}, &pool);
  rendered.html = ReportHtml(rendered.evaluation, Compare(rendered.evaluation, {.resamples = 200}),
                             starts, options);
  return rendered;
}

std::vector<CurvePoint> Curve(double offset_ms) {
  std::vector<CurvePoint> points;
  for (int i = 0; i <= 10; ++i) {
    points.push_back(
        {.env_steps = i * 100'000, .seconds = i * 1.5, .final_ms = 300 - 5.0 * i + offset_ms});
  }
  return points;
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Elements that are open when each closing tag comes must close in reverse order.
void ExpectTagsBalance(const std::string& html) {
  const std::vector<std::string> empty = {"meta", "line", "path", "rect", "circle", "br"};
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z0-9]+)[^>]*?(/?)>");
  for (std::sregex_iterator it(html.begin(), html.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if ((*it)[1] == "/") {
      ASSERT_FALSE(open.empty()) << name;
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    } else if ((*it)[3] != "/" && std::find(empty.begin(), empty.end(), name) == empty.end()) {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(Report, IsSelfContained) {
  const std::string html = Render("greedy", {}).html;
  for (const char* outside :
       {"http:", "https:", "<script", "<link", "<img", "url(", "@import", "src="}) {
    EXPECT_EQ(Count(html, outside), 0) << outside;
  }
}

TEST(Report, EveryTagIsClosed) {
  ExpectTagsBalance(Render("greedy", {.curves = {{"greedy", {Curve(0), Curve(4)}}}}).html);
}

TEST(Report, EveryFigureSaysWhatItShows) {
  const std::string html = Render("greedy", {.curves = {{"greedy", {Curve(0)}}}}).html;
  EXPECT_EQ(Count(html, "<svg "), 7);
  EXPECT_EQ(Count(html, "role=\"img\" aria-label="), 7);
  EXPECT_EQ(Count(html, "<desc></desc>"), 0);
}

TEST(Report, NamesCannotBreakOut) {
  const std::string name = "<img src=x onerror=alert(1)>\"'&";
  const std::string html =
      Render(name, {.command = "evaluate '<script>'", .curves = {{name, {Curve(0)}}}}).html;
  EXPECT_EQ(Count(html, "<img"), 0);
  EXPECT_EQ(Count(html, "<script"), 0);
  EXPECT_THAT(html, HasSubstr("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
}

TEST(Report, BeginsWithTheVerdict) {
  const Rendered rendered = Render("greedy", {});
  EXPECT_LT(rendered.html.find("greedy is better than stay on these 12 starts"),
            rendered.html.find("<svg"));
}

TEST(Report, IsTheSameEachTimeItIsMade) {
  ReportOptions options{.command = "evaluate", .version = "1.2.3"};
  Rendered one = Render("greedy", options), two = Render("greedy", options);
  // Times of decisions are the clock's.
  const std::regex clock("[0-9.]+ (\u00b5s|ms)<");
  EXPECT_EQ(std::regex_replace(one.html, clock, "<"), std::regex_replace(two.html, clock, "<"));
}

TEST(Report, LearningIsLeftOutWhereNothingWasLearned) {
  EXPECT_THAT(Render("greedy", {}).html, Not(HasSubstr("Learning curve")));
  EXPECT_THAT(Render("greedy", {.curves = {{"greedy", {{}}}}}).html,
              Not(HasSubstr("Learning curve")));
}

TEST(Report, LearningCurveTellsTimeWhereItIsKnown) {
  EXPECT_THAT(Render("greedy", {.curves = {{"greedy", {Curve(0)}}}}).html, HasSubstr(">15 s<"));
  std::vector<CurvePoint> untimed = Curve(0);
  for (CurvePoint& point : untimed) point.seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Render("greedy", {.curves = {{"greedy", {untimed}}}}).html, Not(HasSubstr(">15 s<")));
}

// What stands in the text elements of a figure.
std::vector<std::string> Texts(const std::string& svg) {
  const std::regex text("<text[^>]*>([^<]*)</text>");
  std::vector<std::string> texts;
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), end; it != end; ++it)
    texts.push_back((*it)[1]);
  return texts;
}

TEST(ReportFigures, LongNamesAreCutToTheirRoom) {
  const std::string name(80, 'n');
  const Evaluation evaluation = testing::MadeUpEvaluation(
      {{"base", {std::vector<double>(8, 90)}}, {name, {std::vector<double>(8, 50)}}});
  const Comparison comparison = Compare(evaluation, {.resamples = 50});
  const ReportPolicies policies(evaluation, comparison);
  for (const std::string& svg :
       {DifferenceFigure(evaluation, comparison), IntervalFigure(evaluation, comparison, policies),
        DistributionFigure(evaluation, policies), MovesFigure(evaluation, comparison, policies),
        LearningFigure({{name, {Curve(0)}}}, evaluation, policies)}) {
    EXPECT_THAT(Texts(svg), Contains(HasSubstr("nnn\u2026")));
    EXPECT_THAT(Texts(svg), Each(Not(HasSubstr(std::string(60, 'n')))));
  }
}

TEST(ReportFigures, ALearningCurveBelowZeroStaysInItsFrame) {
  std::vector<CurvePoint> run;
  for (int i = 1; i <= 4; ++i) run.push_back({.env_steps = i * 1000, .final_ms = -4.0 + i});
  const std::string svg = LearningFigure({{"learned", {run}}}, {"s1"}, "objective");
  EXPECT_THAT(Texts(svg), Contains("\u22122"));
}

TEST(ReportFigures, NamesEndBeforeTheirValues) {
  const double bold_px = 14.2, all = 540;
  const std::string name = "lookahead+runs/continuum";
  const Evaluation evaluation = testing::MadeUpEvaluation(
      {{"base", {std::vector<double>(8, 1990)}}, {name, {std::vector<double>(8, 1950)}}});
  const Comparison comparison = Compare(evaluation, {.resamples = 50});
  const ReportPolicies policies(evaluation, comparison);
  const std::regex pair(
      "<text x=\"([0-9.]+)\"[^>]*class=\"name\"[^>]*>([^<]*)</text>\\s*"
      "<text x=\"540\"[^>]*class=\"value\"[^>]*>([^<]*)</text>");
  for (const std::string& svg :
       {DistributionFigure(evaluation, policies), MovesFigure(evaluation, comparison, policies)}) {
    int pairs = 0;
    for (std::sregex_iterator it(svg.begin(), svg.end(), pair), end; it != end; ++it, ++pairs) {
      EXPECT_LT(std::stod((*it)[1]) + TextWidth((*it)[2].str(), bold_px),
                all - TextWidth((*it)[3].str(), bold_px))
          << (*it)[2];
    }
    EXPECT_EQ(pairs, 2);
  }
}

TEST(ReportFigures, BarsTooFineToSeeAreOneArea) {
  std::vector<double> few(12), many(600);
  for (size_t i = 0; i < few.size(); ++i) few[i] = 50 + static_cast<double>(i);
  for (size_t i = 0; i < many.size(); ++i) many[i] = 50 + static_cast<double>(i) / 10;
  const auto bars = [](const std::vector<double>& finals) {
    const Evaluation evaluation = testing::MadeUpEvaluation(
        {{"base", {std::vector<double>(finals.size(), 80)}}, {"candidate", {finals}}});
    const std::string svg = StartsFigure(evaluation, Compare(evaluation, {.resamples = 50}));
    return std::pair(Count(svg, "\"bar good\""), Count(svg, "\"bar bad\""));
  };
  EXPECT_EQ(bars(few), std::pair(12, 0));
  EXPECT_EQ(bars(many), std::pair(1, 1));
}

TEST(ReportFigures, LongPlansAreShownToTheirEnd) {
  Evaluation evaluation = testing::MadeUpEvaluation({{"long", {std::vector<double>(8, 50)}}});
  for (EvaluatedEpisode& episode : evaluation.policies[0].episodes) {
    episode.decisions.resize(100, {.predicted_ms = 0.5});
  }
  const Comparison comparison = Compare(evaluation, {.resamples = 50});
  EXPECT_THAT(MovesFigure(evaluation, comparison, ReportPolicies(evaluation, comparison)),
              HasSubstr("After 101 moves"));
}

TEST(Report, OnePolicyMakesAPageWithoutVerdict) {
  const std::vector<StartState> starts = testing::ContinuumStarts(2);
  const std::vector<PolicyGroup> policies = {{"stay", {std::make_shared<StayPolicy>()}}};
  const MigrationTask task({});
  ThreadPool pool(1);
  const Evaluation evaluation = Evaluate(LatencyLaw::Reach(), task, starts, policies, {}, &pool);
  const std::string html = ReportHtml(evaluation, Compare(evaluation), starts, {});
  EXPECT_THAT(html, HasSubstr("stay takes "));
  ExpectTagsBalance(html);
}

TEST(Report, IsWrittenWholeOrRefusedByPath) {
  const std::vector<StartState> starts = testing::ContinuumStarts(1);
  const Evaluation evaluation = testing::MadeUpEvaluation({{"a", {{100}}}});
  const Comparison comparison = Compare(evaluation);
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "report_test.html";
  ASSERT_TRUE(WriteReport(evaluation, comparison, starts, {}, path).has_value());
  EXPECT_EQ(ReadFile(path).value(), ReportHtml(evaluation, comparison, starts, {}));
  std::filesystem::remove(path);
  const auto refused = WriteReport(evaluation, comparison, starts, {}, "/nowhere/report.html");
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("/nowhere/report.html"));
}

}  // namespace
}  // namespace rudderfish
