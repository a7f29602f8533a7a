// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling_bounds.h"

#include <gtest/gtest.h>

#include <string>

#include "kube/scheduling_reader.h"
#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using testing::ParsedJson;

std::string Repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += (i == 0 ? "" : ",") + text;
  return all;
}

PodClass Of(const std::string& spec) {
  const ParsedJson json(R"({"metadata":{"name":"p","namespace":"n"},"spec":)" + spec + "}");
  const auto pod = ReadPodClass(json.root(), {});
  EXPECT_TRUE(pod) << pod.error().message;
  return pod.value_or(PodClass{});
}

constexpr char kTerm[] = R"({"topologyKey":"zone","labelSelector":{}})";

std::string PodTerms(const std::string& affinity, const std::string& list, int count) {
  return R"({"affinity":{")" + affinity + R"(":{")" + list + R"(":[)" + Repeated(kTerm, count) +
         "]}}}";
}

constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";

// What anybody who may make pods can make: none of it may keep others from a node.
TEST(BoundTerms, TermsAboutOtherPodsAreReadHoweverManyThereAre) {
  const PodClass forbids = Of(PodTerms("podAntiAffinity", kRequired, 4000));
  EXPECT_EQ(forbids.forbidden_pods.size(), 4000u);
  EXPECT_TRUE(forbids.unmodelled.empty());
  EXPECT_FALSE(forbids.holds_unknown);
  const PodClass wants = Of(PodTerms("podAffinity", kRequired, 33));
  EXPECT_EQ(wants.required_pods.size(), 33u);
  EXPECT_TRUE(wants.unmodelled.empty());
}

TEST(BoundTerms, OneTermMayNameAnyNumberOfLabelsAndNamespaces) {
  const PodClass forbids =
      Of(R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)"
         R"({"topologyKey":"zone","namespaces":[)" +
         Repeated(R"("n")", 100) +
         R"(],"labelSelector":{"matchExpressions":[{"key":"a","operator":"In","values":[)" +
         Repeated(R"("v")", 10000) + "]}]}}]}}}");
  EXPECT_TRUE(forbids.unmodelled.empty());
  EXPECT_EQ(forbids.forbidden_pods[0].selector->requirements[0].values.size(), 10000u);
}

TEST(BoundTerms, APodThatNamesMoreTopologyKeysIsNotPlacedButKeptInFull) {
  const auto spec = [](int keys) {
    std::string terms;
    for (int i = 1; i < keys; ++i) {
      terms += (i == 1 ? R"({"topologyKey":"k)" : R"(,{"topologyKey":"k)") + std::to_string(i) +
               R"(","labelSelector":{}})";
    }
    return R"({"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone",)"
           R"("whenUnsatisfiable":"ScheduleAnyway"}],"affinity":{"podAntiAffinity":{)"
           R"("requiredDuringSchedulingIgnoredDuringExecution":[)" +
           terms + "]}}}";
  };
  EXPECT_TRUE(Of(spec(32)).unmodelled.empty());
  const PodClass pod = Of(spec(33));
  EXPECT_EQ(pod.unmodelled,
            std::vector<std::string>{"names 33 topology keys of other pods, more than 32"});
  EXPECT_EQ(pod.forbidden_pods.size(), 32u);
  EXPECT_FALSE(pod.holds_unknown);
}

TEST(BoundTerms, SoManyExpressionsAboutNodesAreModelledAndNoMore) {
  const auto spec = [](int count) {
    return R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{)"
           R"("nodeSelectorTerms":[)" +
           Repeated(R"({"matchExpressions":[{"key":"a","operator":"Exists"}]})", count) + "]}}}}";
  };
  EXPECT_TRUE(Of(spec(512)).unmodelled.empty());
  const PodClass pod = Of(spec(513));
  EXPECT_EQ(pod.unmodelled,
            std::vector<std::string>{"has 513 selectors, expressions and tolerations about nodes, "
                                     "more than 512"});
  EXPECT_FALSE(pod.required_nodes.has_value());
  EXPECT_FALSE(pod.holds_unknown);
}

TEST(BoundTerms, SelectorsAndTolerationsOfNodesCountWithThem) {
  std::string selector;
  for (int i = 0; i < 300; ++i)
    selector += (i == 0 ? "" : ",") + ('"' + std::to_string(i)) + R"(":"v")";
  const auto spec = [&](int tolerations) {
    return R"({"nodeSelector":{)" + selector + R"(},"tolerations":[)" +
           Repeated(R"({"key":"a","operator":"Exists"})", tolerations) + "]}";
  };
  EXPECT_TRUE(Of(spec(212)).unmodelled.empty());
  const PodClass pod = Of(spec(213));
  EXPECT_EQ(pod.unmodelled.size(), 1u);
  EXPECT_TRUE(pod.node_selector.empty());
  EXPECT_TRUE(pod.tolerations.empty());
}

TEST(BoundTerms, OneExpressionAboutNodesMayNameSoManyValuesAndNoMore) {
  const auto spec = [](int count) {
    return R"({"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[)"
           R"({"weight":1,"preference":{"matchExpressions":[{"key":"a","operator":"In",)"
           R"("values":[)" +
           Repeated(R"("v")", count) + "]}]}}]}}}";
  };
  EXPECT_TRUE(Of(spec(2048)).unmodelled.empty());
  const PodClass pod = Of(spec(2049));
  EXPECT_EQ(pod.unmodelled,
            std::vector<std::string>{"names 2049 values of labels of nodes, more than 2048"});
  EXPECT_TRUE(pod.preferred_nodes.empty());
}

TEST(BoundTerms, APodMayHaveAnyNumberOfPortsOfTheHost) {
  const PodClass pod = Of(R"({"containers":[{"name":"c","ports":[)" +
                          Repeated(R"({"containerPort":80,"hostPort":80})", 2000) + "]}]}");
  EXPECT_TRUE(pod.unmodelled.empty());
  EXPECT_EQ(pod.host_ports.size(), 2000u);
  EXPECT_FALSE(pod.holds_unknown);
}

TEST(BoundTerms, AnAmountThatNoNodeHasIsReadAsTheMost) {
  for (const std::string amount : {"7Ei", "1e19", "1e999", "99999999999999999999999999Ki"}) {
    const PodClass pod =
        Of(R"({"overhead":{"memory":")" + amount +
           R"("},"containers":[{"resources":{"requests":{"cpu":"1","example.com/gpu":")" + amount +
           R"("}}}]})");
    EXPECT_EQ(pod.amounts.held.memory_bytes, int64_t{1} << 50) << amount;
    EXPECT_EQ(pod.amounts.held.cpu_millis, 1000);
    EXPECT_EQ(pod.amounts.scalars, (ScalarAmounts{{"example.com/gpu", int64_t{1} << 50}}));
    EXPECT_FALSE(pod.holds_unknown);
    EXPECT_TRUE(pod.unmodelled.empty());
  }
}

TEST(BoundTerms, OfAPodThatCannotBeReadWhatItForbidsOthersIsKept) {
  const ParsedJson json(R"({"metadata":{"name":"p","namespace":"n"},"spec":{"priority":"high",)" +
                        PodTerms("podAntiAffinity", kRequired, 4000).substr(1) + "}");
  const auto refused = ReadPodClass(json.root(), {});
  ASSERT_FALSE(refused.has_value());
  const PodClass pod = ReadPartsOfPodClass(json.root(), {}, refused.error());
  EXPECT_EQ(pod.forbidden_pods.size(), 4000u);
  EXPECT_FALSE(pod.holds_unknown);
}

}  // namespace
}  // namespace rudderfish::kube
