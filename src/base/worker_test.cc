// SPDX-License-Identifier: Apache-2.0
#include "base/worker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace rudderfish {
namespace {

TEST(Worker, DoesOneThingAfterAnotherOnItsOwnThread) {
  Worker worker;
  std::vector<int> order;
  std::thread::id thread;
  std::vector<std::future<void>> done;
  for (int i = 0; i < 100; ++i) {
    done.push_back(worker.Do([&order, &thread, i] {
      order.push_back(i);
      thread = std::this_thread::get_id();
    }));
  }
  for (auto& one : done) one.get();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(Worker, WhatHasNotBegunIsDroppedAtTheEnd) {
  std::promise<void> may_end;
  bool has_ended = false, has_begun = false;
  std::future<void> first, second;
  std::thread ends;
  {
    Worker worker;
    std::promise<void> begun;
    first = worker.Do([&] {
      begun.set_value();
      may_end.get_future().wait();
      has_ended = true;
    });
    second = worker.Do([&] { has_begun = true; });
    begun.get_future().wait();
    ends = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      may_end.set_value();
    });
  }
  ends.join();
  EXPECT_TRUE(has_ended);
  EXPECT_FALSE(has_begun);
  EXPECT_EQ(second.wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

}  // namespace
}  // namespace rudderfish
