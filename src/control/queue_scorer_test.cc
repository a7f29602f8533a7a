// SPDX-License-Identifier: Apache-2.0
#include "control/queue_scorer.h"

#include <gtest/gtest.h>

#include "control/live_policy.h"

namespace rudderfish {
namespace {

// Two equal nodes, of which one has a label.
class QueueScorerTest : public ::testing::Test {
 protected:
  QueueScorerTest() {
    std::vector<SchedulingNode> nodes(2);
    nodes[0].name = "a";
    nodes[0].labels = {{"disk", "fast"}};
    nodes[1].name = "b";
    for (SchedulingNode& node : nodes) {
      node.allocatable = {2000, 2000};
      node.pods_max = 10;
    }
    rules.Reset(std::move(nodes), {});
    scorer = LivePolicy::Load({.policy = "lookahead"})->NewScorer();
  }

  PodClassId Pod(int64_t amount, bool needs_fast = false) {
    auto shape = std::make_shared<PodClass>();
    shape->amounts.requests = shape->amounts.held = {amount, amount};
    if (needs_fast) shape->node_selector = {{"disk", "fast"}};
    return rules.Register(shape);
  }

  std::vector<double> Scores(const std::vector<PodClassId>& queue) {
    Feasibility feasibility;
    rules.Filter(queue[0], &feasibility);
    std::vector<double> scores;
    scorer->ScoreFirst(rules, queue, feasibility, &scores);
    EXPECT_EQ(scorer->stepped_back(), StepBack::kNone);
    return scores;
  }

  SchedulingRules rules;
  std::unique_ptr<NodeScorer> scorer;
};

TEST_F(QueueScorerTest, LeavesTheNodeThatWhoComesNextAloneMayUse) {
  const PodClassId small = Pod(1000), whole = Pod(2000), whole_fast = Pod(2000, true);
  const auto alone = Scores({small});
  EXPECT_EQ(alone[0], alone[1]);
  const auto before_whole = Scores({small, whole});
  EXPECT_GT(before_whole[0], before_whole[1]);  // Either will do.
  const auto before_fast = Scores({small, whole_fast});
  EXPECT_GT(before_fast[1], before_fast[0]);
  EXPECT_EQ(before_fast[0], alone[0]);
  // As far as it looks.
  scorer = LivePolicy::Load({.policy = "lookahead:depth=1"})->NewScorer();
  EXPECT_EQ(scorer->queue_looked_at(), 1);
  EXPECT_EQ(Scores({small, whole_fast}), alone);
}

TEST_F(QueueScorerTest, WhereItCountsNoNodeKubeDefaultChooses) {
  SchedulingNode many = rules.nodes().node(0);
  many.scalars = {{"nvidia.com/gpu", 100}};  // More than any node of the Model.
  rules.ReplaceNode(0, many);
  many.name = "b";
  rules.ReplaceNode(1, many);
  const PodClassId pod = Pod(500);
  Feasibility feasibility;
  rules.Filter(pod, &feasibility);
  std::vector<double> scores;
  scorer->ScoreFirst(rules, std::vector{pod, pod}, feasibility, &scores);
  EXPECT_EQ(scorer->stepped_back(), StepBack::kOutside);
  EXPECT_EQ(scorer->scored_by(), "kube-default");
  EXPECT_EQ(scorer->WhySteppedBack(), "lookahead counts none of the nodes that may take the pod");
}

}  // namespace
}  // namespace rudderfish
