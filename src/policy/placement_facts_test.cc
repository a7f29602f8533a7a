// SPDX-License-Identifier: Apache-2.0
#include "policy/placement_facts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

PlacementFacts FactsOfTwoTypes() {
  PlacementFacts facts{.types = {"small", "gpu"},
                       .laws = {.costs = {{40, 90, 0.5, 5}, {150, 500, 2.5, 10}}}};
  Workload web, learner;
  web.requests = {500, 1 << 20};
  learner.requests = {6000, int64_t{12} << 30};
  learner.devices = {1, 460};
  learner.node_kinds = 2;
  facts.laws.shapes.Add(web, 3);
  facts.laws.shapes.Add(learner, 1);
  return facts;
}

std::string RefusalOfFacts(std::string_view text) {
  const auto facts = ParseFacts(text, "x.safetensors: world");
  return facts ? "none" : facts.error().message;
}

TEST(PlacementFacts, WhatIsWrittenIsRead) {
  const PlacementFacts facts = FactsOfTwoTypes();
  const auto read = ParseFacts(FactsText(facts), "x");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, facts);
  EXPECT_EQ(FactsText(facts).find('\n'), std::string::npos);
  PlacementFacts calling = facts;
  calling.has_calls = true;
  EXPECT_EQ(*ParseFacts(FactsText(calling), "x"), calling);
}

TEST(PlacementFacts, CarryCurvesOfPower) {
  PlacementFacts facts = FactsOfTwoTypes();
  EXPECT_EQ(FactsText(facts).find("curve"), std::string::npos);
  facts.laws.costs[1].curve.Add({0.1, 250.5});
  facts.laws.costs[1].curve.Add({0.5, 400});
  const auto read = ParseFacts(FactsText(facts), "x");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, facts);
  // Types that differ in nothing else.
  PlacementFacts alike{.types = {"a", "b"}, .laws = {.costs = {{1, 2}, {1, 2}}}};
  alike.laws.costs[1].curve.Add({0.5, 1.75});
  EXPECT_TRUE(alike.TypesMatter());
}

TEST(PlacementFacts, RefusesCurvesThatAreNone) {
  const auto with = [](std::string_view curve) {
    return RefusalOfFacts(fmt::format(
        R"({{"users": false, "shapes": [], "types": [{{"name": "a", "idle_watts": 1,
            "busy_watts": 2, "asleep_watts": 0, "price_per_hour": 0, "curve": {}}}]}})",
        curve));
  };
  EXPECT_EQ(with("[[0.1, 1.5], [0.9, 1.2]]"), "none");
  EXPECT_THAT(with("[[0.1, 1.5], [0.1, 1.6]]"), HasSubstr("types[0].curve[1][0]"));
  EXPECT_THAT(with("[[0.5, 1.5], [0.1, 1.6]]"), HasSubstr("in ascending order"));
  EXPECT_THAT(with("[[0, 1.5]]"), HasSubstr("above 0 and below 1"));
  EXPECT_THAT(with("[[1, 1.5]]"), HasSubstr("above 0 and below 1"));
  EXPECT_THAT(with("[[0.5, -1]]"), HasSubstr("types[0].curve[0][1]"));
  EXPECT_THAT(with("[[0.5]]"), HasSubstr("types[0].curve[0]"));
  EXPECT_THAT(with("{}"), HasSubstr("types[0].curve"));
  std::string many;
  for (int i = 1; i <= 17; ++i) many += fmt::format("{}[{}, 5]", i > 1 ? "," : "", i / 20.0);
  EXPECT_THAT(with("[" + many + "]"), HasSubstr("at most 16 points"));
}

TEST(PlacementFacts, TypesMatterWhereTheLawsTellThemApart) {
  EXPECT_TRUE(FactsOfTwoTypes().TypesMatter());
  EXPECT_FALSE(
      (PlacementFacts{.types = {"a", "b"}, .laws = {.costs = {{1, 2}, {1, 2}}}}.TypesMatter()));
  EXPECT_FALSE((PlacementFacts{.types = {"a"}, .laws = {.costs = {{1, 2}}}}.TypesMatter()));
  EXPECT_FALSE(PlacementFacts().TypesMatter());
}

TEST(PlacementFacts, ATermIsKnownLiveWhereTheyMakeItSo) {
  const PlacementFacts nothing, facts = FactsOfTwoTypes();
  EXPECT_TRUE(IsKnownLive(ObjectiveTerm::kBalance, nothing));
  EXPECT_TRUE(IsKnownLive(ObjectiveTerm::kUtilisation, nothing));
  for (const auto term :
       {ObjectiveTerm::kEnergy, ObjectiveTerm::kCost, ObjectiveTerm::kFragmentation}) {
    EXPECT_FALSE(IsKnownLive(term, nothing));
    EXPECT_TRUE(IsKnownLive(term, facts));
  }
  EXPECT_FALSE(IsKnownLive(ObjectiveTerm::kLatency, facts));
  PlacementFacts calling = facts;
  calling.has_calls = true;  // That they do, not who whom.
  EXPECT_FALSE(IsKnownLive(ObjectiveTerm::kCalls, calling));
}

TEST(PlacementFacts, WhatIsWrongIsNamed) {
  EXPECT_THAT(RefusalOfFacts("{"), HasSubstr("x.safetensors: world"));
  EXPECT_THAT(RefusalOfFacts(R"({"users": 1, "types": [], "shapes": []})"), HasSubstr("users"));
  EXPECT_THAT(RefusalOfFacts(R"({"users": false, "calls": 1, "types": [], "shapes": []})"),
              HasSubstr("calls"));
  EXPECT_THAT(RefusalOfFacts(
                  R"({"users": false, "types": [{"name": "a", "idle_watts": -1}], "shapes": []})"),
              HasSubstr("types[0].idle_watts"));
  EXPECT_THAT(RefusalOfFacts(R"({"users": false, "types": [], "shapes": [{"cpu_millis": 1,
      "memory_bytes": 1, "devices": 0, "device_millis": 0, "weight": 1, "types": ["b"]}]})"),
              HasSubstr("no type of node"));
  EXPECT_THAT(RefusalOfFacts(R"({"users": false, "types": [], "shapes": [{"cpu_millis": 1,
      "memory_bytes": 1, "devices": 2, "device_millis": 0, "weight": 1}]})"),
              HasSubstr("devices"));
}

}  // namespace
}  // namespace rudderfish
