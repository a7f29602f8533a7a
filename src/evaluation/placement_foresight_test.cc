// SPDX-License-Identifier: Apache-2.0
#include "evaluation/placement_foresight.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/check.h"
#include "evaluation/placement_bound.h"
#include "sim/episode_pods.h"
#include "sim/placement_run.h"
#include "tests/support/shipped_scenario.h"

namespace rudderfish {
namespace {

// Three unlike nodes, of which the smallest is soon full.
std::shared_ptr<const Scenario> SmallScenario(std::string_view arrivals) {
  Result<Scenario> scenario = ParseScenario(fmt::format(R"(rudderfish: scenario/v1
name: small
objective: balance
layers: {{site: {{}}}}
latency: {{site: {{site: 1ms}}}}
node_types: {{plain: {{layer: site, cpu_type: any, bandwidth: 1Gbit}}}}
nodes:
  - {{type: plain, count: 1, cpu: 1, memory: 4Gi}}
  - {{type: plain, count: 1, cpu: 3, memory: 3Gi}}
  - {{type: plain, count: 1, cpu: 4, memory: 2Gi}}
workloads:
  a: {{requests: {{cpu: 700m, memory: 300Mi}}}}
  b: {{requests: {{cpu: 300m, memory: 500Mi}}}}
arrivals:
  start_delay: 2s
{})",
                                                        arrivals),
                                            "small.yaml");
  if (!scenario) fmt::print(stderr, "{}\n", scenario.error().message);
  CHECK(scenario.has_value());
  return std::make_shared<const Scenario>(*std::move(scenario));
}

// What the episode costs where its pods are put on these nodes; infinite if there is no room.
double CostOf(const std::vector<NodeId>& nodes, uint64_t seed, Lifecycle* lifecycle) {
  size_t next = 0;
  const auto rule = [&](const PlacementQuestion& question) {
    const NodeId node = nodes[next++ % nodes.size()];
    return HasRoom(question.state, question.workload, node) ? node : kNone;
  };
  const Result<LifecycleMetrics> metrics = RunPlacement(rule, seed, lifecycle);
  CHECK(metrics.has_value());
  if (metrics->refusals > 0) return std::numeric_limits<double>::infinity();
  return metrics->MeanOverTime(metrics->objective_s);
}

double LeastOfAllPlans(const std::shared_ptr<const Scenario>& scenario, uint64_t seed) {
  Lifecycle lifecycle(scenario);
  std::vector<NodeId> nodes(PodsOfEpisode(*scenario, seed).size());
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    least = std::min(least, CostOf(nodes, seed, &lifecycle));
    size_t pod = 0;
    while (pod < nodes.size() && ++nodes[pod] == scenario->node_count()) nodes[pod++] = 0;
    if (pod == nodes.size()) return least;
  }
}

TEST(PlacementForesight, FindsTheBestOfAllPlansWhereTheyAreFew) {
  for (const std::string_view arrivals :
       {"  streams: [{workloads: [a, b], interval: 20s, count: 7, lifetime: 40s to 90s}]",
        "  streams: [{workloads: {a: 1, b: 2}, interval: 10s, count: 7, lifetime: 5s to 60s}]",
        "  streams: [{workloads: a, interval: 9s, count: 3, lifetime: 10s to 50s},\n"
        "            {workloads: b, interval: 9s, count: 4, lifetime: 10s to 50s}]",
        "  streams: [{workloads: [a, b, b], interval: 9s, count: 6}]\n  until: 70s",
        "  streams: [{workloads: [a, b, b], interval: 9s, count: 7,\n"
        "             rolling: {pods: 4, hold: 3s, pause: 1s}}]\n  until: 70s"}) {
    const auto scenario = SmallScenario(arrivals);
    for (const uint64_t seed : {1, 2}) {
      const Result<std::optional<double>> found = BestForeseenBalance(scenario, seed);
      ASSERT_TRUE(found.has_value() && found->has_value()) << arrivals;
      EXPECT_NEAR(**found, LeastOfAllPlans(scenario, seed), 1e-12) << arrivals << ", seed " << seed;
    }
  }
}

TEST(PlacementForesight, IsFarBelowGreedyAndNotBelowTheBound) {
  const auto scenario = testing::ShippedScenario("drs-random");
  Lifecycle lifecycle(scenario);
  const PlacementRule greedy = *PlacementRuleNamed("greedy", *scenario->objective);
  const Result<LifecycleMetrics> metrics = RunPlacement(greedy, 3, &lifecycle);
  ASSERT_TRUE(metrics.has_value());
  const double of_greedy = metrics->MeanOverTime(metrics->objective_s);
  const Result<std::optional<double>> found = BestForeseenBalance(scenario, 3);
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_LT(**found, 0.85 * of_greedy);
  EXPECT_GT(**found, *LeastBalance(scenario, 3));
  EXPECT_EQ(**found, **BestForeseenBalance(scenario, 3));
}

TEST(PlacementForesight, FindsNothingWherePodsHaveNoRoom) {
  const auto scenario =
      SmallScenario("  streams: [{workloads: a, interval: 1s, count: 12, lifetime: 60s}]");
  const Result<std::optional<double>> found = BestForeseenBalance(scenario, 1);
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->has_value());
}

}  // namespace
}  // namespace rudderfish
