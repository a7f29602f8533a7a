// SPDX-License-Identifier: Apache-2.0
#include "kube/in_tree_volumes.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::ParsedJson;
using NodeOperator = NodeRequirement::Operator;

constexpr char kGaZone[] = "topology.kubernetes.io/zone";
constexpr char kOldZone[] = "failure-domain.beta.kubernetes.io/zone";
constexpr char kOldRegion[] = "failure-domain.beta.kubernetes.io/region";
constexpr char kEbs[] = "kubernetes.io/aws-ebs";
constexpr char kEbsZone[] = "topology.ebs.csi.aws.com/zone";

// "driver handle", "-": not to be translated, "": of another type.
std::string Translated(const std::string& source, const Labels& labels = {}) {
  const ParsedJson json(source);
  const auto made = TranslateInTree(Fields(json.root()), labels);
  EXPECT_TRUE(made) << made.error().message;
  if (!made || !*made) return "";
  const std::optional<CsiVolume>& volume = (*made)->volume;
  return volume ? volume->driver + " " + volume->handle : "-";
}

// Cases of k8s.io/csi-translation-lib's own tests among them.
TEST(TranslateInTree, HandlesAreThoseOfTheTranslationLibrary) {
  const auto aws = [](const std::string& id) {
    return Translated(R"({"awsElasticBlockStore":{"volumeID":")" + id + R"("}})");
  };
  EXPECT_EQ(aws("vol-02399794d890f9375"), "ebs.csi.aws.com vol-02399794d890f9375");
  EXPECT_EQ(aws("aws:///vol-02399794d890f9375"), "ebs.csi.aws.com vol-02399794d890f9375");
  EXPECT_EQ(aws("aws://us-west-2/vol-02399794d890f9375"), "ebs.csi.aws.com vol-02399794d890f9375");
  EXPECT_EQ(aws("aws://us-west-2/vol-1/"), "ebs.csi.aws.com vol-1");
  EXPECT_EQ(aws("bad-ID"), "ebs.csi.aws.com bad-ID");
  for (const char* id : {"aws://us-west-2/bad-ID", "aws://us-west-2/vol-1/vol-2", "aws://vol-1",
                         "aws://z/vol-1?x", "aws://z/vol-%31", "aws://[z/vol-1"}) {
    EXPECT_EQ(aws(id), "-") << id;
  }
  EXPECT_EQ(Translated(R"({"azureDisk":{"diskURI":"/subscriptions/s/d","kind":"Managed"}})"),
            "disk.csi.azure.com /subscriptions/s/d");
  EXPECT_EQ(Translated(R"({"azureDisk":{"diskURI":"/subscriptions/s/d"}})"),
            "disk.csi.azure.com /subscriptions/s/d");
  EXPECT_EQ(Translated(R"({"azureDisk":{"diskURI":"d","kind":"Dedicated"}})"), "-");
  EXPECT_EQ(Translated(R"({"cinder":{"volumeID":"c"}})"), "cinder.csi.openstack.org c");
  EXPECT_EQ(Translated(R"({"portworxVolume":{"volumeID":"p"}})"), "pxd.portworx.com p");
  for (const char* other :
       {R"({"vsphereVolume":{}})", R"({"azureFile":{}})", R"({"csi":{}})", "{}"})
    EXPECT_EQ(Translated(other), "") << other;
}

TEST(TranslateInTree, ADiskOfGceIsNamedByItsZoneOrTheRegionOfItsZones) {
  const auto gce = [](const Labels& labels) {
    return Translated(R"({"gcePersistentDisk":{"pdName":"d"}})", labels);
  };
  const std::string driver = "pd.csi.storage.gke.io projects/UNSPECIFIED/";
  EXPECT_EQ(gce({}), driver + "zones/UNSPECIFIED/disks/d");
  EXPECT_EQ(gce({{kGaZone, "us-central1-a"}}), driver + "zones/us-central1-a/disks/d");
  EXPECT_EQ(gce({{kOldZone, "us-west1-b"}, {kGaZone, "us-central1-a"}}),
            driver + "zones/us-west1-b/disks/d");
  EXPECT_EQ(gce({{kGaZone, "us-central1-a__us-central1-c"}}),
            driver + "regions/us-central1/disks/d");
  EXPECT_EQ(gce({{kGaZone, "us-central1-a__us-west1-b"}}), "-");
  EXPECT_EQ(gce({{kGaZone, "here__there"}}), "-");
}

NodeTerm Asking(std::vector<NodeRequirement> expressions) {
  NodeTerm term;
  term.expressions = std::move(expressions);
  return term;
}

TEST(TranslateAffinity, TheDriversLabelStandsInPlaceOfTheZones) {
  const std::vector<NodeTerm> terms = {
      Asking({{kGaZone, NodeOperator::kIn, {"a"}}, {"rack", NodeOperator::kExists, {}}}),
      Asking({{kGaZone, NodeOperator::kNotIn, {"b"}}})};
  EXPECT_EQ(TranslateAffinity(kEbs, {{kGaZone, "c"}}, terms),
            (std::vector{
                Asking({{kEbsZone, NodeOperator::kIn, {"a"}}, {"rack", NodeOperator::kExists, {}}}),
                Asking({{kEbsZone, NodeOperator::kNotIn, {"b"}}})}));
  // Only some drivers have such a label.
  EXPECT_EQ(TranslateAffinity("kubernetes.io/azure-disk", {{kGaZone, "c"}}, terms), terms);
  EXPECT_EQ(TranslateAffinity("kubernetes.io/portworx-volume", {}, std::nullopt), std::nullopt);
}

TEST(TranslateAffinity, ZonesOfALabelAreAskedForWhereNoTermDoes) {
  const NodeTerm zones = Asking({{kEbsZone, NodeOperator::kIn, {"a", "b"}}});
  EXPECT_EQ(TranslateAffinity(kEbs, {{kGaZone, "b__a____a"}}, std::nullopt), std::vector{zones});
  EXPECT_EQ(TranslateAffinity(kEbs, {{kGaZone, "__"}}, std::nullopt), std::nullopt);
  EXPECT_EQ(TranslateAffinity(kEbs, {}, std::nullopt), std::nullopt);
  EXPECT_EQ(TranslateAffinity(kEbs, {}, std::vector<NodeTerm>{}), std::vector<NodeTerm>{});
  EXPECT_EQ(TranslateAffinity(kEbs, {{kOldZone, "a"}}, std::nullopt),
            (std::vector{Asking({{kEbsZone, NodeOperator::kIn, {"a"}}})}));
  // That a label is there at all is no zone.
  EXPECT_EQ(TranslateAffinity(kEbs, {{kGaZone, "a"}},
                              std::vector{Asking({{kGaZone, NodeOperator::kExists, {}}})}),
            (std::vector{Asking(
                {{kGaZone, NodeOperator::kExists, {}}, {kEbsZone, NodeOperator::kIn, {"a"}}})}));
}

TEST(TranslateAffinity, RegionsByOldLabelsBecomeThoseOfToday) {
  const std::vector<NodeTerm> old = {
      Asking({{kOldZone, NodeOperator::kIn, {"a"}}, {kOldRegion, NodeOperator::kIn, {"r"}}})};
  EXPECT_EQ(TranslateAffinity(kEbs, {}, old),
            (std::vector{Asking({{kEbsZone, NodeOperator::kIn, {"a"}},
                                 {"topology.kubernetes.io/region", NodeOperator::kIn, {"r"}}})}));
  // Zones of today are what counts where both are there.
  const std::vector<NodeTerm> mixed = {
      Asking({{kGaZone, NodeOperator::kIn, {"a"}}, {kOldRegion, NodeOperator::kIn, {"r"}}})};
  EXPECT_EQ(TranslateAffinity(kEbs, {}, mixed),
            (std::vector{Asking(
                {{kEbsZone, NodeOperator::kIn, {"a"}}, {kOldRegion, NodeOperator::kIn, {"r"}}})}));
}

TEST(DriverOfProvisioner, IsThatOfTheInTreePluginOrTheProvisionerItself) {
  EXPECT_EQ(DriverOfProvisioner("kubernetes.io/gce-pd"), "pd.csi.storage.gke.io");
  EXPECT_EQ(DriverOfProvisioner("kubernetes.io/vsphere-volume"), "");
  EXPECT_EQ(DriverOfProvisioner("kubernetes.io/azure-file"), "");
  EXPECT_EQ(DriverOfProvisioner("disk.example.com"), "disk.example.com");
}

}  // namespace
}  // namespace rudderfish::kube
