// SPDX-License-Identifier: Apache-2.0
#include "kube/node_volumes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NodeVolumes, ANodeIsCompletedByTheCsiNodeOfItsName) {
  const VolumeReferences references;
  NodeVolumes volumes(&references);
  SchedulingNode node;
  node.name = "n";
  EXPECT_EQ(volumes.Complete(node), node);
  volumes.PutCsiNode({"n", {{"disk", 3}}, {"kubernetes.io/aws-ebs"}});
  EXPECT_THAT(volumes.TakeCompleted(), ElementsAre("n"));
  EXPECT_THAT(volumes.TakeCompleted(), IsEmpty());
  EXPECT_THAT(volumes.Complete(node).volume_limits, ElementsAre(VolumeLimit{"disk", 3}));
  EXPECT_THAT(volumes.Complete(node).migrated_plugins, ElementsAre("kubernetes.io/aws-ebs"));
  volumes.RemoveCsiNode("n");
  EXPECT_THAT(volumes.TakeCompleted(), ElementsAre("n"));
  EXPECT_EQ(volumes.Complete(node), node);
}

TEST(NodeVolumes, WhatIsAttachedIsTheVolumeByTheNameOfWhoAttachesIt) {
  VolumeReferences references;
  references.volumes["a"] = {"a", {}, CsiVolume{"disk", "1"}};
  references.volumes["old"] = {"old", {}, CsiVolume{"ebs.csi.aws.com", "vol-1"}, true};
  references.volumes["local"] = {"local", {}, {}};
  NodeVolumes volumes(&references);
  volumes.PutAttachment({"1", "other-name", "n", "a"});
  volumes.PutAttachment({"2", "disk", "n", "a"});
  volumes.PutAttachment({"3", "disk", "n", "a"});
  volumes.PutAttachment({"4", "", "n", "a"});
  volumes.PutAttachment({"5", "ebs.csi.aws.com", "n", "old"});
  volumes.PutAttachment({"6", "disk", "n", "local"});
  volumes.PutAttachment({"7", "disk", "n", ""});
  volumes.PutAttachment({"8", "disk", "m", "a"});
  EXPECT_THAT(volumes.AttachedTo("n"),
              ElementsAre(CsiVolume{"disk", "1"}, CsiVolume{"other-name", "1"}));
  EXPECT_THAT(volumes.AttachedTo("m"), ElementsAre(CsiVolume{"disk", "1"}));
  EXPECT_THAT(volumes.AttachedTo("absent"), IsEmpty());
}

TEST(NodeVolumes, ItIsNewsWhenAnAttachmentComesMovesOrGoesAndWhenItsVolumeIsKnown) {
  VolumeReferences references;
  NodeVolumes volumes(&references);
  volumes.PutAttachment({"1", "disk", "n", "a"});
  EXPECT_THAT(volumes.TakeAttachedTo(), ElementsAre("n"));
  EXPECT_THAT(volumes.AttachedTo("n"), IsEmpty());
  volumes.NoteVolume("b");
  EXPECT_THAT(volumes.TakeAttachedTo(), IsEmpty());
  references.volumes["a"] = {"a", {}, CsiVolume{"disk", "1"}};
  volumes.NoteVolume("a");
  EXPECT_THAT(volumes.TakeAttachedTo(), ElementsAre("n"));
  EXPECT_THAT(volumes.AttachedTo("n"), ElementsAre(CsiVolume{"disk", "1"}));
  volumes.PutAttachment({"1", "disk", "m", "a"});
  EXPECT_THAT(volumes.TakeAttachedTo(), ElementsAre("m", "n"));
  EXPECT_THAT(volumes.AttachedTo("n"), IsEmpty());
  volumes.RemoveAttachment("1");
  EXPECT_THAT(volumes.TakeAttachedTo(), ElementsAre("m"));
  EXPECT_THAT(volumes.AttachedTo("m"), IsEmpty());
  volumes.RemoveAttachment("1");
  EXPECT_THAT(volumes.TakeAttachedTo(), IsEmpty());
}

}  // namespace
}  // namespace rudderfish::kube
