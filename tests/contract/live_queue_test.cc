// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <regex>

#include "base/check.h"
#include "control/live_policy.h"
#include "control/scheduler.h"
#include "policy/placement_policy.h"
#include "policy/registry.h"
#include "sim/lifecycle.h"
#include "tests/support/two_types_world.h"

// Look-ahead over the queue decides the same for the same queue whether a simulated world asks it
// or the scheduler of a live cluster does.

namespace rudderfish {
namespace {

constexpr const char* kPolicy = "lookahead:depth=6,width=8";

std::shared_ptr<const Scenario> Bursts() {
  const std::string text = std::regex_replace(
      std::string(testing::kTwoTypesWorld), std::regex("interval: [^}]*\\},\\s+lifetime: [^}]*.*"),
      "interval: 0s, count: 120, waves: {pods: 12, hold: 60s, pause: 30s}}");
  Result<Scenario> scenario = ParseScenario(text, "bursts.yaml");
  CHECK(scenario.has_value());
  return std::make_shared<const Scenario>(*std::move(scenario));
}

std::shared_ptr<const PodClass> ShapeOf(const Workload& workload) {
  auto shape = std::make_shared<PodClass>();
  shape->object_namespace = "default";
  shape->scheduler = "rudderfish";
  shape->amounts.requests = shape->amounts.held = workload.requests;
  if (workload.devices.count > 0)
    shape->amounts.scalars = {{"nvidia.com/gpu", workload.devices.count}};
  return shape;
}

// Binds at once, in the order in which it is asked.
class Binder final : public PlacementActuator {
 public:
  void Bind(const PodIdentity& pod, const std::string& node, OnDone done) override {
    bound.push_back({pod.name, node});
    done(BindingOutcome::kBound, "");
  }
  void LookUp(const PodIdentity&, OnFound) override {}
  void TellPlaced(const PodIdentity&, const std::string&) override {}
  void TellWaiting(const PodIdentity&, const std::string&) override {}
  void TellWaitsNoLonger(const PodIdentity&) override {}
  void TellOvercommitted(const std::string&, const std::string&) override {}
  void TellNameShared(const PodIdentity&, const std::string&) override {}

  std::vector<std::pair<std::string, std::string>> bound;
};

// The scheduler of a cluster in that state, and a pod of each of these workloads, in their order.
std::vector<std::string> PlacedLive(const State& state, const std::vector<WorkloadId>& queue) {
  const ManualClock clock{Instant(std::chrono::seconds(1000))};
  Binder binder;
  MemoryPlacementJournal journal;
  Scheduler scheduler({}, &clock, LivePolicy::Load({.policy = kPolicy})->NewScorer(), &binder,
                      &journal, [] { return true; });
  for (NodeId n = 0; n < state.nodes.size(); ++n) {
    SchedulingNode node;
    node.name = NodeName(state, n);
    node.allocatable = state.nodes.allocatable[n];
    node.pods_max = 110;
    if (state.nodes.devices[n].count > 0)
      node.scalars = {{"nvidia.com/gpu", state.nodes.devices[n].count}};
    scheduler.NodeSeen(node);
  }
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (state.pods.node[pod] == kNone) continue;
    const std::string name = "bound-" + std::to_string(pod);
    scheduler.PodSeen({{"default", name, name},
                       ShapeOf(state.workload_of(pod)),
                       NodeName(state, state.pods.node[pod])});
  }
  for (size_t i = 0; i < queue.size(); ++i) {
    const std::string name = std::to_string(i);
    scheduler.PodSeen({{"default", name, name}, ShapeOf(state.catalog->workloads[queue[i]]), ""});
  }
  while (scheduler.Turn().value()) {
  }
  std::vector<std::string> placed(queue.size());
  for (const auto& [pod, node] : binder.bound) placed[std::stoul(pod)] = node;
  return placed;
}

TEST(LiveQueueTest, TheSchedulerPlacesABurstAsTheSimulatorDoes) {
  const auto scenario = Bursts();
  const Objective balance = Objective::Of(ObjectiveTerm::kBalance);
  const PlacementRule rule = MakePlacementPolicy(kPolicy, PlacementTask(balance))->start();
  const PlacementRule greedy = MakePlacementPolicy("greedy", PlacementTask(balance))->start();
  Lifecycle world(scenario);
  ASSERT_TRUE(world.Start(3).has_value());
  int bursts = 0, pods = 0, unlike_greedy = 0;
  bool is_over = !world.NextPending();
  while (!is_over) {
    const State before = world.state();
    std::vector<WorkloadId> queue = {world.pending_workload()};
    queue.insert(queue.end(), world.next().begin(), world.next().end());
    const std::vector<std::string> live = PlacedLive(before, queue);
    for (size_t i = 0; i < queue.size(); ++i, ++pods) {
      ASSERT_FALSE(is_over);
      ASSERT_EQ(world.pending_workload(), queue[i]);
      const PlacementQuestion question{world.state(), world.totals(), queue[i], world.next()};
      const NodeId node = rule(question);
      unlike_greedy += node != greedy(question) ? 1 : 0;
      // Alone, of equal nodes the scheduler draws one.
      if (i + 1 < queue.size()) {
        ASSERT_EQ(live[i], node == kNone ? "" : NodeName(world.state(), node))
            << bursts << " " << i;
      }
      world.Bind(node);
      is_over = !world.NextPending();
    }
    ++bursts;
  }
  EXPECT_GE(bursts, 10);
  EXPECT_GE(pods, 120);
  EXPECT_GT(unlike_greedy, 10) << "else these bursts show nothing";
}

}  // namespace
}  // namespace rudderfish
