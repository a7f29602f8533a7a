// SPDX-License-Identifier: Apache-2.0
#include "policy/scaling_policy.h"

#include <gtest/gtest.h>

#include "policy/registry.h"

namespace rudderfish {
namespace {

constexpr int64_t kScalingSecondNs = 1'000'000'000;

// One workload of two-slot pods that take 100 ms a call: 20 calls per second each.
ServedApplication TwoSlots() {
  return SingleStation({.name = "web", .slots = 2, .replicas = 2, .replicas_max = 20}, 100);
}

// Asks every 15 s with the load given, all pods alike and long ready; gives the last answer.
int AskWith(const std::string& spec, const std::vector<double>& calls_per_s) {
  const ServedApplication application = TwoSlots();
  const std::unique_ptr<ScalingPolicy> policy = *MakeScalingPolicy(spec);
  const std::unique_ptr<ScalingMemory> memory = policy->NewMemory(application);
  std::vector<int> replicas = {0, 2};
  int64_t at_ns = 0;
  for (const double rate : calls_per_s) {
    at_ns += 15 * kScalingSecondNs;
    const double busy = std::min(rate * .1, 2.0 * replicas[1]);
    const std::vector<HpaPod> pods(
        replicas[1], HpaPod{.started_ns = -1000 * kScalingSecondNs,
                            .transition_ns = -990 * kScalingSecondNs,
                            .cpu_millis = static_cast<int64_t>(busy / replicas[1] / 2 * 1000),
                            .value_millis = static_cast<int64_t>(rate / replicas[1] * 1000)});
    const std::vector<WorkloadSight> seen = {
        {}, {.replicas = replicas[1], .calls_per_s = rate, .busy_slots = busy, .pods = pods}};
    policy->Decide({.at_ns = at_ns,
                    .sampled_at_ns = at_ns,
                    .window_ns = 15 * kScalingSecondNs,
                    .has_samples = true,
                    .application = &application,
                    .workloads = seen},
                   memory.get(), replicas);
  }
  return replicas[1];
}

TEST(ScalingPolicy, FollowsTheLoadAsItsKindDoes) {
  EXPECT_EQ(AskWith("hold", {80, 80, 80}), 2);
  EXPECT_EQ(AskWith("hpa:cpu=50", {80, 80, 80}), 8);
  EXPECT_EQ(AskWith("hpa:rate=8", {80, 80}), 10);
  EXPECT_EQ(AskWith("keda:share=0.8", {80}), 5);
  EXPECT_EQ(AskWith("autopilot:share=0.5,window=60s", {80, 80, 80}), 8);
}

TEST(ScalingPolicy, GoesDownWhenItsWindowIsOver) {
  std::vector<double> falling = {80, 80, 80};
  falling.insert(falling.end(), 3, 10.0);
  EXPECT_EQ(AskWith("autopilot:share=0.5,window=60s", falling), 8);
  falling.insert(falling.end(), 3, 10.0);
  EXPECT_EQ(AskWith("autopilot:share=0.5,window=60s", falling), 1);
  EXPECT_EQ(AskWith("keda:share=0.8,down=60s", falling), 1);
  EXPECT_EQ(AskWith("keda:share=0.8,down=600s", falling), 5);
}

TEST(ScalingPolicy, AnAutoscalerKeepsItsLeastReplicas) {
  std::vector<double> falling(3, 80.0);
  falling.insert(falling.end(), 3, 10.0);
  EXPECT_EQ(AskWith("keda:share=0.8,down=0s", falling), 1);
  EXPECT_EQ(AskWith("keda:share=0.8,down=0s,min=4", falling), 4);
  EXPECT_EQ(AskWith("hpa:cpu=50,min=7", {10, 10}), 7);
  // What the ladder has for a rate, no matter how few requests come; up to what there can be.
  const int enough = AskWith("static:rate=60", {10});
  EXPECT_GT(enough, 3);
  EXPECT_EQ(AskWith("keda:share=0.8,down=0s,min-rate=60", falling), enough);
  EXPECT_EQ(AskWith("keda:share=0.8,down=0s,min-rate=100000", falling), 20);
  EXPECT_EQ(AskWith("keda:share=0.8,min-rate=1", {80}), 5);
}

TEST(ScalingPolicy, PoliciesSayHowFastReplicasChange) {
  EXPECT_EQ(AskWith("hpa:cpu=10,policies=fast", {80}), 20);
  EXPECT_EQ(AskWith("hpa:cpu=10", {80}), 6);
  std::vector<double> falling(8, 80.0);    // Two minutes: nothing has changed for one.
  falling.insert(falling.end(), 4, 10.0);  // One minute.
  EXPECT_EQ(AskWith("keda:share=0.8,down=0s,policies=gentle", falling), 4);
}

}  // namespace
}  // namespace rudderfish
