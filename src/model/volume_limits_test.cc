// SPDX-License-Identifier: Apache-2.0
#include "model/volume_limits.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/scheduling_rules.h"

namespace rudderfish {
namespace {

SchedulingNode NodeThatTakes(const std::string& name, std::vector<VolumeLimit> limits) {
  SchedulingNode node;
  node.name = name;
  node.pods_max = 100;
  node.volume_limits = std::move(limits);
  return node;
}

// Rules, and pods by what is attached for them.
class Attaching {
 public:
  explicit Attaching(std::vector<SchedulingNode> nodes) { rules.Reset(std::move(nodes), {}); }

  PodClassId Pod(std::vector<CsiVolume> attached) {
    auto pod = std::make_shared<PodClass>();
    pod->attached = std::move(attached);
    return rules.Register(pod);
  }

  bool Fits(const std::vector<CsiVolume>& attached, NodeId node = 0) {
    Feasibility found;
    rules.Filter(Pod(attached), &found);
    EXPECT_TRUE(found.IsFeasible(node) || found.rejection[node] == Rejection::kVolumeLimit);
    return found.IsFeasible(node);
  }

  SchedulingRules rules;
};

const CsiVolume kA{"disk", "a"}, kB{"disk", "b"}, kC{"disk", "c"};

TEST(VolumeLimits, AVolumeCountsOnceOnANodeHoweverManyPodsThereUseIt) {
  Attaching life({NodeThatTakes("n", {{"disk", 2}})});
  life.rules.Assume(life.Pod({kA}), 0);
  life.rules.Assume(life.Pod({kA, kB}), 0);
  EXPECT_TRUE(life.Fits({kA}));
  EXPECT_TRUE(life.Fits({kA, kB}));
  EXPECT_FALSE(life.Fits({kC}));
  EXPECT_FALSE(life.Fits({kA, kC}));
  life.rules.Forget(life.Pod({kA}), 0);
  EXPECT_FALSE(life.Fits({kC}));
  life.rules.Forget(life.Pod({kA, kB}), 0);
  EXPECT_TRUE(life.Fits({kA, kC}));
}

TEST(VolumeLimits, ANodeIsAskedForTheVolumesOfEachDriverByItself) {
  const CsiVolume share{"share", "a"};
  Attaching life({NodeThatTakes("both", {{"disk", 1}, {"share", 1}}),
                  NodeThatTakes("disks", {{"disk", 1}}), NodeThatTakes("none", {})});
  EXPECT_TRUE(life.Fits({kA, share}, 0));
  for (const NodeId n : {0, 1, 2}) life.rules.Assume(life.Pod({kA}), n);
  EXPECT_TRUE(life.Fits({share}, 0));
  EXPECT_FALSE(life.Fits({kB}, 0));
  EXPECT_FALSE(life.Fits({kB, share}, 1));
  EXPECT_TRUE(life.Fits({share}, 1));  // Who names no limit takes any number.
  EXPECT_TRUE(life.Fits({kA, kB, kC}, 2));
}

TEST(VolumeLimits, WhatIsStillAttachedCountsAndIsNewToAPodThatComes) {
  Attaching life({NodeThatTakes("n", {{"disk", 2}})});
  life.rules.SetAttached(0, std::vector{kA, kB});
  EXPECT_FALSE(life.Fits({kC}));
  EXPECT_FALSE(life.Fits({kA}));  // As kube-scheduler counts: three with that of the pod.
  life.rules.SetAttached(0, std::vector{kA});
  EXPECT_TRUE(life.Fits({kA}));
  EXPECT_FALSE(life.Fits({kA, kB}));
  life.rules.Assume(life.Pod({kA}), 0);
  EXPECT_TRUE(life.Fits({kA, kB}));
  life.rules.SetAttached(0, {});
  EXPECT_TRUE(life.Fits({kA, kB}));
  life.rules.Forget(life.Pod({kA}), 0);
  EXPECT_TRUE(life.Fits({kA, kB}));
  EXPECT_FALSE(life.Fits({kA, kB, kC}));
}

TEST(VolumeLimits, ANodeTakesAsManyAsItSaysNow) {
  Attaching life({NodeThatTakes("n", {{"disk", 0}})});
  EXPECT_FALSE(life.Fits({kA}));
  life.rules.ReplaceNode(0, NodeThatTakes("n", {{"disk", 1}}));
  EXPECT_TRUE(life.Fits({kA}));
  life.rules.Assume(life.Pod({kA}), 0);
  EXPECT_FALSE(life.Fits({kB}));
  life.rules.ReplaceNode(0, NodeThatTakes("n", {}));
  EXPECT_TRUE(life.Fits({kB, kC}));
  life.rules.ReplaceNode(0, NodeThatTakes("n", {{"disk", 2}}));
  EXPECT_TRUE(life.Fits({kB}));
  EXPECT_FALSE(life.Fits({kB, kC}));
}

TEST(VolumeLimits, BesideAPodWhoseVolumesAreNotKnownOnlyPodsWithoutVolumesAreTaken) {
  Attaching life({NodeThatTakes("limited", {{"disk", 9}}), NodeThatTakes("free", {})});
  auto unknown = std::make_shared<PodClass>();
  unknown->attaches_unknown = true;
  for (const NodeId n : {0, 1}) life.rules.Assume(life.rules.Register(unknown), n);
  const PodClassId attaches = life.Pod({kA}), plain = life.Pod({});
  Feasibility found;
  life.rules.Filter(attaches, &found);
  EXPECT_EQ(found.rejection, (std::vector{Rejection::kUnknownVolumes, Rejection::kNone}));
  EXPECT_EQ(life.rules.Message(attaches, found),
            "0/2 nodes are available: 1 node(s) held a pod whose volumes cannot be counted.");
  life.rules.Filter(plain, &found);
  EXPECT_EQ(found.feasible, 2);
  life.rules.Forget(life.rules.Register(unknown), 0);
  life.rules.Filter(attaches, &found);
  EXPECT_EQ(found.feasible, 2);
}

}  // namespace
}  // namespace rudderfish
