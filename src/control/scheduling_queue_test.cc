// SPDX-License-Identifier: Apache-2.0
#include "control/scheduling_queue.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using std::chrono::seconds;

TEST(SchedulingQueue, BacksOffTwiceAsLongEachTimeUpToTenSeconds) {
  SchedulingQueue queue;
  queue.Add("x", 0);
  Instant now(seconds(1));
  for (const int wait_s : {1, 2, 4, 8, 10, 10}) {
    ASSERT_TRUE(queue.Pop().has_value());
    queue.BackOff("x", now);
    queue.Advance(now + seconds(wait_s) - Duration(1));
    EXPECT_EQ(queue.active(), 0) << wait_s;
    now += seconds(wait_s);
    queue.Advance(now);
    EXPECT_EQ(queue.active(), 1) << wait_s;
  }
}

TEST(SchedulingQueue, WakesOnlyWhomTheEventMayConcern) {
  SchedulingQueue queue;
  const Instant now(seconds(1));
  queue.Add("room", 0);
  queue.Add("friend", 0);
  queue.Pop();
  queue.Pop();
  queue.Sleep("room", MaskOf(Rejection::kResources), now);
  queue.Sleep("friend", MaskOf(Rejection::kAffinity), now);
  queue.Wake(kMayEndByPlacing, now + seconds(5));
  EXPECT_EQ(queue.Pop(), "friend");
  EXPECT_EQ(queue.asleep(), 1);
  queue.Advance(now + std::chrono::minutes(5));
  EXPECT_EQ(queue.Pop(), "room");
}

}  // namespace
}  // namespace rudderfish
