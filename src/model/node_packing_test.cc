// SPDX-License-Identifier: Apache-2.0
#include "model/node_packing.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

NodeOffer Offer(int64_t cores, int count, NodeCosts costs = {}) {
  return {.allocatable = {cores * 1000, 8 * kGiB}, .count = count, .costs = costs};
}

TEST(NodePacking, PutsTheLargestPodsFirst) {
  // A small and a large one fill a node; both small ones on the first would leave three in use.
  const NodePacking packing({Offer(4, 3)}, {{1000, kGiB}, {3000, kGiB}, {}});
  EXPECT_EQ(packing.Pack(std::vector<int>{2, 2, 9}).nodes, 2);
  EXPECT_EQ(packing.Pack(std::vector<int>{3, 2, 9}).nodes, 3);
  EXPECT_EQ(packing.Pack(std::vector<int>{0, 0, 9}).nodes, 0);
  EXPECT_FALSE(packing.draws_power());
  EXPECT_EQ(NodePacking({}, {{1000, kGiB}}).Pack(std::vector<int>{2}).nodes, 0);
}

TEST(NodePacking, CountsMemoryToo) {
  const NodePacking packing({Offer(8, 9)}, {{100, 3 * kGiB}});
  EXPECT_EQ(packing.Pack(std::vector<int>{2}).nodes, 1);
  EXPECT_EQ(packing.Pack(std::vector<int>{3}).nodes, 2);
}

TEST(NodePacking, TakesNodesAsTheyAreListedAndThenMoreOfTheLast) {
  const NodeCosts small{.idle_watts = 10, .busy_watts = 20, .asleep_watts = 1},
      large{.idle_watts = 50, .busy_watts = 130, .asleep_watts = 3};
  const NodePacking packing({Offer(2, 2, small), Offer(8, 1, large)}, {{2000, kGiB}, {4000, kGiB}});
  EXPECT_TRUE(packing.draws_power());
  EXPECT_EQ(packing.Pack(std::vector<int>{1, 0}).idle_watts, 10 + 1 + 3);
  EXPECT_EQ(packing.Pack(std::vector<int>{2, 0}).idle_watts, 20 + 3);
  // A pod of four cores has no place on a small node, so that these sleep.
  EXPECT_EQ(packing.Pack(std::vector<int>{0, 1}).idle_watts, 50 + 2);
  EXPECT_EQ(packing.Pack(std::vector<int>{0, 3}).nodes, 2);
  EXPECT_EQ(packing.Pack(std::vector<int>{0, 3}).idle_watts, 100 + 2);
}

// Beyond what is listed there are more of the last that is large enough.
TEST(NodePacking, APodBeyondFullNodesHasOneThatItFitsOn) {
  const NodeCosts large{.idle_watts = 50, .busy_watts = 130, .asleep_watts = 3};
  const NodePacking packing({Offer(8, 1, large), Offer(2, 3)}, {{4000, kGiB}, {2000, kGiB}});
  EXPECT_EQ(packing.Pack(std::vector<int>{3, 0}).nodes, 2);
  EXPECT_EQ(packing.Pack(std::vector<int>{3, 0}).idle_watts, 100);
  EXPECT_EQ(packing.Pack(std::vector<int>{3, 3}).nodes,
            3);  // Two of them have room beside four cores.
}

// Each pod larger than any node has a node of its own, without other pods.
TEST(NodePacking, APodLargerThanANodeHasOneForItself) {
  const NodePacking packing({Offer(2, 1)}, {{3000, kGiB}, {100, kGiB}});
  EXPECT_EQ(packing.Pack(std::vector<int>{2, 1}).nodes, 3);
}

TEST(NodePacking, DrawsWhatIsUsedAboveIdle) {
  const NodeCosts costs{.idle_watts = 60, .busy_watts = 140};
  const NodePacking packing({Offer(8, 2, costs)}, {{4000, kGiB}});
  const NodesInUse use = packing.Pack(std::vector<int>{3});
  EXPECT_EQ(use.nodes, 2);
  EXPECT_DOUBLE_EQ(use.watts_per_core, 10);
  EXPECT_DOUBLE_EQ(use.Watts(0), 120);
  EXPECT_DOUBLE_EQ(use.Watts(16), 280);  // Both at full use.
  EXPECT_EQ(packing.Pack(std::vector<int>{0}).Watts(0), 0);
}

// 4 and 2 of 8 cores are requested, on a node each; of both a quarter of what is requested is used.
TEST(NodePacking, NodesWithACurveDrawByIt) {
  NodeCosts curved{.idle_watts = 60, .busy_watts = 140};
  curved.curve.Add({0.125, 100});
  const NodePacking packing(
      {Offer(8, 1, curved), Offer(8, 2, {.idle_watts = 10, .busy_watts = 50})},
      {{4000, 5 * kGiB}, {2000, 4 * kGiB}});
  const NodesInUse use = packing.Pack(std::vector<int>{1, 1});
  EXPECT_EQ(use.nodes, 2);
  EXPECT_DOUBLE_EQ(use.Watts(0), 60 + 10);
  EXPECT_DOUBLE_EQ(use.Watts(1.5),
                   100 + 12.5);  // An eighth of the first, a sixteenth of the other.
  // Points on the line draw as the line does.
  NodeCosts line{.idle_watts = 60, .busy_watts = 140}, straight = line;
  straight.curve.Add({0.5, 100});
  for (const double used : {0.0, 1.0, 7.5, 12.0}) {
    EXPECT_DOUBLE_EQ(
        NodePacking({Offer(8, 2, straight)}, {{4000, kGiB}}).Pack(std::vector<int>{3}).Watts(used),
        NodePacking({Offer(8, 2, line)}, {{4000, kGiB}}).Pack(std::vector<int>{3}).Watts(used));
  }
}

}  // namespace
}  // namespace rudderfish
