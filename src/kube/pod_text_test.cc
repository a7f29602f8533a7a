// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_text.h"

#include <gtest/gtest.h>

#include <string>

#include "kube/scheduling_reader.h"
#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using testing::ParsedJson;

// One of everything that ReadPodClass looks at, beside much that it does not.
std::string LargePod() {
  const std::string megabyte(1'000'000, 'x');
  return R"({"metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"7",
    "creationTimestamp":"2026-11-21T09:30:00Z","labels":{"app":"web"},
    "annotations":{"latencySoftConstraint":"10","latencyHardConstraint":"20","note":")" +
         megabyte + R"("},
    "managedFields":[{"manager":")" +
         megabyte + R"("}],
    "ownerReferences":[{"kind":"ReplicaSet","name":"web","uid":"w","controller":true}]},
    "spec":{"schedulerName":"s","priority":3,"preemptionPolicy":"Never","hostNetwork":true,
    "hostUsers":false,"nodeSelector":{"disk":"ssd"},"overhead":{"cpu":"10m"},
    "resources":{"requests":{"memory":"1Gi"}},
    "tolerations":[{"key":"a","operator":"Exists"}],
    "affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":2,
        "preference":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}]},
      "podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
        {"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"}}}]}},
    "topologySpreadConstraints":[{"maxSkew":2,"topologyKey":"zone",
        "whenUnsatisfiable":"ScheduleAnyway","labelSelector":{}}],
    "schedulingGates":[{"name":"g"}],"resourceClaims":[{"name":"gpu"}],
    "initContainers":[{"name":"i","image":"init","restartPolicy":"Always","ports":[{"hostPort":9}],
        "resources":{"requests":{"cpu":"1"}}}],
    "containers":[{"name":"c","image":"app:2","args":[")" +
         megabyte + R"("],"env":[{"name":"E","value":")" + megabyte + R"("}],
        "ports":[{"hostPort":80,"protocol":"UDP"}],
        "restartPolicyRules":[{"action":"RestartAllContainers"}],
        "resources":{"requests":{"cpu":"2","example.com/gpu":"1"}}}],
    "volumes":[{"name":"text","configMap":{"name":"m","items":[{"key":")" +
         megabyte + R"(","path":"p"}]}},
      {"name":"data","persistentVolumeClaim":{"claimName":"data"}},
      {"name":"scratch","ephemeral":{"volumeClaimTemplate":{}}},
      {"name":"disk","gcePersistentDisk":{"pdName":"d"}},
      {"name":"model","image":{"reference":"model"}}]},
    "status":{"message":")" +
         megabyte + R"("}})";
}

TEST(PodText, WhatIsKeptOfALargePodIsSmallAndReadsTheSame) {
  const ParsedJson whole(LargePod());
  const std::string text = WhatIsReadOfPod(whole.root());
  EXPECT_LT(text.size(), 4'000u) << text.substr(0, 4'000);
  const ParsedJson kept(text);
  SchedulingReferences references;
  references.selectors[{"ReplicaSet", {"n", "web"}}] = {
      {"n", "web"},
      "ReplicaSet",
      LabelSelector{{{"app", LabelRequirement::Operator::kIn, {"web"}}}}};
  const Result<PodClass> right = ReadPodClass(whole.root(), references);
  const Result<PodClass> found = ReadPodClass(kept.root(), references);
  ASSERT_TRUE(right.has_value()) << right.error().message;
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_TRUE(*found == *right);
  // Everything above has left something behind, so that none of it can be dropped unseen.
  EXPECT_TRUE(right->default_spread.has_value());
  EXPECT_EQ(right->host_ports.size(), 2u);
  EXPECT_EQ(right->images.size(), 3u);
  EXPECT_GE(right->unmodelled.size(), 4u);
  EXPECT_EQ(right->claims.size(), 1u);
  EXPECT_FALSE(right->rejection.empty());
}

TEST(PodText, WhatIsNoPodStaysWhatItIs) {
  for (const char* text : {R"({"metadata":7,"spec":[]})", R"({"spec":{"volumes":7}})", "{}"}) {
    const ParsedJson whole(text);
    const ParsedJson kept(WhatIsReadOfPod(whole.root()));
    EXPECT_EQ(ReadPodClass(whole.root(), {}).has_value(),
              ReadPodClass(kept.root(), {}).has_value());
  }
}

}  // namespace
}  // namespace rudderfish::kube
