// SPDX-License-Identifier: Apache-2.0
#include "model/pod_counts.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace rudderfish {
namespace {

TEST(PodCounts, TotalsAreSumsOverNodesWhetherPodsOrMatchersComeFirst) {
  PodClass web, db;
  web.object_namespace = db.object_namespace = "default";
  web.labels = {{"app", "web"}};
  db.labels = {{"app", "db"}};
  PodAffinityTerm selects_web;
  selects_web.namespaces = {"default"};
  selects_web.selector = LabelSelector{{{"app", LabelRequirement::Operator::kIn, {"web"}}}};
  PodCounts counts;
  counts.Reset(3, {});
  const auto all = counts.Matcher({&selects_web, 1}, PodCounts::Counts::kAllPods);
  const auto serving = counts.Matcher({&selects_web, 1}, PodCounts::Counts::kServingPods);
  counts.AddClass(0, &web);
  counts.AddClass(1, &db);
  counts.Place(0, 0, PodLife::kServing);
  counts.Place(0, 2, PodLife::kServing);
  counts.Place(0, 2, PodLife::kTerminating);
  counts.Place(1, 1, PodLife::kServing);
  EXPECT_EQ(counts.total(all), 3);
  EXPECT_EQ(counts.total(serving), 2);
  selects_web.selector->requirements[0].values.push_back("db");
  const auto both = counts.Matcher({&selects_web, 1}, PodCounts::Counts::kAllPods);
  EXPECT_EQ(counts.total(both), 4);
  counts.Remove(0, 2, PodLife::kServing);
  for (const auto& [matcher, total] : {std::pair(all, 2), {serving, 1}, {both, 3}}) {
    EXPECT_EQ(counts.total(matcher), total);
    const auto by_node = counts.by_node(matcher);
    EXPECT_EQ(std::accumulate(by_node.begin(), by_node.end(), 0), total);
  }
}

// As many as there are pods, each with its bearer on one node.
TEST(PodCounts, BurdensAreCountedWhereTheirBearersAreAndLeaveNothingBehind) {
  constexpr int kClasses = 50;
  std::vector<PodClass> bearers(kClasses);
  PodClass other;
  other.object_namespace = "default";
  PodCounts counts;
  counts.Reset(5000, {});
  PodAffinityTerm term{{"default"}, {}, LabelSelector{}, "zone"};
  for (int i = 0; i < kClasses; ++i) {
    counts.AddClass(i, &bearers[i]);
    counts.AddBurden(i, {{term}}, i % 2, PodCounts::Effect::kForbids);
  }
  counts.AddClass(kClasses, &other);
  const auto burdens = counts.burdens_on(kClasses);
  ASSERT_EQ(burdens.size(), 2u) << "one of each topology, however many bring it";
  EXPECT_LT(counts.burden(burdens[0].id).key_row, counts.burden(burdens[1].id).key_row);
  counts.Place(0, 4000, PodLife::kServing);
  counts.Place(2, 30, PodLife::kServing);
  counts.Place(4, 4000, PodLife::kTerminating);
  using OnNodes = std::vector<std::pair<NodeId, int64_t>>;
  EXPECT_EQ(counts.burden(burdens[0].id).on_nodes, (OnNodes{{30, 1}, {4000, 2}}));
  counts.Remove(0, 4000, PodLife::kServing);
  counts.Remove(4, 4000, PodLife::kTerminating);
  EXPECT_EQ(counts.burden(burdens[0].id).on_nodes, (OnNodes{{30, 1}}));
  EXPECT_EQ(counts.burden(burdens[0].id).bearers, 1);
}

PodAffinityTerm TermOf(const std::string& app) {
  return {
      {"default"}, {}, LabelSelector{{{"app", LabelRequirement::Operator::kIn, {app}}}}, "zone"};
}

// So that a question about another pod does not look at them one by one.
TEST(PodCounts, TenThousandTermsOfOnePodAreOneBurdenAndOneMatcher) {
  std::vector<PodCounts::Weighted> terms;
  for (int i = 0; i < 10'000; ++i) terms.push_back({TermOf(std::to_string(i % 5000)), 1 + i % 2});
  PodClass bearer, other, stranger;
  bearer.object_namespace = other.object_namespace = stranger.object_namespace = "default";
  other.labels = {{"app", "4999"}};
  stranger.labels = {{"app", "web"}};
  PodCounts counts;
  counts.Reset(3, {});
  counts.AddClass(0, &bearer);
  counts.AddBurden(0, terms, 0, PodCounts::Effect::kScores);
  counts.AddBurden(0, terms, 0, PodCounts::Effect::kForbids);
  counts.AddClass(1, &other);
  counts.AddClass(2, &stranger);
  EXPECT_TRUE(counts.burdens_on(2).empty());
  const auto burdens = counts.burdens_on(1);
  ASSERT_EQ(burdens.size(), 2u);
  EXPECT_EQ(burdens[0].value, 1) << "to be forbidden twice is to be forbidden";
  EXPECT_EQ(burdens[1].value, 4) << "two terms of weight 2 select it";
  const auto sum = counts.SumMatcher(terms);
  counts.Place(1, 2, PodLife::kServing);
  counts.Place(1, 2, PodLife::kTerminating);
  counts.Place(2, 2, PodLife::kServing);
  EXPECT_EQ(counts.by_node(sum)[2], 8);
  EXPECT_EQ(counts.total(sum), 2) << "of pods";
}

}  // namespace
}  // namespace rudderfish
