// SPDX-License-Identifier: Apache-2.0
#include "kube/object_reader.h"

#include <gtest/gtest.h>

#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::NodeJson;
using rudderfish::testing::ParsedJson;

constexpr int64_t kMib = 1024 * 1024;

TEST(ReadNode, TakesWhatDecidesWherePodsFit) {
  const ParsedJson json(
      NodeJson{.name = "n1",
               .cpu = "3920m",
               .memory = "7Gi",
               .labels = R"({"zone":"b","arch":"amd64"})",
               .spec = R"({"unschedulable":true,"taints":[{"key":"k","effect":"NoSchedule"}]})"}
          .Text());
  const auto node = ReadNode(json.root());
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->meta.key, (ObjectKey{"", "n1"}));
  EXPECT_EQ(node->allocatable, (Resources{3920, 7168 * kMib}));
  EXPECT_EQ(node->pods_max, 110);
  EXPECT_TRUE(node->unschedulable);
  EXPECT_TRUE(node->ready);
  EXPECT_EQ(node->address, "10.0.0.1");
  EXPECT_EQ(node->taints, (std::vector<NodeTaint>{{"k", "", TaintEffect::kNoSchedule}}));
  EXPECT_EQ(*FindLabel(node->labels, "zone"), "b");
}

TEST(ReadObjects, TakeWhatIsNeededOfTheOthers) {
  const ParsedJson set(R"({"metadata":{"name":"s","namespace":"n"},"spec":{
    "selector":{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"NotIn",
    "values":["x"]}]}}})");
  const auto replica_set = ReadPodController(set.root());
  ASSERT_TRUE(replica_set) << replica_set.error().message;
  EXPECT_TRUE(replica_set->selector.Matches({{"app", "web"}}));
  EXPECT_FALSE(replica_set->selector.Matches({{"app", "web"}, {"tier", "x"}}));

  const ParsedJson volume(R"({"metadata":{"name":"v"},"spec":{"claimRef":{"namespace":"n",
    "name":"c"},"nodeAffinity":{"required":{}}}})");
  const auto pv = ReadPersistentVolume(volume.root());
  ASSERT_TRUE(pv) << pv.error().message;
  EXPECT_TRUE(pv->node_bound);
  EXPECT_EQ(pv->claim, (ObjectKey{"n", "c"}));

  const ParsedJson usage(R"({"metadata":{"name":"p","namespace":"n"},
    "timestamp":"2026-11-21T09:30:00Z","containers":[{"usage":{"cpu":"1500000n","memory":"1Mi"}},
    {"usage":{"cpu":"1m","memory":"1Mi"}}]})");
  const auto used = ReadPodMetrics(usage.root());
  ASSERT_TRUE(used) << used.error().message;
  EXPECT_EQ(used->used, (Resources{3, 2 * kMib}));
  EXPECT_EQ(used->measured_at, 1795253400);

  const ParsedJson daemons(R"({"metadata":{"name":"d","namespace":"n"},"spec":{},
    "status":{"desiredNumberScheduled":3,"numberReady":2}})");
  EXPECT_EQ(ReadPodController(daemons.root())->replicas, 3);
}

}  // namespace
}  // namespace rudderfish::kube
