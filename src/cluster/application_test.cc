// SPDX-License-Identifier: Apache-2.0
#include "cluster/application.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using Operator = LabelRequirement::Operator;

const Labels kEdgeNode = {{"layer", "edge"}, {"zone", "a"}};

bool Matches(LabelRequirement requirement) {
  return LabelSelector{{std::move(requirement)}}.Matches(kEdgeNode);
}

TEST(Labels, AreFoundByTheirKey) {
  ASSERT_NE(FindLabel(kEdgeNode, "zone"), nullptr);
  EXPECT_EQ(*FindLabel(kEdgeNode, "zone"), "a");
  EXPECT_EQ(FindLabel(kEdgeNode, "zon"), nullptr);
  EXPECT_EQ(FindLabel({}, "zone"), nullptr);
}

TEST(LabelSelector, SelectsAsMatchExpressionsDo) {
  EXPECT_TRUE(Matches({"layer", Operator::kIn, {"cloud", "edge"}}));
  EXPECT_FALSE(Matches({"layer", Operator::kIn, {"cloud"}}));
  EXPECT_FALSE(Matches({"rack", Operator::kIn, {"1"}}));
  EXPECT_TRUE(Matches({"layer", Operator::kNotIn, {"cloud"}}));
  EXPECT_FALSE(Matches({"layer", Operator::kNotIn, {"cloud", "edge"}}));
  EXPECT_TRUE(Matches({"zone", Operator::kExists, {}}));
  EXPECT_FALSE(Matches({"rack", Operator::kExists, {}}));
  EXPECT_TRUE(Matches({"rack", Operator::kDoesNotExist, {}}));
  EXPECT_FALSE(Matches({"zone", Operator::kDoesNotExist, {}}));
}

TEST(LabelSelector, IsSatisfiedByAMissingLabelWhereItForbidsValues) {
  EXPECT_TRUE(Matches({"rack", Operator::kNotIn, {"1"}}));
}

TEST(LabelSelector, HoldsOnlyIfAllOfItHolds) {
  const LabelSelector both{{{"layer", Operator::kIn, {"edge"}}, {"zone", Operator::kIn, {"b"}}}};
  EXPECT_FALSE(both.Matches(kEdgeNode));
  EXPECT_TRUE(LabelSelector{}.Matches(kEdgeNode));
}

}  // namespace
}  // namespace rudderfish
