// SPDX-License-Identifier: Apache-2.0
#include "sim/routing_story.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/registry.h"
#include "scenario/scenario.h"
#include "sim/routing_evaluation.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

std::shared_ptr<const RegionWorld> WorldOf(const char* scenario) {
  auto world = std::make_shared<RegionWorld>(*LoadScenario(SourcePath(scenario)).value().regions);
  world->duration_s = 1800;
  return world;
}

std::unique_ptr<RoutingPolicy> Mpc() { return MakeRoutingPolicy(*ParsePolicySpec("mpc")).value(); }

TEST(RoutingEpisodeStory, TellsTheEpisodeThatIsJudged) {
  const auto world = WorldOf("scenarios/multicloud-16.yaml");
  const RegionEpisode episode = JudgedEpisode(world->variants[0], 3, 1);
  const RoutingEpisodeStory story = TellRouting(*Mpc(), episode, world);
  RegionSimulator simulator(world, LawsOf(*world));
  const RoutingFigures judged = RunRouting(*Mpc(), episode, &simulator);
  EXPECT_EQ(story.figures.objective(), judged.objective());
  EXPECT_EQ(story.figures.changes, judged.changes);
  ASSERT_EQ(static_cast<int>(story.steps.size()), world->steps());
  double requests = 0, changes = 0;
  for (const RoutingStep& step : story.steps) {
    requests += step.after.requests;
    changes += step.after.changes;
  }
  EXPECT_NEAR(requests / judged.requests, 1, 1e-9);
  EXPECT_NEAR(changes, judged.changes, 1e-6);
}

TEST(RoutingEpisodeStory, SharesOfAnOriginMoveFromOneRegionToOthers) {
  const auto world = WorldOf("scenarios/multicloud-16.yaml");
  const RoutingEpisodeStory story =
      TellRouting(*Mpc(), JudgedEpisode(world->variants[0], 3, 1), world);
  const size_t regions = world->network->regions.size();
  std::vector<double> shares(regions * regions, 0);
  for (size_t r = 0; r < regions; ++r) shares[r * regions + r] = 1;  // At home, as it begins.
  size_t moved = 0;
  for (const RoutingStep& step : story.steps) {
    ASSERT_EQ(step.services.size(), 1u);
    const RoutedService& service = step.services[0];
    double before = 1e300;
    for (const MovedShare& one : service.moved) {
      const size_t at = world->network->At(one.origin, one.to);
      EXPECT_EQ(one.before, shares[at]);
      EXPECT_EQ(one.after, service.shares[at]);
      EXPECT_LE(std::abs(one.after - one.before) * one.per_s, before);
      before = std::abs(one.after - one.before) * one.per_s;
      if (one.after > one.before) {
        EXPECT_TRUE(std::isfinite(one.one_more.objective()));
      }
    }
    moved += service.moved.size();
    shares = service.shares;
  }
  EXPECT_GT(moved, 0u);
}

TEST(RoutingEpisodeStory, EachServiceThatSharesNodesIsTold) {
  const auto world = WorldOf("scenarios/multicloud-services.yaml");
  const RoutingEpisodeStory story =
      TellRouting(*Mpc(), JudgedEpisode(world->variants[0], 3, 1), world);
  for (const RoutingStep& step : story.steps)
    EXPECT_EQ(step.services.size(), world->services.size());
}

}  // namespace
}  // namespace rudderfish
