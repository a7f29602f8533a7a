// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kube/scheduling_terms.h"
#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::ParsedJson;

Result<PodClass> Read(const std::string& spec, const SchedulingReferences& references = {},
                      const std::string& metadata = R"("labels":{"app":"web","v":"2"})") {
  const ParsedJson json(
      fmt::format(R"({{"metadata":{{"name":"p","namespace":"n",{}}},"spec":{}}})", metadata, spec));
  return ReadPodClass(json.root(), references);
}

PodClass Of(const std::string& spec, const SchedulingReferences& references = {}) {
  const auto pod = Read(spec, references);
  EXPECT_TRUE(pod) << pod.error().message;
  return pod.value_or(PodClass());
}

std::string ErrorOf(const std::string& spec) {
  const auto pod = Read(spec);
  return pod ? "none" : pod.error().message;
}

TEST(ReadSchedulingNode, TakesWhatTheRulesAsk) {
  const ParsedJson json(R"({"metadata":{"name":"n1","labels":{"b":"2","a":"1"}},
      "spec":{"unschedulable":true,"taints":[{"key":"k","effect":"NoExecute"}]},
      "status":{"allocatable":{"cpu":"1500m","memory":"1Gi","pods":"7","ephemeral-storage":"2Gi",
                               "example.com/gpu":"3","hugepages-1Gi":"0"},
                "images":[{"names":["a:1","a@sha256:0"],"sizeBytes":42}]}})");
  const auto node = ReadSchedulingNode(json.root());
  ASSERT_TRUE(node) << node.error().message;
  constexpr int64_t kGib = 1024 * 1024 * 1024;
  SchedulingNode wanted;
  wanted.name = "n1";
  wanted.labels = {{"a", "1"}, {"b", "2"}};
  wanted.taints = {{"k", "", TaintEffect::kNoExecute}};
  wanted.unschedulable = true;
  wanted.allocatable = {1500, kGib};
  wanted.ephemeral_bytes = 2 * kGib;
  wanted.pods_max = 7;
  wanted.scalars = {{"example.com/gpu", 3}};  // Of the other it has none.
  wanted.images = {{"a:1", 42}, {"a@sha256:0", 42}};
  EXPECT_EQ(*node, wanted);
}

std::optional<double> UserMs(const std::string& said, std::string* unread) {
  const ParsedJson json(fmt::format(
      R"({{"metadata":{{"name":"n1","annotations":{{"rudderfish.io/user-latency-ms":"{}"}}}}}})",
      said));
  const auto node = ReadSchedulingNode(json.root());
  EXPECT_TRUE(node) << node.error().message;
  *unread = node->unread_latency;
  return node->user_ms;
}

TEST(ReadSchedulingNode, SaysHowFarTheUsersAreOrWhyNot) {
  std::string unread;
  EXPECT_EQ(UserMs("12.5", &unread), 12.5);
  EXPECT_EQ(UserMs("0", &unread), 0);
  EXPECT_EQ(unread, "");
  for (const char* said : {"", "12ms", "-1", "nan", "inf", "1e10", " 5"}) {
    EXPECT_EQ(UserMs(said, &unread), std::nullopt) << said;
    EXPECT_EQ(unread, fmt::format("metadata.annotations.rudderfish.io/user-latency-ms: expected "
                                  "milliseconds, such as 12.5, found `{}`",
                                  said));
  }
  EXPECT_EQ(UserMs("1\\n[error] 2", &unread), std::nullopt);  // A log stays one line an entry.
  EXPECT_EQ(unread.find('\n'), std::string::npos);
}

TEST(ReadPodClass, LimitsOfLatencyAreAnnotations) {
  const auto limits = [](const std::string& annotations) {
    const auto pod = Read("{}", {}, fmt::format(R"("annotations":{{{}}})", annotations));
    EXPECT_TRUE(pod) << pod.error().message;
    return pod->latency_limits;
  };
  EXPECT_EQ(limits(""), LatencyLimits());
  EXPECT_EQ(limits(R"("latencySoftConstraint":"20")"), LatencyLimits{.soft_ms = 20});
  EXPECT_EQ(limits(R"("latencySoftConstraint":"20","latencyHardConstraint":"30.5")"),
            (LatencyLimits{.soft_ms = 20, .hard_ms = 30.5}));
  const auto pod = Read("{}", {}, R"("annotations":{"latencyHardConstraint":"near"})");
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().message,
            "pod n/p: metadata.annotations.latencyHardConstraint: expected milliseconds, such as "
            "12.5, found `near`");
}

TEST(ReadPodClass, LabelKeysBecomePartOfTheSelectorOnce) {
  const PodClass pod = Of(R"({"affinity":{"podAntiAffinity":{
      "requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone",
        "labelSelector":{"matchExpressions":[{"key":"v","operator":"In","values":["2"]}]},
        "matchLabelKeys":["v","absent"],"mismatchLabelKeys":["app"]}]}}})");
  using Operator = LabelRequirement::Operator;
  ASSERT_EQ(pod.forbidden_pods.size(), 1u);
  EXPECT_EQ(pod.forbidden_pods[0].selector->requirements,
            (std::vector<LabelRequirement>{{"v", Operator::kIn, {"2"}},
                                           {"app", Operator::kNotIn, {"web"}}}));
  EXPECT_EQ(pod.forbidden_pods[0].namespaces, (std::vector<std::string>{"n"}));
}

TEST(ReadPodClass, ASelectorThatIsAbsentIsNotOneThatSelectsAll) {
  const PodClass pod = Of(R"({"topologySpreadConstraints":[
      {"topologyKey":"a","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"},
      {"topologyKey":"b","maxSkew":2,"whenUnsatisfiable":"ScheduleAnyway","labelSelector":{},
       "minDomains":null,"nodeAffinityPolicy":"Ignore","nodeTaintsPolicy":"Honor"}]})");
  ASSERT_EQ(pod.spread.size(), 2u);
  EXPECT_FALSE(pod.spread[0].selector.has_value());
  EXPECT_TRUE(pod.spread[1].selector.has_value());
  EXPECT_EQ(pod.spread[1].node_affinity, SpreadConstraint::Policy::kIgnore);
  EXPECT_EQ(pod.spread[1].node_taints, SpreadConstraint::Policy::kHonor);
}

TEST(ReadPodClass, ARequiredTermThatIsMalformedFitsNoNode) {
  const PodClass pod = Of(R"({"affinity":{"nodeAffinity":{
      "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
        {"matchExpressions":[{"key":"rank","operator":"Gt","values":["high"]}]},
        {"matchExpressions":[{"key":"rank","operator":"Lt","values":["7"]}]}]},
      "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":5,"preference":
        {"matchExpressions":[{"key":"rank","operator":"Gt","values":["high"]}]}}]}}})");
  ASSERT_EQ(pod.required_nodes->size(), 2u);
  EXPECT_TRUE((*pod.required_nodes)[0].malformed);
  EXPECT_FALSE((*pod.required_nodes)[1].malformed);
  EXPECT_EQ((*pod.required_nodes)[1].expressions[0].bound, 7);
  EXPECT_TRUE(pod.preferred_nodes.empty());
  EXPECT_EQ(pod.unmodelled.front(),
            "prefers nodes by a term that is malformed, which kube-scheduler fails on");
}

TEST(ReadPodClass, WhatNoRuleCanBeMadeOfIsRefusedByPlace) {
  EXPECT_EQ(ErrorOf(R"({"affinity":{"nodeAffinity":{
              "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                {"matchExpressions":[{"key":"a","operator":"Near"}]}]}}}})"),
            "pod n/p: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
            "nodeSelectorTerms[0].matchExpressions[0].operator: expected In, NotIn, Exists, "
            "DoesNotExist, Gt or Lt, found `Near`");
  EXPECT_EQ(ErrorOf(R"({"topologySpreadConstraints":[{"topologyKey":"a","maxSkew":0,
                        "whenUnsatisfiable":"DoNotSchedule"}]})"),
            "pod n/p: spec.topologySpreadConstraints[0].maxSkew, minDomains: expected 1 or more, "
            "found 0");
  EXPECT_EQ(ErrorOf(R"({"topologySpreadConstraints":[{"topologyKey":"a","maxSkew":1,
                        "whenUnsatisfiable":"Never"}]})"),
            "pod n/p: spec.topologySpreadConstraints[0].whenUnsatisfiable: expected DoNotSchedule "
            "or ScheduleAnyway, found `Never`");
  EXPECT_EQ(ErrorOf(R"({"tolerations":[{"operator":"Maybe"}]})"),
            "pod n/p: spec.tolerations[0].operator: expected Equal or Exists, found `Maybe`");
  EXPECT_EQ(ErrorOf(R"({"affinity":{"podAffinity":{
              "requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{}}]}}})"),
            "pod n/p: spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
            "topologyKey: is missing");
}

TEST(ReadPodClass, HostPortsAreThoseThatLastAndImagesThoseOfAll) {
  const PodClass pod = Of(R"({
      "initContainers":[{"image":"reg:5000/tool","ports":[{"hostPort":1}]},
                        {"image":"side:2","restartPolicy":"Always","ports":[{"hostPort":2}]}],
      "containers":[{"image":"main","ports":[{"hostPort":3,"hostIP":"10.0.0.1","protocol":"UDP"},
                                             {"containerPort":4}]}]})");
  EXPECT_EQ(pod.host_ports, (std::vector<HostPort>{{"0.0.0.0", "TCP", 2}, {"10.0.0.1", "UDP", 3}}));
  EXPECT_EQ(pod.images,
            (std::vector<std::string>{"reg:5000/tool:latest", "side:2", "main:latest"}));
  EXPECT_EQ(pod.containers, 3);
}

TEST(ReadPodClass, APodMayPreemptUnlessItsPolicySaysNever) {
  EXPECT_TRUE(Of("{}").may_preempt);
  EXPECT_TRUE(Of(R"({"preemptionPolicy":"PreemptLowerPriority"})").may_preempt);
  EXPECT_FALSE(Of(R"({"preemptionPolicy":"Never"})").may_preempt);
}

TEST(ReadPodClass, OfAPodThatCannotBeReadItsPriorityIsKept) {
  const ParsedJson json(
      R"({"metadata":{"name":"p","namespace":"n"},"spec":{"priority":7,"nodeSelector":1}})");
  const auto whole = ReadPodClass(json.root(), {});
  ASSERT_FALSE(whole);
  EXPECT_EQ(ReadPartsOfPodClass(json.root(), {}, whole.error()).priority, 7);
}

TEST(ReadPodClass, TheDefaultSpreadIsOfServicesAndControllerTogether) {
  using Operator = LabelRequirement::Operator;
  SchedulingReferences references;
  const auto add = [&](const std::string& kind, const std::string& name, LabelSelector selector) {
    references.selectors[{kind, {"n", name}}] = {{"n", name}, kind, std::move(selector)};
  };
  add("Service", "all", {});
  add("Service", "other", {{{"app", Operator::kIn, {"db"}}}});
  add("Service", "web", {{{"app", Operator::kIn, {"web"}}}});
  add("ReplicaSet", "r", {{{"v", Operator::kExists, {}}}});
  const auto pod = Read("{}", references,
                        R"("labels":{"app":"web"},"ownerReferences":[{"kind":"ReplicaSet",
                            "name":"r","uid":"u","controller":true}])");
  ASSERT_TRUE(pod) << pod.error().message;
  ASSERT_TRUE(pod->default_spread.has_value());
  EXPECT_EQ(pod->default_spread->requirements,
            (std::vector<LabelRequirement>{{"app", Operator::kIn, {"web"}},
                                           {"v", Operator::kExists, {}}}));
  EXPECT_FALSE(Read("{}", references, R"("labels":{"app":"x"})")->default_spread.has_value());
}

TEST(ReadPodClass, WhatIsNotModelledIsNamed) {
  const auto first = [](const std::string& spec) { return Of(spec).unmodelled.front(); };
  EXPECT_EQ(first(R"({"resourceClaims":[{"name":"gpu"}]})"), "claims devices (DRA)");
  EXPECT_EQ(first(R"({"schedulingGroup":{"podGroupName":"g"}})"), "belongs to a gang");
  EXPECT_EQ(first(R"({"volumes":[{"name":"s","iscsi":{"iqn":"i"}}]})"),
            "has the volume s of type iscsi");
  EXPECT_TRUE(Of(R"({"volumes":[{"name":"s","emptyDir":{}}]})").unmodelled.empty());
}

// A pod that asks for so much of each of so many resources.
std::string PodOfResources(int count, const char* amount) {
  std::string requests;
  for (int i = 0; i < count; ++i)
    requests += fmt::format(R"({}"example.com/r{:02}":"{}")", i == 0 ? "" : ",", i, amount);
  return fmt::format(
      R"({{"metadata":{{"name":"p","namespace":"default","uid":"u"}},
           "spec":{{"containers":[{{"resources":{{"requests":{{{}}}}}}}]}}}})",
      requests);
}

TEST(ReadPodClass, ResourcesThatItAsksForNoneOfDoNotCount) {
  const ParsedJson json(PodOfResources(500, "0"));
  const auto pod = ReadPodClass(json.root(), {});
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_TRUE(pod->amounts.scalars.empty());
  EXPECT_TRUE(pod->unmodelled.empty());
}

TEST(ReadPodClass, OneOfTooManyResourcesIsNotModelledAndHoldsThemAll) {
  const ParsedJson few(PodOfResources(28, "1"));
  EXPECT_TRUE(ReadPodClass(few.root(), {})->unmodelled.empty());
  const ParsedJson json(PodOfResources(500, "2"));
  const auto pod = ReadPodClass(json.root(), {});
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->unmodelled,
            std::vector<std::string>{"requests 500 extended resources, more than 28"});
  EXPECT_EQ(pod->amounts.scalars.size(), 500u);
  EXPECT_FALSE(pod->holds_unknown);
}

TEST(PodClasses, PodsThatAreAlikeShareOneClass) {
  PodClasses classes;
  const auto first = classes.Shared(Of(R"({"nodeSelector":{"a":"1"}})"));
  EXPECT_EQ(classes.Shared(Of(R"({"nodeSelector":{"a":"1"}})")), first);
  EXPECT_NE(classes.Shared(Of(R"({"nodeSelector":{"a":"2"}})")), first);
}

}  // namespace
}  // namespace rudderfish::kube
