// SPDX-License-Identifier: Apache-2.0
#include "report/report_placing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/check.h"
#include "evaluation/pairs.h"
#include "evaluation/placement_comparison.h"
#include "policy/registry.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// Three workers at unlike distances from the users, one of them beyond the hard limit.
const PlacementEvaluation& NearUsers() {
  static const PlacementEvaluation kEvaluation = [] {
    const std::string path = SourcePath("scenarios/thesis-test2.yaml");
    const YamlChange failing{"arrivals.failures",
                             "{every: {exponential: 10min}, down: 30s to 2min}"};
    Result<Scenario> loaded = LoadScenario(path, {&failing, 1});
    CHECK(loaded.has_value());
    loaded->objective = Objective{.weight = {0, 0.1, 0, 0, 0, 1}};
    const auto scenario = std::make_shared<const Scenario>(*std::move(loaded));
    std::vector<PlacementGroup> groups;
    for (const char* name : {"least-allocated:limits=ignore", "mixed:greedy=1", "greedy"})
      groups.push_back({name, {*MakePlacementPolicy(name, PlacementTask(*scenario->objective))}});
    ThreadPool pool(1);
    return *EvaluatePlacements(scenario, groups, {.seed = 1, .episodes = 8}, &pool);
  }();
  return kEvaluation;
}

const PairLabels kCell = {{"scenario", "thesis"}, {"objective", "near"}, {"variant", "failing"}};

OrderedJson PairAgainst(const PlacementEvaluation& evaluation, std::string_view baseline,
                        std::string_view metric) {
  for (const OrderedJson& pair : PairsOf(OutcomesOf(evaluation), {}, kCell)) {
    if (pair["baseline"] == baseline && pair["metric"] == metric) return pair;
  }
  return nullptr;
}

TEST(PlacementComparison, WhatKnowsNoLimitsViolatesThemAndThatIsWorse) {
  const OrderedJson hard = PairAgainst(NearUsers(), "least-allocated:limits=ignore", "hard_misses");
  EXPECT_GT(hard["baseline_mean"], 10.0);
  EXPECT_EQ(hard["candidate_mean"], 0.0);
  EXPECT_EQ(hard["better"], true);
  EXPECT_EQ(hard["unit"], "bindings");
  EXPECT_LT(hard["difference_ci95"][1], 0.0);
  EXPECT_EQ(PairAgainst(NearUsers(), "least-allocated:limits=ignore", "objective")["better"], true);
}

TEST(PlacementComparison, MoreUtilisationIsBetterAndLessBalanceWorse) {
  const auto better = [](std::string_view metric) {
    return PairAgainst(NearUsers(), "least-allocated:limits=ignore", metric)["better"];
  };
  EXPECT_EQ(better("active_utilisation_cpu"), true);  // Fewer nodes, each fuller.
  EXPECT_EQ(better("imbalance_cpu"), false);
}

TEST(PlacementComparison, WhatViolatesHardLimitsIsNoBaselineWhereAnotherKeepsThem) {
  const PlacementEvaluation& found = NearUsers();
  EXPECT_EQ(found.baseline, 1);
  EXPECT_EQ(found.finding, Finding::kUndecided);  // The same placements, summed in another order.
}

TEST(PlacementComparison, EqualPoliciesAreUndecidedInEverything) {
  for (const OrderedJson& pair : PairsOf(OutcomesOf(NearUsers()), {}, kCell)) {
    EXPECT_EQ(pair["scenario"], "thesis");
    EXPECT_EQ(pair["objective"], "near");
    EXPECT_EQ(pair["variant"], "failing");
    if (pair["baseline"] == "mixed:greedy=1") {
      EXPECT_EQ(pair["better"], nullptr) << pair["metric"];
      EXPECT_EQ(pair["difference"], 0.0) << pair["metric"];
    }
  }
}

TEST(PlacementComparison, FewEpisodesDecideNothing) {
  PlacementEvaluation few = NearUsers();
  few.episodes = 5;
  for (EvaluatedPlacement& policy : few.policies) policy.episodes.resize(5);
  EXPECT_EQ(PairAgainst(few, "least-allocated:limits=ignore", "objective")["better"], nullptr);
  EXPECT_THAT(PairsTable(PairsOf(OutcomesOf(few), {}, kCell)),
              HasSubstr("\nNothing can be shown on 5 episodes: at least 6 are needed.\n"));
}

TEST(PlacementComparison, TheTableHasARowForEachBaseline) {
  const std::string table = PairsTable(PairsOf(OutcomesOf(NearUsers()), {}, kCell));
  EXPECT_TRUE(std::regex_search(
      table, std::regex("least-allocated:limits=ignore +objective +0[.].*\\] +yes\n")))
      << table;
  EXPECT_THAT(table, HasSubstr("[0.00000, 0.00000]  undecided\n"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
}

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(PlacingReport, IsSelfContainedAndSaysTheVerdict) {
  PlacementEvaluation evaluation = NearUsers();
  evaluation.policies.back().name = "a<b";
  const std::string html =
      PlacingReportHtml(evaluation, OrderedJson::array(), {.command = "experiment x"});
  for (const char* outside : {"http:", "https:", "<script", "<link", "<img", "url(", "src="})
    EXPECT_EQ(CountOf(html, outside), 0) << outside;
  EXPECT_EQ(CountOf(html, "<svg "), 4);
  for (const char* tag : {"figure", "svg", "g", "table", "tr", "td", "th", "text"}) {
    EXPECT_EQ(CountOf(html, fmt::format("<{}>", tag)) + CountOf(html, fmt::format("<{} ", tag)),
              CountOf(html, fmt::format("</{}>", tag)))
        << tag;
  }
  EXPECT_THAT(html, HasSubstr("No difference shown between a&lt;b and mixed:greedy=1"));
  EXPECT_THAT(html, HasSubstr("above the hard limit (bindings)"));
  EXPECT_THAT(html, HasSubstr("a decision, p99"));
  EXPECT_THAT(html, HasSubstr("<code>experiment x</code>"));
}

TEST(PlacingReport, MarksWhatIsLost) {
  PlacementEvaluation evaluation = NearUsers();
  evaluation.finding = Finding::kWorse;
  EXPECT_THAT(PlacingReportHtml(evaluation, OrderedJson::array(), {}),
              HasSubstr("<span class=\"bad\">"));
  EXPECT_THAT(PlacingReportHtml(evaluation, OrderedJson::array(), {}), HasSubstr("not better"));
}

}  // namespace
}  // namespace rudderfish
