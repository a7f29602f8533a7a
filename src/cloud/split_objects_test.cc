// SPDX-License-Identifier: Apache-2.0
#include "cloud/split_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// tests/route_live_test.py has what a real API server makes of all this.

WeightedObject Read(SplitObjectKind kind, const std::string& spec, std::string* why_not,
                    std::optional<int> rule = std::nullopt) {
  const std::string json = R"({"metadata": {"resourceVersion": "5"}, "spec": )" + spec + "}";
  auto object =
      ReadSplitObject(json, {{.name_space = "shop", .name = "web", .may_change = {}}, kind, rule});
  *why_not = object ? "" : object.error().message;
  return object.value_or(WeightedObject());
}

class SplitObjectsTest : public ::testing::Test {
 protected:
  WeightedObject Of(SplitObjectKind kind, const std::string& spec,
                    std::optional<int> rule = std::nullopt) {
    return Read(kind, spec, &why_not_, rule);
  }
  std::string why_not_;
};

TEST_F(SplitObjectsTest, AVirtualServiceHasDestinations) {
  const auto kind = SplitObjectKind::kVirtualService;
  const WeightedObject object = Of(kind, R"({"http": [{"route": [
      {"destination": {"host": "web-eu"}, "weight": 70},
      {"destination": {"host": "web.far.svc.cluster.local", "subset": "us"}, "weight": 30},
      {"destination": {"host": "web.example.com"}}]}]})");
  ASSERT_EQ(object.fields.size(), 3) << why_not_;
  EXPECT_EQ(object.resource_version, "5");
  EXPECT_EQ(object.fields[0].path, "/spec/http/0/route/0/weight");
  EXPECT_EQ(object.fields[0].guard_value, "web-eu");
  EXPECT_EQ(object.fields[0].health_service, "web-eu");
  EXPECT_EQ(object.fields[0].health_namespace, "shop");
  EXPECT_EQ(object.fields[1].name, "web.far.svc.cluster.local/us");
  EXPECT_EQ(object.fields[1].health_service, "web");
  EXPECT_EQ(object.fields[1].health_namespace, "far");
  EXPECT_EQ(object.fields[2].weight, 0);
  EXPECT_EQ(object.fields[2].health_service, "");
  Of(kind, R"({"http": [{"route": []}, {"route": []}]})");
  EXPECT_THAT(why_not_, HasSubstr("has 2 http rules; choose one with --rule"));
  Of(kind, R"({"http": [{"route": []}]})", 3);
  EXPECT_THAT(why_not_, HasSubstr("has no http rule 3"));
  Of(kind, R"({"http": [{"route": []}]})");
  EXPECT_THAT(why_not_, HasSubstr("holds no weights"));
}

TEST_F(SplitObjectsTest, ADestinationRuleHasLocalities) {
  const auto kind = SplitObjectKind::kDestinationRule;
  const WeightedObject object = Of(kind, R"({"trafficPolicy": {"loadBalancer":
      {"localityLbSetting": {"distribute":
          [{"from": "eu/*", "to": {"eu/*": 80, "us/*": 20}}]}}}})");
  ASSERT_EQ(object.fields.size(), 2) << why_not_;
  EXPECT_EQ(object.fields[1].name, "us/*");
  EXPECT_EQ(object.fields[1].path,
            "/spec/trafficPolicy/loadBalancer/localityLbSetting/distribute/0/to/us~1*");
  EXPECT_EQ(object.fields[1].guard_value, "eu/*");
  Of(kind, R"({"trafficPolicy": {"loadBalancer":
      {"localityLbSetting": {"distribute": [{"from": "eu/*", "to": {"eu/*": 101}}]}}}})");
  EXPECT_THAT(why_not_, HasSubstr("expected an integer from 0 to 100"));
  Of(kind, "{}");
  EXPECT_THAT(why_not_, HasSubstr("has no distribute rule"));
}

TEST_F(SplitObjectsTest, ADnsEndpointHasRecords) {
  const auto kind = SplitObjectKind::kDnsEndpoint;
  const auto record = [](const std::string& name, const std::string& id,
                         const std::string& weight) {
    return R"({"dnsName": ")" + name + R"(", "setIdentifier": ")" + id +
           R"(", "providerSpecific": [{"name": "alias", "value": "x"},
                {"name": "aws/weight", "value": ")" +
           weight + R"("}]})";
  };
  const WeightedObject object = Of(kind, R"({"endpoints": [{"dnsName": "other.example"}, )" +
                                             record("web.example", "eu", "200") + ", " +
                                             record("web.example", "us", "55") + "]}");
  ASSERT_EQ(object.fields.size(), 2) << why_not_;
  EXPECT_EQ(object.fields[0].weight, 200);
  EXPECT_EQ(object.fields[1].path, "/spec/endpoints/2/providerSpecific/1/value");
  EXPECT_TRUE(object.fields[1].is_text);
  Of(kind, R"({"endpoints": [)" + record("a", "eu", "256") + "]}");
  EXPECT_THAT(why_not_, HasSubstr("from 0 to 255"));
  Of(kind, R"({"endpoints": [)" + record("a", "eu", "5 lbs") + "]}");
  EXPECT_THAT(why_not_, HasSubstr("a whole number"));
  Of(kind, R"({"endpoints": [)" + record("a", "eu", "1") + ", " + record("b", "us", "1") + "]}");
  EXPECT_THAT(why_not_, HasSubstr("weighted records of a and b"));
}

TEST_F(SplitObjectsTest, APropagationPolicyHasClusters) {
  const auto kind = SplitObjectKind::kPropagationPolicy;
  const auto spec = [](const std::string& list) {
    return R"({"placement": {"replicaScheduling": {"weightPreference": {"staticWeightList": )" +
           list + "}}}}";
  };
  const WeightedObject object = Of(kind, spec(R"([
      {"targetCluster": {"clusterNames": ["eu"]}, "weight": 2},
      {"targetCluster": {"clusterNames": ["us"]}, "weight": 1}])"));
  ASSERT_EQ(object.fields.size(), 2) << why_not_;
  EXPECT_EQ(object.fields[0].name, "eu");
  EXPECT_EQ(object.fields[1].weight, 1);
  EXPECT_EQ(object.fields[1].guard_path,
            "/spec/placement/replicaScheduling/weightPreference/staticWeightList/1/targetCluster/"
            "clusterNames/0");
  Of(kind, spec(R"([{"targetCluster": {"clusterNames": ["eu", "us"]}, "weight": 2}])"));
  EXPECT_THAT(why_not_, HasSubstr("is of 2 clusters; one cluster each is expected"));
  Of(kind, spec(R"([{"targetCluster": {"clusterNames": ["eu"]}, "weight": "2"}])"));
  EXPECT_THAT(why_not_, HasSubstr("weight: expected an integer"));
}

TEST(SplitObjects, AReadObjectIsNothingElse) {
  std::string why_not;
  Read(SplitObjectKind::kVirtualService, "5", &why_not);
  EXPECT_THAT(why_not, HasSubstr("virtualservice shop/web"));
}

}  // namespace
}  // namespace rudderfish
