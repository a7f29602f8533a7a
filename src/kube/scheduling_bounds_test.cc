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

TEST(BoundTerms, SoManyTermsAboutOtherPodsAreModelledAndNoMore) {
  EXPECT_TRUE(Of(PodTerms("podAffinity", kRequired, 32)).unmodelled.empty());
  const PodClass pod = Of(PodTerms("podAffinity", kRequired, 4000));
  EXPECT_EQ(pod.unmodelled,
            std::vector<std::string>{"has 4000 terms about other pods, more than 32"});
  EXPECT_TRUE(pod.required_pods.empty());
  EXPECT_FALSE(pod.holds_unknown) << "what it wants is no concern of others'";
}

TEST(BoundTerms, WhoForbidsMoreThanIsHeededKeepsItsNodeForItself) {
  EXPECT_EQ(Of(PodTerms("podAntiAffinity", kRequired, 32)).forbidden_pods.size(), 32u);
  EXPECT_FALSE(Of(PodTerms("podAntiAffinity", kRequired, 32)).holds_unknown);
  const PodClass pod = Of(PodTerms("podAntiAffinity", kRequired, 4000));
  EXPECT_EQ(pod.unmodelled.size(), 1u);
  EXPECT_TRUE(pod.forbidden_pods.empty());
  EXPECT_TRUE(pod.holds_unknown);
}

TEST(BoundTerms, WhatIsForbiddenIsHeededWhereOnlyTheRestIsTooMuch) {
  const std::string terms = Repeated(kTerm, 20);
  const PodClass pod =
      Of(R"({"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)" +
         terms + R"(]},"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)" +
         terms + "]}}}");
  EXPECT_EQ(pod.unmodelled.size(), 1u);
  EXPECT_TRUE(pod.required_pods.empty());
  EXPECT_EQ(pod.forbidden_pods.size(), 20u);
  EXPECT_FALSE(pod.holds_unknown);
}

TEST(BoundTerms, OneTermAboutOtherPodsMayNameSoManyLabelsAndNamespacesAndNoMore) {
  const auto spec = [](const std::string& affinity, int namespaces, int values) {
    return R"({"affinity":{")" + affinity +
           R"(":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone",)"
           R"("namespaces":[)" +
           Repeated(R"("n")", namespaces) +
           R"(],"labelSelector":{"matchExpressions":[{"key":"a","operator":"In","values":[)" +
           Repeated(R"("v")", values) + "]}]}}]}}}";
  };
  EXPECT_TRUE(Of(spec("podAffinity", 100, 411)).unmodelled.empty()) << "512 with the key";
  const PodClass wants = Of(spec("podAffinity", 100, 412));
  EXPECT_EQ(wants.unmodelled, std::vector<std::string>{"names 513 labels and namespaces of other "
                                                       "pods, more than 512"});
  EXPECT_TRUE(wants.required_pods.empty());
  EXPECT_FALSE(wants.holds_unknown);
  const PodClass forbids = Of(spec("podAntiAffinity", 1, 10000));
  EXPECT_EQ(forbids.unmodelled.size(), 1u);
  EXPECT_TRUE(forbids.forbidden_pods.empty());
  EXPECT_TRUE(forbids.holds_unknown);
}

TEST(BoundTerms, ConstraintsOfSpreadAndPreferencesCountWithThem) {
  const std::string constraint =
      R"({"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"})";
  const PodClass spread = Of(R"({"topologySpreadConstraints":[)" + Repeated(constraint, 33) + "]}");
  EXPECT_EQ(spread.unmodelled.size(), 1u);
  EXPECT_TRUE(spread.spread.empty());
  const std::string preferred = R"({"weight":1,"podAffinityTerm":)" + std::string(kTerm) + "}";
  const PodClass prefers =
      Of(R"({"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[)" +
         Repeated(preferred, 33) + "]}}}");
  EXPECT_EQ(prefers.unmodelled.size(), 1u);
  EXPECT_TRUE(prefers.preferred_pods.empty());
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

TEST(BoundTerms, SoManyPortsOfTheHostAreModelledAndNoMore) {
  const auto spec = [](int count) {
    return R"({"containers":[{"name":"c","ports":[)" +
           Repeated(R"({"containerPort":80,"hostPort":80})", count) + "]}]}";
  };
  EXPECT_TRUE(Of(spec(128)).unmodelled.empty());
  const PodClass pod = Of(spec(2000));
  EXPECT_EQ(pod.unmodelled, std::vector<std::string>{"has 2000 ports of the host, more than 128"});
  EXPECT_TRUE(pod.host_ports.empty());
  EXPECT_TRUE(pod.holds_unknown);
}

TEST(BoundTerms, APodThatCannotBeReadIsHeededNoFurther) {
  const ParsedJson json(R"({"metadata":{"name":"p","namespace":"n"},"spec":{"priority":"high",)" +
                        PodTerms("podAntiAffinity", kRequired, 4000).substr(1) + "}");
  const auto refused = ReadPodClass(json.root(), {});
  ASSERT_FALSE(refused.has_value());
  const PodClass pod = ReadPartsOfPodClass(json.root(), {}, refused.error());
  EXPECT_TRUE(pod.forbidden_pods.empty());
  EXPECT_TRUE(pod.holds_unknown);
}

}  // namespace
}  // namespace rudderfish::kube
