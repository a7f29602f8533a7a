// SPDX-License-Identifier: Apache-2.0
#include "model/scaling_limits.h"

#include <gtest/gtest.h>

#include <vector>

namespace rudderfish {
namespace {

// A client that is not scaled, pods of 100m and of 300m.
ServedApplication TwoOf(const ScalingLimits& limits) {
  ServedApplication application;
  application.workloads = {{.name = "client", .cpu_millis = 1000, .scaled = false},
                           {.name = "small", .cpu_millis = 100},
                           {.name = "large", .cpu_millis = 300}};
  application.limits = limits;
  return application;
}

TEST(LimitKeeper, LeavesWhatIsWithinTheLimitsAsItIs) {
  const ServedApplication free = TwoOf({}), bound = TwoOf({.cpu_millis_max = 1700, .pods_max = 9});
  for (const ServedApplication* application : {&free, &bound}) {
    LimitKeeper keeper(*application);
    std::vector<int> wanted = {7, 5, 4};
    keeper.Mend(0, std::vector<int>{7, 1, 1}, wanted);
    EXPECT_EQ(wanted, (std::vector<int>{7, 5, 4}));
  }
}

TEST(LimitKeeper, WithholdsPodsOfWhoWasToGetMost) {
  const ServedApplication application = TwoOf({.cpu_millis_max = 1500});
  LimitKeeper keeper(application);
  std::vector<int> wanted = {7, 6, 4};  // 1800m, five more and one more.
  keeper.Mend(0, std::vector<int>{7, 1, 3}, wanted);
  EXPECT_EQ(wanted, (std::vector<int>{7, 3, 4}));
  const ServedApplication few = TwoOf({.pods_max = 5});
  wanted = {7, 1, 6};
  LimitKeeper(few).Mend(0, std::vector<int>{7, 3, 1}, wanted);
  EXPECT_EQ(wanted, (std::vector<int>{7, 1, 4}));
}

TEST(LimitKeeper, RemovesNoPodsForTheQuota) {
  const ServedApplication application = TwoOf({.pods_max = 2});
  LimitKeeper keeper(application);
  std::vector<int> wanted = {0, 3, 3};
  keeper.Mend(0, std::vector<int>{0, 3, 2}, wanted);
  EXPECT_EQ(wanted, (std::vector<int>{0, 3, 2}));
}

TEST(LimitKeeper, WhileItCoolsDownNothingChanges) {
  const ServedApplication application = TwoOf({.cool_down_s = 60});
  LimitKeeper keeper(application);
  std::vector<int> now = {0, 1, 1};
  for (int interval = 0; interval <= 10; ++interval) {
    std::vector<int> wanted = {0, now[1] + 1, 1};
    keeper.Mend(15 * interval, now, wanted);
    EXPECT_EQ(wanted != now, interval % 5 == 0) << interval;
    now = wanted;
  }
}

TEST(LimitKeeper, TheClientNeedNotStandFirst) {
  ServedApplication application;
  application.workloads = {{.name = "small", .cpu_millis = 100},
                           {.name = "client", .cpu_millis = 5000, .scaled = false}};
  application.limits = {.cpu_millis_max = 400, .cool_down_s = 60};
  LimitKeeper keeper(application);
  std::vector<int> wanted = {9, 3};
  keeper.Mend(0, std::vector<int>{1, 3}, wanted);
  EXPECT_EQ(wanted, (std::vector<int>{4, 3}));
  wanted = {3, 3};
  keeper.Mend(30, std::vector<int>{4, 3}, wanted);  // It has changed just now.
  EXPECT_EQ(wanted, (std::vector<int>{4, 3}));
}

}  // namespace
}  // namespace rudderfish
