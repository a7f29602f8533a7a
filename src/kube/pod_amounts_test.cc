// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_amounts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::ParsedJson;

constexpr int64_t kMib = 1024 * 1024;

Result<PodAmounts> Read(const std::string& spec, const std::string& status = "{}") {
  const ParsedJson json(fmt::format(R"({{"spec":{},"status":{}}})", spec, status));
  return ReadPodAmounts(Fields(json.root()));
}

PodAmounts Of(const std::string& spec, const std::string& status = "{}") {
  const auto amounts = Read(spec, status);
  EXPECT_TRUE(amounts) << amounts.error().message;
  return amounts.value_or(PodAmounts());
}

TEST(PodAmounts, InitContainersNeedTheMostBesideTheSidecarsBeforeThem) {
  EXPECT_EQ(Of(R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
              "initContainers":[{"resources":{"requests":{"cpu":"2500m"}}},
                                {"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                                {"resources":{"requests":{"cpu":"1800m"}}}]})")
                .requests,
            (Resources{2800, 0}));
}

TEST(PodAmounts, EveryKindOfResourceIsAddedUpExactlyAndOverheadOnTop) {
  const PodAmounts amounts = Of(R"({"overhead":{"memory":"1Mi","example.com/gpu":"1"},
      "containers":[
        {"resources":{"requests":{"memory":"1500m","ephemeral-storage":"1Gi","example.com/gpu":"2",
                                  "hugepages-2Mi":"4Mi","storage":"1Gi"}}},
        {"resources":{"requests":{"memory":"1500m","requests.example.com/x":"1"}}}]})");
  EXPECT_EQ(amounts.requests, (Resources{0, kMib + 3}));
  EXPECT_EQ(amounts.ephemeral_bytes, 1024 * kMib);
  EXPECT_EQ(amounts.scalars, (ScalarAmounts{{"example.com/gpu", 3}, {"hugepages-2Mi", 4 * kMib}}));
}

TEST(PodAmounts, ContainersThatAskNothingAreAssumedToTakeSomething) {
  const PodAmounts amounts = Of(R"({"containers":[{},{"resources":{"requests":{"cpu":"0"}}}],
                                    "initContainers":[{"resources":{"requests":{"cpu":"1"}}}]})");
  EXPECT_EQ(amounts.requests, (Resources{1000, 0}));
  EXPECT_EQ(amounts.held_assumed, (Resources{1000, 400 * kMib}));
  EXPECT_EQ(amounts.scored_assumed, amounts.held_assumed);
}

TEST(PodAmounts, WhatIsGivenForThePodReplacesItsContainersButNotForLeastAllocated) {
  const PodAmounts amounts = Of(R"({"resources":{"requests":{"cpu":"4"}},
              "containers":[{"resources":{"requests":{"cpu":"1","memory":"1Mi"}}}, {}]})");
  EXPECT_EQ(amounts.requests, (Resources{4000, kMib}));
  EXPECT_EQ(amounts.held_assumed, (Resources{4000, kMib}));
  EXPECT_EQ(amounts.scored_assumed, (Resources{1100, 201 * kMib}));
}

TEST(PodAmounts, AResizeUnderWayHoldsTheMostButDoesNotChangeWhatMustFit) {
  const std::string spec = R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]})";
  const std::string status = R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"2"},
          "resources":{"requests":{"cpu":"3"}}}]CONDITIONS})";
  const auto with = [&](const std::string& conditions) {
    std::string text = status;
    return Of(spec, text.replace(text.find("CONDITIONS"), 10, conditions));
  };
  EXPECT_EQ(with("").held.cpu_millis, 3000);
  EXPECT_EQ(with("").requests.cpu_millis, 1000);
  EXPECT_EQ(Of(R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"9"}}}]})",
               R"({"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"3"}}}],
                   "conditions":[{"type":"PodResizePending","reason":"Infeasible"}]})")
                .held.cpu_millis,
            3000);
}

// As found with kube-scheduler v1.36.3: probes that just fit beside the pod, and just do not.
TEST(PodAmounts, AResizeIsHeldAsKubeSchedulerHoldsIt) {
  const std::string infeasible =
      R"("conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}],)";
  EXPECT_EQ(Of(R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"500m"}}}]})",
               R"({"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"2"},
                   "resources":{"requests":{"cpu":"1"}}}]})")
                .held.cpu_millis,
            2000)
      << "shrinking";
  EXPECT_EQ(
      Of(R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]})",
         "{" + infeasible + R"("containerStatuses":[{"name":"c","allocatedResources":{"cpu":"1"},
             "resources":{"requests":{"cpu":"1"}}}]})")
          .held.cpu_millis,
      1000)
      << "growth that is infeasible";
  EXPECT_EQ(Of(R"({"resources":{"requests":{"cpu":"1"}},
                   "containers":[{"name":"c","resources":{"requests":{"cpu":"500m"}}}]})",
               R"({"allocatedResources":{"cpu":"3"},"resources":{"requests":{"cpu":"3"}}})")
                .held.cpu_millis,
            3000)
      << "the pod as a whole shrinks";
  EXPECT_EQ(Of(R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"3"}}},
                                 {"name":"b","resources":{"requests":{"cpu":"100m"}}}]})",
               "{" + infeasible + R"("containerStatuses":[{"name":"a","resources":{}},
                   {"name":"b","allocatedResources":{"cpu":"100m"},
                    "resources":{"requests":{"cpu":"100m"}}}]})")
                .held.cpu_millis,
            100)
      << "infeasible growth of a container that had no request";
}

TEST(PodAmounts, BadAmountsAreRefusedByPlace) {
  const auto error_of = [](const std::string& spec) { return Read(spec).error().message; };
  EXPECT_EQ(error_of(R"({"containers":[{"resources":{"requests":{"cpu":"much"}}}]})"),
            "spec.containers[0].resources.requests.cpu: expected a quantity such as 500m, 2 or "
            "1.5Gi, found `much`");
  EXPECT_EQ(error_of(R"({"overhead":{"example.com/gpu":[]}})"),
            "spec.overhead.example.com/gpu: expected a quantity such as 500m, 2 or 1.5Gi");
}

}  // namespace
}  // namespace rudderfish::kube
