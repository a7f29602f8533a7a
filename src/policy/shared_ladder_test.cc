// SPDX-License-Identifier: Apache-2.0
#include "policy/shared_ladder.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

ServedApplication WithReplicas(int most) {
  return SingleStation({.name = "web", .slots = 2, .replicas = 2, .replicas_max = most}, 100);
}

TEST(SharedLadder, IsOneForEqualApplicationsAndAnotherForOthers) {
  const ServedApplication application = WithReplicas(6), other = WithReplicas(7);
  const auto ladder = SharedLadder(application, 0.01);
  EXPECT_EQ(SharedLadder(application, 0.01), ladder);
  EXPECT_NE(SharedLadder(application, 0.02), ladder);
  EXPECT_EQ(SharedLadder(other, 0.01)->Replicas(SharedLadder(other, 0.01)->rungs() - 1)[1], 7);
  EXPECT_EQ(SharedLadder(application, 0.01), ladder);
}

TEST(SharedLadder, IsMadeAgainOnceForgotten) {
  const ServedApplication application = WithReplicas(6);
  const auto ladder = SharedLadder(application, 0.01);
  for (int i = 2; i < 12; ++i) SharedLadder(application, 0.01 * i);
  const auto again = SharedLadder(application, 0.01);
  EXPECT_NE(again, ladder);
  EXPECT_EQ(again->rungs(), ladder->rungs());
}

}  // namespace
}  // namespace rudderfish
