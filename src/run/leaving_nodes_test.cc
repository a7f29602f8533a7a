// SPDX-License-Identifier: Apache-2.0
#include "run/leaving_nodes.h"

#include <gtest/gtest.h>

#include "tests/support/kube_json.h"

namespace rudderfish {
namespace {

using testing::NodeJson;
using testing::ParsedJson;
using testing::PodJson;

constexpr std::string_view kCordon = R"({"unschedulable":true})";

class LeavingNodesTest : public ::testing::Test {
 protected:
  LeavingNodesTest() : mirror_(&clock_), leaving_(&mirror_, &clock_) {
    Node("a", "{}");
    Node("b", "{}");
  }

  void Node(const std::string& name, std::string_view spec) {
    const ParsedJson json(NodeJson{.name = name, .spec = std::string(spec)}.Text());
    ASSERT_TRUE(mirror_.SinkOf(kube::Resource::kNodes)->Changed(json.root()));
  }

  void Pod(const std::string& name, const std::string& node, bool evicted,
           const std::string& labels = "{}") {
    std::string text = PodJson{.name = name, .node = node, .labels = labels}.Text();
    if (evicted) {
      const std::string ready = R"({"type":"Ready","status":"True"})";
      text.insert(
          text.find(ready),
          R"({"type":"DisruptionTarget","status":"True","reason":"EvictionByEvictionAPI"},)");
    }
    const ParsedJson json(text);
    ASSERT_TRUE(mirror_.SinkOf(kube::Resource::kPods)->Changed(json.root()));
  }

  bool Leaves(const std::string& node) {
    clock_.Advance(std::chrono::seconds(2));
    leaving_.Turn();
    return leaving_.Has(node);
  }

  ManualClock clock_;
  kube::Mirror mirror_;
  LeavingNodes leaving_;
};

TEST_F(LeavingNodesTest, ACordonAloneIsNoDrain) {
  Pod("one", "a", false);
  Node("a", kCordon);
  EXPECT_FALSE(Leaves("a"));
  leaving_.Configure(Evacuate::kCordoned);
  EXPECT_TRUE(Leaves("a"));
  EXPECT_FALSE(Leaves("b"));
  leaving_.Configure(Evacuate::kNone);
  EXPECT_FALSE(Leaves("a"));
}

TEST_F(LeavingNodesTest, ADrainLastsUntilTheNodeIsUncordoned) {
  Pod("one", "a", true);
  Pod("two", "b", true);
  Node("a", kCordon);
  EXPECT_TRUE(Leaves("a"));
  EXPECT_FALSE(Leaves("b")) << "evicted by somebody else, on a node that takes new pods";
  const uint64_t changes = leaving_.changes();
  Pod("one", "a", false);  // Another one of its name.
  EXPECT_TRUE(Leaves("a"));
  EXPECT_EQ(leaving_.changes(), changes);
  Node("a", "{}");
  EXPECT_FALSE(Leaves("a"));
  EXPECT_GT(leaving_.changes(), changes);
}

TEST_F(LeavingNodesTest, ADrainOutlivesAReload) {
  Pod("one", "a", true);
  Node("a", kCordon);
  ASSERT_TRUE(Leaves("a"));
  Pod("one", "a", false);  // What shows the drain is gone.
  leaving_.Configure(Evacuate::kDraining);
  EXPECT_TRUE(leaving_.Has("a"));
  EXPECT_TRUE(Leaves("a"));
}

TEST_F(LeavingNodesTest, OurOwnEvictionIsNoDrain) {
  Pod("one", "a", true, R"({"rudderfish.io/move":"m1"})");
  Node("a", kCordon);
  EXPECT_FALSE(Leaves("a"));
}

TEST_F(LeavingNodesTest, ANodeThatAnAutoscalerDeletesLeaves) {
  Node("a", R"({"taints":[{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]})");
  Node("b", R"({"taints":[{"key":"karpenter.sh/disrupted","effect":"NoSchedule"}]})");
  EXPECT_TRUE(Leaves("a"));
  EXPECT_TRUE(Leaves("b"));
}

}  // namespace
}  // namespace rudderfish
