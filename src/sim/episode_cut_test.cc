// SPDX-License-Identifier: Apache-2.0
#include "sim/episode_cut.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/thread_pool.h"

namespace rudderfish {
namespace {

TEST(EpisodeCut, NothingIsLeftOutUnlessItIsToldToStop) {
  EpisodeCut never(nullptr);
  EXPECT_TRUE(never.Begins(5));
  EXPECT_EQ(never.Complete(7), 7);
  const std::atomic<bool> stop = true;
  EpisodeCut at_once(&stop);
  EXPECT_FALSE(at_once.Begins(0));
  EXPECT_EQ(at_once.Complete(7), 0);
}

TEST(EpisodeCut, WhatHasBegunIsCompletedForEveryPolicyAndNothingElse) {
  constexpr int kEpisodes = 200, kPolicies = 3;
  std::atomic<bool> stop = false;
  EpisodeCut cut(&stop);
  std::vector<int> ran(kEpisodes * kPolicies);
  ThreadPool pool(4);
  pool.ParallelFor(kEpisodes * kPolicies, [&](int index, int) {
    if (index == 150) stop = true;
    ran[index] = cut.Begins(index / kPolicies) ? 1 : 0;
  });
  const int complete = cut.Complete(kEpisodes);
  EXPECT_LT(complete, kEpisodes);
  EXPECT_GE(complete, 40);
  for (int i = 0; i < kEpisodes * kPolicies; ++i)
    EXPECT_EQ(ran[i], i / kPolicies < complete ? 1 : 0) << i;
}

}  // namespace
}  // namespace rudderfish
