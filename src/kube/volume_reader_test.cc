// SPDX-License-Identifier: Apache-2.0
#include "kube/volume_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::ParsedJson;

template <class T>
T ReadAs(Result<T> (*read)(const Element&), const std::string& text) {
  const ParsedJson json(text);
  Result<T> made = read(json.root());
  EXPECT_TRUE(made) << made.error().message;
  return made.value_or(T());
}

SchedulingVolume VolumeOf(const std::string& spec, const std::string& labels = "") {
  return ReadAs(
      ReadSchedulingVolume,
      fmt::format(R"({{"metadata":{{"name":"v","labels":{{{}}}}},"spec":{}}})", labels, spec));
}

NodeTerm In(const char* key, std::vector<std::string> values) {
  NodeTerm term;
  term.expressions = {{key, NodeRequirement::Operator::kIn, std::move(values)}};
  return term;
}

TEST(ReadSchedulingVolume, ZonesOfALabelAreSplitAndABadLabelIsNotHeeded) {
  const SchedulingVolume volume =
      VolumeOf(R"({"nodeAffinity":{"required":{"nodeSelectorTerms":[]}}})",
               R"("topology.kubernetes.io/zone":"a__b","topology.kubernetes.io/region":"r____s")");
  EXPECT_EQ(volume.rules.zones,
            (std::vector<BoundVolume::Zone>{{"topology.kubernetes.io/zone", {"a", "b"}}}));
  EXPECT_TRUE(volume.rules.node_affinity->empty());
  EXPECT_FALSE(volume.attached.has_value());
}

TEST(ReadSchedulingVolume, ACsiDriverKnowsItsVolumesByTheirHandles) {
  const SchedulingVolume volume =
      VolumeOf(R"({"csi":{"driver":"disk.example.com","volumeHandle":"a/b"},
                   "nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
                     {"key":"rack","operator":"In","values":["r1"]}]}]}}})",
               R"("topology.kubernetes.io/zone":"a")");
  EXPECT_EQ(volume.attached, (CsiVolume{"disk.example.com", "a/b"}));
  EXPECT_FALSE(volume.is_in_tree);
  EXPECT_EQ(volume.unmodelled, "");
  EXPECT_EQ(volume.rules.node_affinity, (std::vector{In("rack", {"r1"})}));
  EXPECT_EQ(volume.rules.zones.size(), 1u);
  EXPECT_FALSE(volume.rules.migrated.has_value());
}

TEST(ReadSchedulingVolume, AnInTreeVolumeIsThatOfItsDriverWithTheLabelsOfIt) {
  const SchedulingVolume volume =
      VolumeOf(R"({"awsElasticBlockStore":{"volumeID":"aws://us-east-1a/vol-1"}})",
               R"("topology.kubernetes.io/zone":"us-east-1a")");
  EXPECT_EQ(volume.attached, (CsiVolume{"ebs.csi.aws.com", "vol-1"}));
  EXPECT_TRUE(volume.is_in_tree);
  EXPECT_FALSE(volume.rules.node_affinity.has_value());
  ASSERT_TRUE(volume.rules.migrated.has_value());
  EXPECT_EQ(volume.rules.migrated->plugin, "kubernetes.io/aws-ebs");
  EXPECT_EQ(volume.rules.migrated->node_affinity,
            (std::vector{In("topology.ebs.csi.aws.com/zone", {"us-east-1a"})}));
  const SchedulingVolume odd = VolumeOf(R"({"azureDisk":{"diskURI":"d","kind":"Shared"}})");
  EXPECT_FALSE(odd.attached.has_value());
  EXPECT_EQ(odd.unmodelled, "is of kubernetes.io/azure-disk and cannot be told to its CSI driver");
}

// As kube-scheduler's translation has it: what else is asked makes a term of it.
TEST(ReadSchedulingVolume, ATermThatAsksNothingFitsWhereTheDriversZoneDoes) {
  const SchedulingVolume volume =
      VolumeOf(R"({"cinder":{"volumeID":"c"},"nodeAffinity":{"required":{"nodeSelectorTerms":[
                    {},{"matchExpressions":[{"key":"rack","operator":"In","values":["r"]}]}]}}})",
               R"("topology.kubernetes.io/zone":"a")");
  EXPECT_EQ(volume.rules.node_affinity, (std::vector{NodeTerm(), In("rack", {"r"})}));
  NodeTerm both = In("rack", {"r"});
  const NodeTerm zone = In("topology.cinder.csi.openstack.org/zone", {"a"});
  both.expressions.push_back(zone.expressions.front());
  EXPECT_EQ(volume.rules.migrated->node_affinity, (std::vector{zone, both}));
}

TEST(ReadSchedulingVolume, TypesThatNoDriverHasTakenOverAreTakenAsTheyAre) {
  for (const char* spec : {R"({"vsphereVolume":{"volumePath":"p"}})",
                           R"({"azureFile":{"shareName":"s"}})", R"({"hostPath":{"path":"/"}})"}) {
    const SchedulingVolume volume = VolumeOf(spec, R"("topology.kubernetes.io/zone":"a")");
    EXPECT_FALSE(volume.attached.has_value()) << spec;
    EXPECT_FALSE(volume.rules.migrated.has_value()) << spec;
    EXPECT_EQ(volume.unmodelled, "") << spec;
  }
}

TEST(ReadSchedulingClaim, SaysWhoControlsItAndWhetherItIsBoundForGood) {
  const SchedulingClaim claim = ReadAs(ReadSchedulingClaim, R"({"metadata":{"name":"p-s",
      "namespace":"n","annotations":{"pv.kubernetes.io/bind-completed":"yes"},
      "ownerReferences":[{"kind":"Other","name":"o","uid":"2"},
                         {"kind":"Pod","name":"p","uid":"1","controller":true}]},
      "spec":{"volumeName":"v","storageClassName":"fast","accessModes":["ReadWriteOncePod"]}})");
  EXPECT_EQ(claim, (SchedulingClaim{.key = {"n", "p-s"},
                                    .volume = "v",
                                    .storage_class = "fast",
                                    .is_bound = true,
                                    .is_exclusive = true,
                                    .owner_uid = "1"}));
}

TEST(ReadStorageClass, SaysWhoMakesItsVolumesAndWhen) {
  EXPECT_EQ(ReadAs(ReadStorageClass, R"({"metadata":{"name":"fast"},"provisioner":"disk",
                                         "volumeBindingMode":"WaitForFirstConsumer"})"),
            (StorageClass{"fast", "disk", true}));
  EXPECT_EQ(ReadAs(ReadStorageClass, R"({"metadata":{"name":"now"},"provisioner":"disk",
                                         "volumeBindingMode":"Immediate"})"),
            (StorageClass{"now", "disk", false}));
}

TEST(ReadCsiNode, HasLimitsOfDriversThatNameOneAndThePluginsThatAreMigrated) {
  EXPECT_EQ(
      ReadAs(ReadCsiNode, R"({"metadata":{"name":"n","annotations":{
      "storage.alpha.kubernetes.io/migrated-plugins":"kubernetes.io/gce-pd,kubernetes.io/aws-ebs"}},
      "spec":{"drivers":[{"name":"disk","allocatable":{"count":25}},
                         {"name":"none","allocatable":{"count":0}},
                         {"name":"any","allocatable":{}},{"name":"silent"}]}})"),
      (CsiNode{
          "n", {{"disk", 25}, {"none", 0}}, {"kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"}}));
  EXPECT_EQ(ReadAs(ReadCsiNode, R"({"metadata":{"name":"n"},"spec":{"drivers":[]}})"),
            (CsiNode{"n", {}, {}}));
  const ParsedJson odd(R"({"metadata":{"name":"n"},
                           "spec":{"drivers":[{"name":"d","allocatable":{"count":-1}}]}})");
  EXPECT_EQ(
      ReadCsiNode(odd.root()).error().message,
      "CSI node n: spec.drivers[0].allocatable.count: expected a number of volumes, found -1");
}

TEST(ReadVolumeAttachment, SaysWhatIsAttachedWhereAndByWhom) {
  EXPECT_EQ(ReadAs(ReadVolumeAttachment, R"({"metadata":{"name":"csi-0"},"spec":{"attacher":"disk",
                "nodeName":"n","source":{"persistentVolumeName":"v"}},
                "status":{"attached":true}})"),
            (VolumeAttachment{"csi-0", "disk", "n", "v"}));
  EXPECT_EQ(ReadAs(ReadVolumeAttachment, R"({"metadata":{"name":"csi-1"},"spec":{"attacher":"disk",
                "nodeName":"n","source":{"inlineVolumeSpec":{"cinder":{"volumeID":"c"}}}}})"),
            (VolumeAttachment{"csi-1", "disk", "n", ""}));
}

}  // namespace
}  // namespace rudderfish::kube
