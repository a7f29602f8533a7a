// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_volumes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::ParsedJson;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

PodVolumes VolumesOf(const std::string& volumes) {
  const ParsedJson json(
      fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{"volumes":[{}]}}}})", volumes));
  Result<PodVolumes> read = ReadPodVolumes(Fields(json.root()));
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(PodVolumes());
}

// Of the pod n/p with the uid "1".
PodClass PodWith(const std::string& volumes, const VolumeReferences& references) {
  PodClass made;
  made.object_namespace = "n";
  AddVolumes(VolumesOf(volumes), {"n", "p", "1"}, references, &made);
  return made;
}

std::vector<CsiVolume> AttachedWith(const std::string& volumes,
                                    const VolumeReferences& references) {
  PodClass made;
  SetAttached(VolumesOf(volumes), {"n", "p", "1"}, references, &made);
  EXPECT_FALSE(made.attaches_unknown);
  return made.attached;
}

VolumeReferences ClaimOf(const SchedulingClaim& claim) {
  VolumeReferences references;
  references.claims[{"n", claim.key.name}] = claim;
  references.volumes["v"] = {"v", {{}, {{"topology.kubernetes.io/zone", {"a"}}}, {}}};
  references.volumes["csi"] = {"csi", {}, CsiVolume{"disk", "1"}};
  references.volumes["odd"] = {"odd", {}, {}, true, "is of x and cannot be told to its CSI driver"};
  references.storage_classes = {{"fast", {"fast", "disk", true}},
                                {"now", {"now", "disk", false}},
                                {"old", {"old", "kubernetes.io/aws-ebs", true}},
                                {"share", {"share", "kubernetes.io/azure-file", true}}};
  return references;
}

constexpr char kClaim[] = R"({"name":"d","persistentVolumeClaim":{"claimName":"c"}})";
constexpr char kEphemeral[] = R"({"name":"s","ephemeral":{"volumeClaimTemplate":{}}})";

TEST(PodVolumes, ClaimsBringTheRulesOfTheirVolumesOrTheWordsOfKubeScheduler) {
  SchedulingClaim claim{{"n", "c"}, "v", "", true};
  EXPECT_EQ(PodWith(kClaim, {}).rejection, "persistentvolumeclaim \"c\" not found");
  EXPECT_EQ(PodWith(kClaim, ClaimOf(claim)).volumes.size(), 1u);
  EXPECT_THAT(PodWith(kClaim, ClaimOf(claim)).claims, ElementsAre("c"));
  claim.is_exclusive = true;
  EXPECT_THAT(PodWith(kClaim, ClaimOf(claim)).exclusive_claims, ElementsAre("c"));
  claim.volume = "gone";
  EXPECT_EQ(PodWith(kClaim, ClaimOf(claim)).rejection, "persistentvolume \"gone\" not found");
  claim.volume = "odd";
  EXPECT_THAT(PodWith(kClaim, ClaimOf(claim)).unmodelled,
              ElementsAre("uses the claim c, whose volume is of x and cannot be told to its CSI "
                          "driver"));
  claim.is_deleted = true;
  EXPECT_EQ(PodWith(kClaim, ClaimOf(claim)).rejection,
            "persistentvolumeclaim \"c\" is being deleted");
  claim.is_lost = true;
  EXPECT_EQ(PodWith(kClaim, ClaimOf(claim)).rejection,
            "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"odd\"");
}

TEST(PodVolumes, AClaimThatIsNotBoundWaitsForItsPodOrForItself) {
  const auto with_class = [](const char* storage_class) {
    return PodWith(kClaim, ClaimOf({{"n", "c"}, "", storage_class, false}));
  };
  EXPECT_THAT(with_class("fast").unmodelled,
              ElementsAre("uses the claim c, which is not bound yet"));
  EXPECT_EQ(with_class("fast").rejection, "");
  for (const char* storage_class : {"", "now", "absent"}) {
    EXPECT_EQ(with_class(storage_class).rejection,
              "pod has unbound immediate PersistentVolumeClaims");
    EXPECT_THAT(with_class(storage_class).unmodelled, IsEmpty());
  }
  // The claim names a volume, but the controller in charge has not bound it.
  EXPECT_EQ(PodWith(kClaim, ClaimOf({{"n", "c"}, "v", "fast", false})).rejection,
            "pod has unbound immediate PersistentVolumeClaims");
  // Where classes are not known, any may wait for its pod.
  VolumeReferences references = ClaimOf({{"n", "c"}, "", "now", false});
  references.limits_unknown = "storageclasses.storage.k8s.io cannot be read";
  EXPECT_THAT(PodWith(kClaim, references).unmodelled,
              ElementsAre("uses the claim c, which is not bound yet"));
}

TEST(PodVolumes, WhatACsiDriverAttachesIsModelledUnlessLimitsAreNotKnown) {
  VolumeReferences references = ClaimOf({{"n", "c"}, "csi", "", true});
  PodClass pod = PodWith(kClaim, references);
  EXPECT_THAT(pod.attached, ElementsAre(CsiVolume{"disk", "1"}));
  EXPECT_THAT(pod.unmodelled, IsEmpty());
  references.limits_unknown = "csinodes.storage.k8s.io cannot be read";
  EXPECT_THAT(PodWith(kClaim, references).unmodelled,
              ElementsAre("uses the claim c, whose volume is attached by the CSI driver disk, "
                          "whose limits are not known (csinodes.storage.k8s.io cannot be read)"));
  EXPECT_THAT(PodWith(R"({"name":"s","cinder":{"volumeID":"c"}})", references).unmodelled,
              ElementsAre("has a volume that the CSI driver cinder.csi.openstack.org attaches, "
                          "whose limits are not known (csinodes.storage.k8s.io cannot be read)"));
  references.claims[{"n", "c"}].volume = "v";
  EXPECT_THAT(PodWith(kClaim, references).unmodelled, IsEmpty());
}

TEST(PodVolumes, AnEphemeralVolumeIsItsClaimWithoutZonesAndOnlyThePodsOwn) {
  const auto with = [](const SchedulingClaim& claim) {
    return PodWith(kEphemeral, ClaimOf(claim));
  };
  EXPECT_EQ(PodWith(kEphemeral, {}).rejection,
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-s\"");
  SchedulingClaim claim{.key = {"n", "p-s"}, .volume = "v", .is_bound = true, .owner_uid = "1"};
  claim.is_exclusive = true;
  const PodClass pod = with(claim);
  ASSERT_EQ(pod.volumes.size(), 1u);
  EXPECT_THAT(pod.volumes[0].zones, IsEmpty());
  EXPECT_THAT(pod.claims, IsEmpty());
  EXPECT_THAT(pod.exclusive_claims, IsEmpty());
  EXPECT_EQ(pod.rejection, "");
  EXPECT_THAT(pod.unmodelled, IsEmpty());
  claim.volume = "csi";
  EXPECT_THAT(with(claim).attached, ElementsAre(CsiVolume{"disk", "1"}));
  claim.volume = "gone";
  EXPECT_THAT(with(claim).unmodelled,
              ElementsAre("uses the claim p-s, whose volume gone is not there"));
  claim.owner_uid = "2";
  EXPECT_EQ(with(claim).rejection, "PVC n/p-s was not created for pod n/p (pod is not owner)");
  EXPECT_TRUE(with(claim).attaches_unknown);
}

TEST(PodVolumes, WhatIsToBeMadeForAClaimCountsForWhoMakesIt) {
  const auto driver_of = [](const char* storage_class) {
    const auto all = AttachedWith(kClaim, ClaimOf({{"n", "c"}, "", storage_class, false}));
    return all.empty() ? std::string() : all.front().driver;
  };
  EXPECT_EQ(driver_of("fast"), "disk");
  EXPECT_EQ(driver_of("now"), "disk");
  EXPECT_EQ(driver_of("old"), "ebs.csi.aws.com");
  EXPECT_EQ(driver_of("share"), "");
  EXPECT_EQ(driver_of("absent"), "");
  EXPECT_EQ(driver_of(""), "");
  // As a volume of its own, and by its class also where the volume is gone.
  const auto gone = AttachedWith(kClaim, ClaimOf({{"n", "c"}, "gone", "fast", true}));
  const auto other = AttachedWith(kClaim, ClaimOf({{"n", "c"}, "csi", "fast", true}));
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].driver, other[0].driver);
  EXPECT_NE(gone, other);
  EXPECT_THAT(AttachedWith(kClaim, {}), IsEmpty());
}

TEST(PodVolumes, DisksNamedInThePodAreThoseOfTheirDriversAndEachCountsOnce) {
  const VolumeReferences references = ClaimOf({{"n", "c"}, "csi", "", true});
  const std::string twice =
      R"({"name":"a","cinder":{"volumeID":"x"}},{"name":"b","cinder":{"volumeID":"x"}},
         {"name":"e","persistentVolumeClaim":{"claimName":"c"}},)" +
      std::string(kClaim);
  EXPECT_THAT(AttachedWith(twice, references),
              ElementsAre(CsiVolume{"cinder.csi.openstack.org", "x"}, CsiVolume{"disk", "1"}));
  EXPECT_THAT(PodWith(twice, references).unmodelled, IsEmpty());
  for (const char* volume : {R"({"name":"s","csi":{"driver":"disk"}})",
                             R"({"name":"s","vsphereVolume":{"volumePath":"p"}})",
                             R"({"name":"s","azureFile":{"shareName":"s"}})"}) {
    EXPECT_THAT(PodWith(volume, references).attached, IsEmpty()) << volume;
    EXPECT_THAT(PodWith(volume, references).unmodelled, IsEmpty()) << volume;
  }
}

TEST(PodVolumes, DisksThatKubeSchedulerComparesWithOthersAreNotModelled) {
  const PodClass ebs = PodWith(R"({"name":"s","awsElasticBlockStore":{"volumeID":"vol-1"}})", {});
  EXPECT_THAT(ebs.unmodelled, ElementsAre("has the volume s of type awsElasticBlockStore"));
  EXPECT_THAT(ebs.attached, ElementsAre(CsiVolume{"ebs.csi.aws.com", "vol-1"}));
  EXPECT_THAT(PodWith(R"({"name":"s","rbd":{}})", {}).unmodelled,
              ElementsAre("has the volume s of type rbd"));
  const PodClass odd = PodWith(R"({"name":"s","azureDisk":{"diskURI":"d","kind":"Shared"}})", {});
  EXPECT_THAT(odd.unmodelled, ElementsAre("has the volume s of kubernetes.io/azure-disk, which "
                                          "cannot be told to its CSI driver"));
  EXPECT_TRUE(odd.attaches_unknown);
}

}  // namespace
}  // namespace rudderfish::kube
