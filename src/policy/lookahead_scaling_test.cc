// SPDX-License-Identifier: Apache-2.0
#include "policy/lookahead_scaling.h"

#include <gtest/gtest.h>

#include "policy/registry.h"

namespace rudderfish {
namespace {

constexpr int64_t kLookaheadWindowNs = 15'000'000'000;

// A page that calls a shop, which calls its stock: 100 ms and 50 ms, pods of 2 slots.
ServedApplication ShopAndStock(double start_s) {
  auto calls = std::make_shared<CallGraph>();
  calls->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 2},
                  {.workload = 2, .caller = 1, .first_group = 2, .last_group = 2}};
  calls->groups = {{0, 1}, {1, 2}};
  calls->sequence = {1, 2};
  calls->endpoints = {{.name = "page", .root = 0, .end = 3, .rate_per_second = 1, .qos_ms = 600}};
  const ServedWorkload pods{.name = "shop",
                            .slots = 2,
                            .replicas = 2,
                            .replicas_max = 20,
                            .start_low_s = start_s,
                            .start_high_s = start_s};
  ServedApplication application{.calls = std::move(calls), .service_ms = {0, 100, 50}};
  application.workloads = {{.name = "client", .replicas = 0, .scaled = false}, pods, pods};
  application.workloads[2].name = "stock";
  return application;
}

// Decides once an interval while such rates come, all pods keeping up; gives the last answer.
std::vector<int> DecideThrough(const std::string& spec, const std::vector<double>& rates,
                               const std::vector<double>& true_rates) {
  const ServedApplication application = ShopAndStock(20);
  const std::unique_ptr<ScalingPolicy> policy = *MakeScalingPolicy(spec);
  const std::unique_ptr<ScalingMemory> memory = policy->NewMemory(application);
  std::vector<int> replicas = {0, 2, 2};
  for (size_t i = 0; i < rates.size(); ++i) {
    const int64_t sampled_ns = static_cast<int64_t>(i + 1) * kLookaheadWindowNs;
    const std::vector<WorkloadSight> seen = {
        {},
        {.replicas = replicas[1], .calls_per_s = rates[i], .busy_slots = rates[i] * .1},
        {.replicas = replicas[2], .calls_per_s = rates[i], .busy_slots = rates[i] * .05}};
    policy->Decide({.at_ns = sampled_ns + kLookaheadWindowNs,
                    .sampled_at_ns = sampled_ns,
                    .window_ns = kLookaheadWindowNs,
                    .has_samples = true,
                    .application = &application,
                    .workloads = seen,
                    .true_rates = true_rates},
                   memory.get(), replicas);
  }
  return replicas;
}

TEST(LookaheadScaling, AsksForWhatTheRateNeedsOfEachWorkload) {
  const std::vector<int> few = DecideThrough("mpc", std::vector<double>(12, 20), {});
  const std::vector<int> many = DecideThrough("mpc", std::vector<double>(12, 100), {});
  EXPECT_GE(few[1], 2);  // 20 requests keep 2 slots of the shop busy, one of the stock.
  EXPECT_LE(few[1], 3);
  EXPECT_LE(few[2], 2);
  EXPECT_GE(many[1], 6);
  EXPECT_LE(many[1], 9);
  EXPECT_GE(many[2], 3);
  EXPECT_LE(many[2], 5);
}

TEST(LookaheadScaling, PaysMoreWhereViolationsCostMore) {
  const std::vector<double> rates(12, 60);
  const std::vector<int> cheap = DecideThrough("mpc:price=0.05", rates, {});
  const std::vector<int> dear = DecideThrough("mpc:price=100", rates, {});
  EXPECT_LT(cheap[1] + cheap[2], dear[1] + dear[2]);
}

TEST(LookaheadScaling, TheClairvoyantScalesBeforeTheLoadComes) {
  const std::vector<double> seen(10, 20);
  std::vector<double> rates(12, 20);  // Of [0, 180 s); the last decision is at 165 s.
  const int calm = DecideThrough("clairvoyant", seen, rates)[1];
  rates.insert(rates.end(), 8, 120);
  EXPECT_LE(calm, 3);
  EXPECT_GE(DecideThrough("clairvoyant", seen, rates)[1], 7);
  EXPECT_LE(DecideThrough("mpc", seen, rates)[1], 3);
}

TEST(StaticScaling, IsTheCheapestThatKeepsTheLimit) {
  const std::vector<int> loose = DecideThrough("static:rate=100,violations=20%", {1}, {});
  const std::vector<int> tight = DecideThrough("static:rate=100,violations=4%", {1}, {});
  EXPECT_GE(loose[1], 5);
  EXPECT_GT(tight[1] + tight[2], loose[1] + loose[2]);
  EXPECT_LE(tight[1], 10);
  // Half of the time 20, half 100: that of 100 is needed for any small limit.
  std::vector<double> rates(20, 20);
  rates.insert(rates.end(), 20, 100);
  EXPECT_GE(DecideThrough("static", {20}, rates)[1], loose[1]);
  // Who knows nothing holds.
  EXPECT_EQ(DecideThrough("static", {100}, {}), (std::vector<int>{0, 2, 2}));
}

}  // namespace
}  // namespace rudderfish
