// SPDX-License-Identifier: Apache-2.0
#include "model/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

Result<Objective> Parse(std::string_view text) {
  const auto root = ParseYaml(text, "file.yaml");
  CHECK(root.has_value());
  auto map = root->AsMap();
  return ParseObjective(*map->Required("objective"));
}

TEST(Objective, IsATermOrTermsByWeight) {
  EXPECT_EQ(*Parse("objective: energy"), Objective::Of(ObjectiveTerm::kEnergy));
  const Objective mixed = *Parse("objective: {balance: 1, latency: 0.5}");
  EXPECT_EQ(mixed.WeightOf(ObjectiveTerm::kBalance), 1);
  EXPECT_EQ(mixed.WeightOf(ObjectiveTerm::kLatency), 0.5);
  EXPECT_EQ(mixed.WeightOf(ObjectiveTerm::kCost), 0);
}

TEST(Objective, RefusesWhatItDoesNotKnowAndNamesTheNearest) {
  EXPECT_THAT(Parse("objective: balanse").error().message,
              HasSubstr("file.yaml:1:12: `objective`: no objective is called \"balanse\"; did you "
                        "mean `balance`?"));
  EXPECT_THAT(Parse("objective:\n  coast: 1").error().message,
              HasSubstr("file.yaml:2:10: `objective.coast`"));
  EXPECT_THAT(Parse("objective: {energy: -1}").error().message, HasSubstr("0"));
  EXPECT_EQ(Parse("objective: {energy: 1000000}")->WeightOf(ObjectiveTerm::kEnergy), 1e6);
  EXPECT_FALSE(Parse("objective: {energy: 1000001}").has_value());
  EXPECT_THAT(Parse("objective: {energy: much}").error().message, HasSubstr("number"));
  EXPECT_THAT(Parse("objective: [energy]").error().message, HasSubstr("terms by weight"));
}

TEST(Objective, RefusesWeightsThatAreAllZero) {
  EXPECT_THAT(Parse("objective: {energy: 0, cost: 0}").error().message,
              HasSubstr("all weights are zero"));
  EXPECT_THAT(Parse("objective: {}").error().message, HasSubstr("all weights are zero"));
}

TEST(Objective, TermsAreFractionsOfTheWorst) {
  ClusterTerms terms;
  terms.utilisation_sd = {0.5, 0.5, 0};
  terms.active_utilisation = {0.6, 0.2, 0};
  terms.active_nodes = 1;
  terms.watts_share = 0.3;
  terms.price_share = 0.4;
  terms.fragmentation = 0.1;
  terms.latency_penalty = 0.5;
  terms.call_distance = 0.7;
  const auto value = [&](ObjectiveTerm term) { return ObjectiveTermValue(term, terms); };
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kBalance), 1);  // Half of the nodes full, half empty.
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kUtilisation), 0.6);
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kEnergy), 0.3);
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kCost), 0.4);
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kFragmentation), 0.1);
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kLatency), 0.5);
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kCalls), 0.7);
  terms.active_nodes = 0;  // Nothing is in use: none of it is wasted.
  EXPECT_EQ(value(ObjectiveTerm::kUtilisation), 0);
  terms.active_nodes = 2;
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kUtilisation), 0.6);
  terms.has_devices = true;  // The third resource is there, and evenly used.
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kBalance), 2 / 3.);
  terms.utilisation_sd[2] = 0.2;
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kBalance), 0.8);
  terms.active_utilisation[2] = 0.1;
  EXPECT_DOUBLE_EQ(value(ObjectiveTerm::kUtilisation), 0.7);
  EXPECT_DOUBLE_EQ(Parse("objective: {energy: 2, cost: 1}")->Cost(terms), 1.0);
  EXPECT_DOUBLE_EQ((Objective{.weight = {1, 2, 3, 4, 5, 6, 7}}.Cost(terms)),
                   0.8 + 2 * 0.3 + 3 * 0.7 + 4 * 0.1 + 5 * 0.4 + 6 * 0.5 + 7 * 0.7);
}

}  // namespace
}  // namespace rudderfish
