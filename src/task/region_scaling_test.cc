// SPDX-License-Identifier: Apache-2.0
#include "task/region_scaling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/small_regions.h"

namespace rudderfish {
namespace {

struct RegionAsked {
  std::shared_ptr<const RegionLaws> laws = testing::LawsOf(testing::SmallRegions());
  RegionSight seen;
  RegionOutlook outlook;
  bool has_spot = true;
  double load_per_s = 480, error = 0.1;
  RegionScalingSpace space;

  RegionAsked() {
    seen.ready[kOnDemand] = 10;
    seen.node_per_h[kOnDemand] = 0.15;
    seen.node_per_h[kSpot] = 0.05;
    seen.carbon_g_per_kwh = 300;
  }

  RegionScalingQuestion question() const {
    return {.laws = *laws,
            .seen = seen,
            .has_spot = has_spot,
            .load_per_s = load_per_s,
            .error = error,
            .outlook = outlook};
  }

  const std::vector<RegionChoice>& Choices(const RegionScalingRule& rule = {}) {
    RegionScalingTask::Space(question(), rule, &space);
    return space.choices;
  }

  // The choice of the largest score.
  const RegionChoice& Best(const RegionScalingRule& rule) {
    Choices(rule);
    GraphBatch batch{.widths = RegionScalingTask::kWidths};
    RegionScalingTask::Encode(question(), space, &batch);
    const std::vector<float> weights = RegionScalingTask::ModelWeights(rule);
    std::vector<float> scores;
    for (size_t i = 0; i < space.choices.size(); ++i) {
      float sum = 0;
      for (size_t f = 0; f < weights.size(); ++f)
        sum += weights[f] * batch.candidates[i * RegionScalingTask::kWidths.candidate + f];
      scores.push_back(sum);
    }
    return space.choices[std::max_element(scores.begin(), scores.end()) - scores.begin()];
  }
};

double CostOf(const RegionChoice& choice, RegionTerm term) {
  return choice.cost[static_cast<size_t>(term)];
}

TEST(RegionScaling, ChoicesHaveNodesForTheirUseAndAreOnlyOnDemandWithoutSpot) {
  RegionAsked asked;
  EXPECT_EQ(asked.Choices().size(), static_cast<size_t>(RegionScalingTask::kChoicesMax));
  for (const RegionChoice& one : asked.space.choices) {
    const int nodes = one.nodes[0] + one.nodes[1];
    EXPECT_GE(nodes * 80 * one.use, 480 - 1e-9);
    EXPECT_LT((nodes - 1) * 80 * one.use, 480);
    EXPECT_EQ(one.nodes[kSpot], std::lround(one.spot_share * nodes));
  }
  asked.has_spot = false;
  for (const RegionChoice& one : asked.Choices()) EXPECT_EQ(one.nodes[kSpot], 0);
  asked.load_per_s = 1e6;
  for (const RegionChoice& one : asked.Choices()) EXPECT_EQ(one.nodes[kOnDemand], 40);  // Quota.
}

TEST(RegionScaling, CostsAreThoseOfTheModel) {
  RegionAsked asked;
  for (const RegionChoice& one : asked.Choices()) {
    const double dollars_per_s = (one.nodes[0] * 0.15 + one.nodes[1] * 0.05) / 3600;
    EXPECT_NEAR(CostOf(one, RegionTerm::kNodes), dollars_per_s / asked.laws->unit() / 480, 1e-12);
    const double busy = std::min(1.0, 480.0 / ((one.nodes[0] + one.nodes[1]) * 80));
    EXPECT_NEAR(CostOf(one, RegionTerm::kCarbon), asked.laws->ServingCost(0, busy, 0, 300), 1e-6);
    EXPECT_EQ(CostOf(one, RegionTerm::kReclaim) > 0, one.nodes[kSpot] > 0);
  }
}

TEST(RegionScaling, BusierNodesAreCheaperAndLater) {
  RegionAsked asked;
  const RegionChoice* before = nullptr;
  for (const RegionChoice& one : asked.Choices()) {
    if (one.spot_share > 0) continue;
    if (before != nullptr) {
      EXPECT_LE(CostOf(one, RegionTerm::kNodes), CostOf(*before, RegionTerm::kNodes));
      EXPECT_GE(CostOf(one, RegionTerm::kLate), CostOf(*before, RegionTerm::kLate));
    }
    before = &one;
  }
}

TEST(RegionScaling, TheModelTakesSpotNodesUntilTheyAreScarce) {
  RegionAsked asked;
  const RegionScalingRule rule{.use = 0.7, .hazard_per_h = 8};
  EXPECT_GT(asked.Best(rule).spot_share, 0.5);
  asked.outlook.storm = 1;
  EXPECT_LT(asked.Best(rule).spot_share, 0.5);
}

TEST(RegionScaling, APullKeepsTheUsualUseAndShare) {
  RegionAsked asked;
  const RegionScalingRule rule{.use = 0.5, .spot_share = 0.33, .pull = 1000};
  EXPECT_DOUBLE_EQ(asked.Best(rule).use, 0.5);
  EXPECT_DOUBLE_EQ(asked.Best(rule).spot_share, 0.33);
}

TEST(RegionScaling, EveryFeatureHasANameOfItsOwnAndFitsTheRow) {
  const FeatureTable& table = RegionScalingTask::Features();
  std::set<std::string_view> names;
  for (const FeatureDescription& one : table.candidate) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_GT(one.scale, 0) << one.name;
  }
  EXPECT_LE(names.size(), static_cast<size_t>(RegionScalingTask::kWidths.candidate));
  EXPECT_EQ(table.candidate[0].name, "nodes");
  EXPECT_EQ(table.candidate[kRegionTerms - 1].name, "change");
}

}  // namespace
}  // namespace rudderfish
