// SPDX-License-Identifier: Apache-2.0
#include "cloud/split_enactor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace rudderfish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kJustRead{};

StandingWeights TwoBackends(int64_t first, int64_t second) {
  return {.target = "route web",
          .backends = {{"web-eu", first, true, "ready"}, {"web-us", second, true, "ready"}},
          .notes = {}};
}

const std::vector<RegionBackend>& TwoRegions() {
  static const auto* map = new std::vector<RegionBackend>{{"eu", "web-eu"}, {"us", "web-us"}};
  return *map;
}

std::string WhyNoPlan(const StandingWeights& standing, const Split& wanted,
                      const std::vector<RegionBackend>& map, const SplitLimits& limits = {}) {
  const auto plan = PlanSplit(standing, wanted, map, 100, kJustRead, limits);
  return plan ? "" : plan.error().message;
}

TEST(SplitEnactor, PlansInTheOrderOfTheBackends) {
  const auto plan =
      PlanSplit(TwoBackends(1, 1), {{"us", 0.45}, {"eu", 0.55}}, TwoRegions(), 256, kJustRead, {});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->weights, ElementsAre(141, 115));
  EXPECT_TRUE(plan->changes);
  EXPECT_THAT(plan->standing, ElementsAre(RegionShare{"eu", 0.5}, RegionShare{"us", 0.5}));
}

TEST(SplitEnactor, SharesThatStandAreNotSentAgain) {
  const Split wanted = {{"eu", 0.6}, {"us", 0.4}};
  EXPECT_FALSE(
      PlanSplit(TwoBackends(60, 40), wanted, TwoRegions(), 1'000'000, kJustRead, {})->changes);
  EXPECT_FALSE(PlanSplit(TwoBackends(154, 102), wanted, TwoRegions(), 256, kJustRead, {})->changes);
  EXPECT_TRUE(PlanSplit(TwoBackends(0, 0), wanted, TwoRegions(), 256, kJustRead, {})->changes);
}

TEST(SplitEnactor, StaleSignalsChangeNothing) {
  const auto plan = PlanSplit(TwoBackends(60, 40), {{"eu", 0.5}, {"us", 0.5}}, TwoRegions(), 256,
                              std::chrono::hours(1), {});
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->review.is_frozen);
  EXPECT_FALSE(plan->changes);
  const auto of_nothing = PlanSplit(TwoBackends(0, 0), {{"eu", 0.5}, {"us", 0.5}}, TwoRegions(),
                                    256, std::chrono::hours(1), {});
  ASSERT_TRUE(of_nothing);
  EXPECT_FALSE(of_nothing->changes);
}

TEST(SplitEnactor, SaysWhichRegionOrBackendIsMissing) {
  const StandingWeights standing = TwoBackends(1, 1);
  EXPECT_THAT(WhyNoPlan(standing, {{"eu", 0.5}, {"asia", 0.5}}, TwoRegions()),
              HasSubstr("region `asia` has no backend `asia`; its backends are: web-eu, web-us"));
  EXPECT_THAT(WhyNoPlan(standing, {{"eu", 1}}, TwoRegions()),
              HasSubstr("backend `web-us` has no share"));
  EXPECT_THAT(WhyNoPlan(standing, {{"eu", 0.5}, {"us", 0.25}, {"web-us", 0.25}}, TwoRegions()),
              HasSubstr("two regions have the same backend"));
  EXPECT_THAT(WhyNoPlan(standing, {{"eu", 0.5}, {"us", 0.5}}, TwoRegions(), {.floor = 0.6}),
              HasSubstr("a floor of 60 % is more than 2 regions can have"));
  StandingWeights twice = standing;
  twice.backends[1].name = "web-eu";
  EXPECT_THAT(WhyNoPlan(twice, {{"eu", 1}}, TwoRegions()),
              HasSubstr("2 backends are called `web-eu`"));
}

TEST(SplitEnactor, ReadsWhichBackendIsWhichRegion) {
  const auto map = ParseRegionBackends("eu=web-eu,us=web-us");
  ASSERT_TRUE(map);
  ASSERT_EQ(map->size(), 2u);
  EXPECT_EQ((*map)[1].backend, "web-us");
  for (const char* text : {"", "eu", "eu=", "=a", "eu=a,eu=b", "eu=a,us=a"})
    EXPECT_FALSE(ParseRegionBackends(text)) << text;
}

// A data path that does what it is told to do with a request.
class ScriptedEnactor final : public SplitEnactor {
 public:
  enum class End { kDone, kDoneAndCut, kCut, kRefused, kOverwritten };
  explicit ScriptedEnactor(End end) : end_(end) {}

  Result<StandingWeights> Read() override { return standing_; }
  int64_t weight_sum() const override { return 100; }
  std::string Request(const std::vector<int64_t>& /*weights*/) const override { return "set"; }
  Result<void> Send(const std::vector<int64_t>& weights) override {
    if (end_ == End::kDone || end_ == End::kDoneAndCut)
      standing_ = TwoBackends(weights[0], weights[1]);
    if (end_ == End::kOverwritten) standing_ = TwoBackends(7, 3);
    if (end_ == End::kRefused) return Fail(ErrorCode::kConflict, "changed");
    if (end_ == End::kCut || end_ == End::kDoneAndCut) return Fail(ErrorCode::kUnavailable, "cut");
    return {};
  }

 private:
  End end_;
  StandingWeights standing_ = TwoBackends(50, 50);
};

TEST(SplitEnactor, WhatStandsDecidesWhetherItWasDone) {
  using End = ScriptedEnactor::End;
  const std::pair<End, std::optional<ErrorCode>> cases[] = {
      {End::kDone, std::nullopt},
      {End::kDoneAndCut, std::nullopt},
      {End::kCut, ErrorCode::kUnavailable},
      {End::kRefused, ErrorCode::kConflict},
      {End::kOverwritten, ErrorCode::kConflict}};
  SplitPlan plan;
  plan.weights = {60, 40};
  for (const auto& [end, code] : cases) {
    ScriptedEnactor enactor(end);
    const auto after = EnactSplit(&enactor, plan);
    ASSERT_EQ(after.has_value(), !code.has_value()) << static_cast<int>(end);
    if (code) {
      EXPECT_EQ(after.error().code, *code);
    } else {
      EXPECT_EQ(after->backends[0].weight, 60);
    }
  }
}

}  // namespace
}  // namespace rudderfish
