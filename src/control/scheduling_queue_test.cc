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

// kube-scheduler's PrioritySort: by priority, then by the time at which a pod came into the queue,
// or back into it from an attempt; whatever woke it does not matter.
TEST(SchedulingQueue, AmongEqualsGoesWhoCameOrWasTriedTheLongestAgo) {
  SchedulingQueue queue;
  const Instant now(seconds(1));
  for (const char* key : {"a", "b", "c"}) queue.Add(key, 0);
  for (int i = 0; i < 3; ++i) queue.Pop();
  queue.Sleep("c", MaskOf(Rejection::kResources), now);
  queue.Sleep("a", MaskOf(Rejection::kTaint), now);
  queue.BackOff("b", now);
  queue.Add("new", 0);
  queue.Add("urgent", 1);
  queue.Wake(MaskOf(Rejection::kTaint), now + seconds(5));  // In another order.
  queue.Wake(MaskOf(Rejection::kResources), now + seconds(6));
  queue.Advance(now + seconds(7));
  for (const char* key : {"urgent", "c", "a", "b", "new"}) EXPECT_EQ(queue.Pop(), key);
}

TEST(SchedulingQueue, WhoChangesKeepsItsTurnAndIsNotHeldUp) {
  SchedulingQueue queue;
  const Instant now(seconds(1));
  queue.Add("a", 0);
  queue.Pop();
  queue.Sleep("a", MaskOf(Rejection::kTaint), now);
  queue.Add("b", 0);
  queue.Add("c", 0);
  queue.Add("b", 0);
  queue.Add("a", 0);
  for (const char* key : {"a", "b", "c"}) EXPECT_EQ(queue.Pop(), key);
  queue.Add("new", 0);
  queue.Add("a", 0);  // Its attempt has ended now.
  for (const char* key : {"new", "a"}) EXPECT_EQ(queue.Pop(), key);
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
