// SPDX-License-Identifier: Apache-2.0
#include "cloud/data_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// Weights in memory, of which somebody else may write one.
class MemoryPath final : public DataPath {
 public:
  std::string name() const override { return "memory/shop"; }
  int weight_total() const override { return 100; }
  Result<std::vector<WeightedBackend>> Read() override { return backends; }
  Result<std::string> RequestOf(const std::vector<int>& weights) const override {
    std::string text = "set";
    for (const int weight : weights) text += " " + std::to_string(weight);
    return text;
  }
  Result<void> Write(const std::vector<int>& weights) override {
    ++writes;
    for (size_t i = 0; i < weights.size(); ++i) backends[i].weight = weights[i];
    if (meddles) backends[0].weight = 77;
    return {};
  }

  std::vector<WeightedBackend> backends = {
      {.region = "eu", .name = "shop-eu", .weight = 1, .state = RegionState::kHealthy},
      {.region = "us", .name = "shop-us", .weight = 1, .state = RegionState::kHealthy}};
  int writes = 0;
  bool meddles = false;
};

const std::vector<RegionShare> kWanted = {{"us", 0.4}, {"eu", 0.6}};

TEST(DataPath, ADryRunWritesNothing) {
  MemoryPath path;
  const EnactedSplit split = EnactSplit(&path, kWanted, {}, Enacting::kDryRun).value();
  EXPECT_EQ(path.writes, 0);
  EXPECT_FALSE(split.written());
  EXPECT_EQ(split.request, "set 60 40");  // In the order of the path.
  EXPECT_THAT(SplitText(split), HasSubstr("us      shop-us  healthy       1  50.0 %"));
  EXPECT_EQ(SplitJson(split)["backends"][0]["new_weight"], 60);
  EXPECT_EQ(SplitJson(split)["written"], false);
}

TEST(DataPath, WhatIsWrittenIsReadBack) {
  MemoryPath path;
  const EnactedSplit split = EnactSplit(&path, kWanted, {}, Enacting::kWrite).value();
  EXPECT_TRUE(split.written());
  EXPECT_EQ(path.backends[0].weight, 60);
  // Once more changes nothing.
  const EnactedSplit again = EnactSplit(&path, kWanted, {}, Enacting::kWrite).value();
  EXPECT_EQ(path.writes, 1);
  EXPECT_TRUE(again.request.empty());
}

TEST(DataPath, ALargeChangeTakesSteps) {
  MemoryPath path;
  const std::vector<RegionShare> all = {{"eu", 1}, {"us", 0}};
  std::vector<int> seen;
  for (int step = 0; step < 6; ++step) {
    ASSERT_TRUE(EnactSplit(&path, all, {}, Enacting::kWrite).has_value());
    seen.push_back(path.backends[0].weight);
  }
  EXPECT_EQ(seen, (std::vector{60, 70, 80, 90, 99, 99}));  // us keeps the floor.
}

TEST(DataPath, WhatSomebodyElseWritesIsSaid) {
  MemoryPath path;
  path.meddles = true;
  const auto split = EnactSplit(&path, kWanted, {}, Enacting::kWrite);
  ASSERT_FALSE(split.has_value());
  EXPECT_EQ(split.error().message,
            "memory/shop: shop-eu was given the weight 60 and has 77 now; somebody else writes "
            "there, too");
}

TEST(DataPath, TheSplitNamesEachRegionOnce) {
  MemoryPath path;
  const auto refusal = [&](const std::vector<RegionShare>& wanted) {
    return EnactSplit(&path, wanted, {}, Enacting::kWrite).error().message;
  };
  EXPECT_EQ(refusal({{"eu", 0.5}, {"uss", 0.5}}),
            "no backend is the region uss; there are eu, us; did you mean `us`?");
  EXPECT_EQ(refusal({{"eu", 1}}), "the split names no share for us; 0 takes it out");
  EXPECT_EQ(path.writes, 0);
}

TEST(DataPath, WithoutAHealthyRegionTheSplitStays) {
  MemoryPath path;
  for (WeightedBackend& one : path.backends) one.state = RegionState::kUnhealthy;
  const EnactedSplit split = EnactSplit(&path, kWanted, {}, Enacting::kWrite).value();
  EXPECT_TRUE(split.guarded.held);
  EXPECT_EQ(path.writes, 0);
}

TEST(DataPath, WeightsOfNothingAreEvenShares) {
  EXPECT_EQ(SharesOf({{.weight = 0}, {.weight = 0}}), (std::vector<double>{0.5, 0.5}));
}

}  // namespace
}  // namespace rudderfish
