// SPDX-License-Identifier: Apache-2.0
#include "model/pod_counts.h"

#include <gtest/gtest.h>

#include <numeric>
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

}  // namespace
}  // namespace rudderfish
