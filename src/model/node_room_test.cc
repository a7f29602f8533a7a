// SPDX-License-Identifier: Apache-2.0
#include "model/node_room.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/random_scheduling.h"

namespace rudderfish {
namespace {

// On random clusters that fill up: whatever node the rules allow has room, and none has that they
// refuse for want of it.
TEST(NodeRoom, IsThereWhereverTheRulesAllowTheNode) {
  int allowed = 0, full = 0, refused_early = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    testing::RandomScheduling random{Rng(seed)};
    std::vector<SchedulingNode> nodes;
    for (int n = 0; n < 8; ++n) nodes.push_back(random.Node(n));
    SchedulingRules rules;
    rules.Reset(std::move(nodes), testing::RandomNamespaces());
    Feasibility feasibility;
    for (int i = 0; i < 60; ++i) {
      const auto shape = std::make_shared<const PodClass>(random.Pod());
      const PodClassId pod = rules.Register(shape);
      rules.Filter(pod, &feasibility);
      for (NodeId n = 0; n < rules.nodes().size(); ++n) {
        const Rejection rejection = feasibility.rejection[n];
        if (rejection == Rejection::kNone) {
          EXPECT_TRUE(HasRoomFor(rules, pod, n)) << seed << " " << i << " " << n;
          ++allowed;
        } else if (rejection == Rejection::kResources) {
          EXPECT_FALSE(HasRoomFor(rules, pod, n)) << seed << " " << i << " " << n;
          ++full;
        } else if (rejection == Rejection::kTaint || rejection == Rejection::kNodeAffinity) {
          EXPECT_FALSE(HasRoomFor(rules, pod, n)) << seed << " " << i << " " << n;
          ++refused_early;
        }
      }
      if (feasibility.feasible == 0) continue;
      auto at = static_cast<NodeId>(random.rng().Below(8));
      while (!feasibility.IsFeasible(at)) at = (at + 1) % rules.nodes().size();
      rules.Assume(pod, at);
    }
  }
  EXPECT_GE(allowed, 1000);
  EXPECT_GE(full, 1000);
  EXPECT_GE(refused_early, 1000);
}

TEST(NodeRoom, OfAClassThatNothingWasAskedAboutIsWhatIsFree) {
  SchedulingNode node;
  node.name = "a";
  node.allocatable = {1000, 1 << 30};
  node.pods_max = 10;
  node.taints = {{"dedicated", "web", TaintEffect::kNoSchedule}};
  SchedulingRules rules;
  rules.Reset({node}, {});
  const auto shape_of = [](int64_t cpu_millis) {
    auto shape = std::make_shared<PodClass>();
    shape->amounts.requests = shape->amounts.held = {cpu_millis, 1 << 20};
    return shape;
  };
  const auto small = shape_of(1000);
  EXPECT_TRUE(HasRoomFor(rules, rules.RegisterPlaced(small), 0));
  EXPECT_FALSE(HasRoomFor(rules, rules.RegisterPlaced(shape_of(1001)), 0));
  EXPECT_FALSE(HasRoomFor(rules, rules.Register(small), 0)) << "its taint is known by now";
}

}  // namespace
}  // namespace rudderfish
