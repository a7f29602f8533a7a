// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "base/rng.h"

namespace rudderfish {
namespace {

TEST(ThreadPool, CallsEachIndexOnceWhateverTheNumberOfThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (const int count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      pool.ParallelFor(count, [&](int index, int worker) {
        calls.at(index).fetch_add(1);
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
      });
      for (const auto& call : calls) EXPECT_EQ(call, 1);
    }
  }
}

TEST(ThreadPool, ResultsBySlotDoNotDependOnTheNumberOfThreads) {
  const auto draw = [](int threads) {
    ThreadPool pool(threads);
    std::vector<double> slots(500);
    pool.ParallelFor(500, [&](int index, int) { slots[index] = Rng(1, index).Normal(); });
    return slots;
  };
  EXPECT_EQ(draw(1), draw(4));
}

// Plain memory on purpose: the thread sanitizer checks that a return orders all writes before what
// follows.
TEST(ThreadPool, CallerSeesTheWritesOfThousandsOfShortLoops) {
  ThreadPool pool(3);
  std::vector<int> sums(5);
  for (int round = 0; round < 20000; ++round) {
    pool.ParallelFor(5, [&](int index, int) { sums[index] += index; });
  }
  EXPECT_EQ(sums, (std::vector<int>{0, 20000, 40000, 60000, 80000}));
}

TEST(ThreadPool, WorkersWakeAfterTheyWentToSleep) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    // Neither body returns before the other has begun, so it takes two threads.
    std::atomic<int> begun{0};
    pool.ParallelFor(2, [&](int, int) {
      begun.fetch_add(1);
      while (begun.load() < 2) std::this_thread::yield();
    });
    EXPECT_EQ(begun, 2);
  }
}

TEST(ThreadPool, OneWorkerNeverRunsTwoBodiesAtOnce) {
  ThreadPool pool(4);
  std::vector<int> scratch(4);
  pool.ParallelFor(10000, [&](int, int worker) { ++scratch[worker]; });
  EXPECT_EQ(std::accumulate(scratch.begin(), scratch.end(), 0), 10000);
}

TEST(ThreadPool, OneThreadRunsInOrderInTheCaller) {
  ThreadPool pool(1);
  std::vector<int> order;
  const auto caller = std::this_thread::get_id();
  pool.ParallelFor(4, [&](int index, int) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(index);
  });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(ThreadPoolDeathTest, RefusesALoopWithinALoopAndNoThreads) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(ThreadPool(0), "threads >= 1: 0 against 1");
  EXPECT_DEATH(
      {
        ThreadPool pool(1);
        pool.ParallelFor(1, [&](int, int) { pool.ParallelFor(1, [](int, int) {}); });
      },
      "CHECK failed");
}

}  // namespace
}  // namespace rudderfish
