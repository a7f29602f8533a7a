// SPDX-License-Identifier: Apache-2.0
#include "learn/placement_player.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "sim/placement_run.h"
#include "tests/support/small_arrivals.h"

namespace rudderfish {
namespace {

PlacementWorld BalancedWorld() {
  Scenario scenario = *testing::ArrivalsScenario(R"(
  streams:
    - {workloads: {web: 3, batch: 1, learner: 1}, interval: {exponential: 5s},
        lifetime: {exponential: 40s}, count: 60}
  start_delay: 1s
)");
  scenario.objective = Objective::Of(ObjectiveTerm::kBalance);
  ThreadPool pool(1);
  Result<PlacementWorld> world =
      PlacementWorld::Make(std::make_shared<const Scenario>(std::move(scenario)), &pool);
  CHECK(world.has_value());
  return *std::move(world);
}

TEST(PlacementPlayer, BeginsWithTheReferenceAndPlaysTheSameTwice) {
  const PlacementWorld world = BalancedWorld();
  const EvolutionStart start = PlacementStart(world);
  ASSERT_FALSE(start.seeds.empty());
  for (int s = 0; s < kPlacementScores; ++s) {
    if (s == static_cast<int>(PlacementScore::kFragmentation)) continue;
    EXPECT_EQ(start.weights[s], static_cast<float>(world.reference[s]));
  }
  const auto player = NewPlacementPlayer(world);
  int questions = 0;
  const EpisodeResult first = player->Play(start.weights, start.seeds[0],
                                           [&](const EpisodePlayer::Question&) { ++questions; });
  const EpisodeResult second = player->Play(start.weights, start.seeds[0], {});
  EXPECT_EQ(first.cost, second.cost);
  EXPECT_GT(first.cost, 0);
  EXPECT_GT(questions, 0);
  EXPECT_LE(questions, first.decisions);
}

}  // namespace
}  // namespace rudderfish
