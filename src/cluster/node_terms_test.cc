// SPDX-License-Identifier: Apache-2.0
#include "cluster/node_terms.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using NodeOperator = NodeRequirement::Operator;

bool HoldsFor(const NodeRequirement& requirement, const Labels& labels) {
  return requirement.Holds(labels);
}

TEST(NodeRequirement, NotInAndDoesNotExistHoldOfNodesWithoutTheLabel) {
  const Labels with = {{"disk", "ssd"}}, without = {{"zone", "a"}};
  EXPECT_TRUE(HoldsFor({"disk", NodeOperator::kIn, {"hdd", "ssd"}}, with));
  EXPECT_FALSE(HoldsFor({"disk", NodeOperator::kIn, {"hdd", "ssd"}}, without));
  EXPECT_FALSE(HoldsFor({"disk", NodeOperator::kNotIn, {"ssd"}}, with));
  EXPECT_TRUE(HoldsFor({"disk", NodeOperator::kNotIn, {"ssd"}}, without));
  EXPECT_TRUE(HoldsFor({"disk", NodeOperator::kExists, {}}, with));
  EXPECT_FALSE(HoldsFor({"disk", NodeOperator::kExists, {}}, without));
  EXPECT_FALSE(HoldsFor({"disk", NodeOperator::kDoesNotExist, {}}, with));
  EXPECT_TRUE(HoldsFor({"disk", NodeOperator::kDoesNotExist, {}}, without));
}

TEST(NodeRequirement, GtAndLtCompareWholeNumbersAndNothingElse) {
  const NodeRequirement above{"rank", NodeOperator::kGt, {"4"}, 4},
      below{"rank", NodeOperator::kLt, {"4"}, 4};
  EXPECT_TRUE(HoldsFor(above, {{"rank", "5"}}));
  EXPECT_FALSE(HoldsFor(above, {{"rank", "4"}}));
  EXPECT_TRUE(HoldsFor(below, {{"rank", "-4"}}));
  EXPECT_TRUE(HoldsFor(below, {{"rank", "+3"}}));
  EXPECT_FALSE(HoldsFor(below, {{"rank", "4"}}));
  for (const char* text : {"", "x", "3x", "3.0", "+-3", "99999999999999999999"}) {
    EXPECT_FALSE(HoldsFor(above, {{"rank", text}})) << text;
    EXPECT_FALSE(HoldsFor(below, {{"rank", text}})) << text;
  }
  EXPECT_FALSE(HoldsFor(above, {}));
}

TEST(NodeTerm, FitsWhereAllItAsksHoldsAndNeverWhereItAsksNothing) {
  NodeTerm term;
  EXPECT_FALSE(term.Matches("a", {}));
  term.fields = {{"metadata.name", NodeOperator::kIn, {"a"}}};
  EXPECT_TRUE(term.Matches("a", {}));
  EXPECT_FALSE(term.Matches("b", {}));
  EXPECT_TRUE(term.Matches("", {}));  // A volume's affinity is asked without a name.
  term.expressions = {{"disk", NodeOperator::kExists, {}}};
  EXPECT_FALSE(term.Matches("a", {}));
  EXPECT_TRUE(term.Matches("a", {{"disk", "ssd"}}));
  term.malformed = true;
  EXPECT_FALSE(term.Matches("a", {{"disk", "ssd"}}));
}

}  // namespace
}  // namespace rudderfish
