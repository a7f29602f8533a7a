// SPDX-License-Identifier: Apache-2.0
#include "compat/gym_hpa_world.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

// Where a test is about a mistake that gym-hpa or graph-gym-hpa made, its name says what holds here
// instead.

namespace rudderfish {
namespace {

GymHpaReading ReadingOf(int pods, double cpu_millis) {
  return {.pods = pods, .cpu_millis = cpu_millis, .latency_ms = 10};
}

// Rows in which each deployment's pods can be told from its CPU.
GymHpaTable AllPods() {
  GymHpaTable table;
  for (int round = 0; round < 3; ++round) {
    for (int a = 1; a <= 8; ++a) {
      for (int b = 1; b <= 8; ++b) {
        // Twice, so that every state may stay as it is.
        for (int twice = 0; twice < 2; ++twice)
          table.rows.push_back({.readings = {ReadingOf(a, a * 100), ReadingOf(b, b * 100)}});
      }
    }
  }
  return table;
}

TEST(GymHpaWorld, EveryDeploymentChoosesAmongTheRows) {
  const GymHpaTable table = AllPods();
  GymHpaWorld world(&GymHpaApplication::Redis(), &table, {});
  world.Reset(1);
  for (int step = 0; step < 25; ++step) {
    const bool moves = step % 3 == 0;
    const int delta = world.readings()[0].pods < 8 ? 1 : -7;
    world.Step({0, moves ? delta : 0});
    EXPECT_EQ(world.readings()[0].cpu_millis, world.readings()[0].pods * 100) << step;
    // Where rows with a change of the first are few, none may have the pods of the second.
    if (moves) continue;
    EXPECT_EQ(world.readings()[1].cpu_millis, world.readings()[1].pods * 100) << step;
  }
}

TEST(GymHpaWorld, OnlyTheLastDoesAsInTheOriginal) {
  const GymHpaTable table = AllPods();
  GymHpaWorld world(&GymHpaApplication::Redis(), &table, {.sampling = GymHpaSampling::kLast});
  std::set<double> first;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    world.Reset(seed);
    world.Step({0, 0});
    const auto& readings = world.readings();
    EXPECT_EQ(readings[1].cpu_millis, readings[1].pods * 100);
    first.insert(readings[0].cpu_millis - readings[0].pods * 100);
  }
  EXPECT_GT(first.size(), 5u);
}

TEST(GymHpaWorld, RowsWithTheSameChangeComeFirst) {
  GymHpaTable table;  // One pod, then two: CPU tells how the two were reached.
  table.rows = {{.readings = {ReadingOf(1, 1)}},
                {.readings = {ReadingOf(2, 12)}},
                {.readings = {ReadingOf(2, 22)}},
                {.readings = {ReadingOf(1, 21)}}};
  GymHpaApplication one{.name = "one", .deployments = {{"a", 100, 100}}};
  GymHpaWorld world(&one, &table, {});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    world.Reset(seed);
    if (world.readings()[0].pods == 2) world.Step({0, -1});
    world.Step({0, 1});
    EXPECT_EQ(world.readings()[0].cpu_millis, 12);
    world.Step({0, 0});
    EXPECT_EQ(world.readings()[0].cpu_millis, 22);
    world.Step({0, 2});  // No row has four: any.
    EXPECT_EQ(world.readings()[0].pods, 4);
  }
}

TEST(GymHpaWorld, AnEpisodeEndsAfterItsLastStepAndNotBefore) {
  const GymHpaTable table = AllPods();
  GymHpaWorld world(&GymHpaApplication::Redis(), &table, {});
  world.Reset(3);
  for (int step = 1; step <= 25; ++step) EXPECT_EQ(world.Step({}).over, step == 25);
}

TEST(GymHpaWorld, TheFirstMoveCountsAndTheSameSeedRepeats) {
  const GymHpaTable table = AllPods();
  GymHpaWorld world(&GymHpaApplication::Redis(), &table, {});
  std::vector<GymHpaReading> before;
  for (int round = 0; round < 2; ++round) {
    world.Reset(9);
    for (const GymHpaReading& reading : world.readings()) {
      EXPECT_EQ(reading.cpu_millis, reading.pods * 100);  // A row, not noise.
    }
    const int pods = world.readings()[0].pods, delta = pods < 8 ? 1 : -1;
    world.Step({0, delta});
    EXPECT_EQ(world.readings()[0].pods, pods + delta);
    if (round == 1) {
      EXPECT_EQ(world.readings(), before);
    }
    before = world.readings();
  }
}

TEST(GymHpaWorld, AMoveBeyondABoundIsNotMadeAndCanBeToldBefore) {
  const GymHpaTable table = AllPods();
  GymHpaWorld world(&GymHpaApplication::Redis(), &table, {});
  world.Reset(2);
  const int pods = world.readings()[0].pods;
  EXPECT_FALSE(world.IsLegal({0, 8}));
  const GymHpaStep step = world.Step({0, 8});
  EXPECT_TRUE(step.beyond_bound);
  EXPECT_EQ(step.reward, -1);
  EXPECT_EQ(world.readings()[0].pods, pods);
  EXPECT_TRUE(world.IsLegal({0, 0}));
}

}  // namespace
}  // namespace rudderfish
