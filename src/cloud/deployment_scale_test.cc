// SPDX-License-Identifier: Apache-2.0
#include "cloud/deployment_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

const ObjectChoice kWeb{.name_space = "shop", .name = "web", .may_change = {}};

TEST(DeploymentScale, SaysHowManyPodsAreWantedAndServe) {
  const auto seen = ReadDeployment(R"({"metadata": {"resourceVersion": "7", "generation": 4,
      "managedFields": [{"manager": "kubectl-client-side-apply",
                         "fieldsV1": {"f:spec": {"f:replicas": {}}}}]},
      "spec": {"replicas": 5}, "status": {"readyReplicas": 3, "observedGeneration": 4}})",
                                   kWeb);
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(seen->pods, 5);
  EXPECT_EQ(seen->ready, 3);
  EXPECT_TRUE(seen->is_current);
  // What is new has no status, and one pod where nothing says how many.
  const auto fresh = ReadDeployment(
      R"({"metadata": {"resourceVersion": "1", "generation": 1}, "spec": {}})", kWeb);
  EXPECT_EQ(fresh->pods, 1);
  EXPECT_EQ(fresh->ready, 0);
  EXPECT_FALSE(fresh->is_current);
}

TEST(DeploymentScale, WhatSomebodyElseDecidesAboutIsRefused) {
  const auto refusal = [](std::string_view metadata) {
    const auto seen = ReadDeployment(
        "{\"metadata\": {\"resourceVersion\": \"7\", " + std::string(metadata) + "}, \"spec\": {}}",
        kWeb);
    return seen ? "" : seen.error().message;
  };
  EXPECT_THAT(refusal(R"("ownerReferences": [{"kind": "App", "name": "web", "controller": true}])"),
              HasSubstr("deployment shop/web: it belongs to App/web"));
  EXPECT_THAT(refusal(R"("managedFields": [{"manager": "argocd-controller",
                         "fieldsV1": {"f:spec": {"f:replicas": {}}}}])"),
              HasSubstr("its replicas belong to the field manager `argocd-controller`"));
  EXPECT_THAT(refusal(R"("managedFields": [{"manager": "argocd-controller",
                         "fieldsV1": {"f:spec": {"f:template": {}}}}])"),
              "");
}

TEST(DeploymentScale, AnAutoscalerOfItIsFound) {
  constexpr std::string_view kList = R"({"items": [
      {"metadata": {"name": "other"},
       "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "api"}}},
      {"metadata": {"name": "set"},
       "spec": {"scaleTargetRef": {"kind": "StatefulSet", "name": "web"}}},
      {"metadata": {"name": "hpa"},
       "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}}]})";
  EXPECT_EQ(AutoscalerOf(kList, kWeb).value(), "hpa");
  EXPECT_EQ(AutoscalerOf(R"({"items": []})", kWeb).value(), std::nullopt);
  EXPECT_EQ(AutoscalerOf("{}", kWeb).value(), std::nullopt);
  EXPECT_FALSE(AutoscalerOf(R"({"items": [{"spec": {}}]})", kWeb));
}

}  // namespace
}  // namespace rudderfish
