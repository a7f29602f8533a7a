// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sim/lifecycle.h"
#include "sim/world.h"
#include "tests/support/count_allocations.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/small_arrivals.h"

// What is drawn or run again needs no memory more.

namespace rudderfish {
namespace {

TEST(World, AllocatesNothingOnceAStateHasBeenDrawnInto) {
  for (const char* name : {"continuum-7x21", "continuum-22x41", "continuum-100x1000"}) {
    const World world(testing::ShippedScenario(name));
    State state;
    Rng rng(7);
    bool all = world.Draw(&rng, &state).has_value();
    const long before = allocation_count;
    for (int i = 0; i < 200; ++i) all = world.Draw(&rng, &state).has_value() && all;
    EXPECT_EQ(allocation_count - before, 0) << name;
    EXPECT_TRUE(all);
  }
}

int Play(Lifecycle* world) {
  if (!world->Start(5).has_value()) return 0;
  int asked = 0;
  while (world->NextPending()) {
    NodeId node = 0;
    while (node < world->state().nodes.size() &&
           !HasRoom(world->state(), world->pending_workload(), node))
      ++node;
    world->Bind(node < world->state().nodes.size() ? node : kNone);
    ++asked;
  }
  return asked;
}

TEST(Lifecycle, SecondEpisodeAllocatesNothing) {
  Lifecycle world(testing::ArrivalsScenario(R"(
  streams:
    - {workloads: {web: 3, batch: 1, learner: 1}, interval: {exponential: 3s},
        lifetime: {exponential: 60s}, count: 500}
  start_delay: 1s to 3s
  users: users
  failures: {every: {exponential: 20m}, down: 1m}
  events: [{at: 5m, latency: {near: {far: 30ms}}}]
patterns:
  shop:
    buy:
      client: web
      rate: 1
      qos: 1s
      calls:
        - batch: {execution: 1ms, calls: [learner: {execution: 1ms}]}
        - learner: {execution: 1ms}
)"));
  const int asked = Play(&world);
  EXPECT_GT(asked, 500);  // Some had to wait.
  const long before = allocation_count;
  EXPECT_EQ(Play(&world), asked);
  EXPECT_EQ(allocation_count - before, 0);
}

}  // namespace
}  // namespace rudderfish
