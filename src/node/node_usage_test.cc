// SPDX-License-Identifier: Apache-2.0
#include "node/node_usage.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

NodeCounters At(int64_t busy, int64_t total, uint64_t bytes) {
  return {.cpu = {.busy_ticks = busy, .total_ticks = total, .cores = 1},
          .memory = {.total_bytes = 1000, .available_bytes = 250},
          .received_bytes = bytes,
          .transmitted_bytes = 2 * bytes,
          .read_bytes = 3 * bytes,
          .written_bytes = 4 * bytes};
}

Instant Second(double s) {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s)));
}

TEST(UsageWindow, RatesAreBetweenTwoReadings) {
  UsageWindow window;
  window.Add(Second(1), At(10, 100, 0));
  EXPECT_FALSE(window.Mean(2));
  window.Add(Second(1.5), At(35, 200, 1024));
  const auto usage = window.Mean(2);
  ASSERT_TRUE(usage);
  EXPECT_DOUBLE_EQ(usage->cpu_percent, 25);
  EXPECT_DOUBLE_EQ(usage->memory_percent, 75);
  EXPECT_DOUBLE_EQ(usage->received_kib_per_s, 2);
  EXPECT_DOUBLE_EQ(usage->transmitted_kib_per_s, 4);
  EXPECT_DOUBLE_EQ(usage->read_kib_per_s, 6);
  EXPECT_DOUBLE_EQ(usage->written_kib_per_s, 8);
}

TEST(UsageWindow, TheMeanIsThatOfTheNewest) {
  UsageWindow window;
  int64_t busy = 0;
  for (int i = 0; i <= 20; ++i) window.Add(Second(i), At(busy += i, i * 100, 0));
  EXPECT_EQ(window.size(), UsageWindow::kKept);
  EXPECT_DOUBLE_EQ(window.Mean(1)->cpu_percent, 20);
  EXPECT_DOUBLE_EQ(window.Mean(2)->cpu_percent, 19.5);
  EXPECT_DOUBLE_EQ(window.Mean(100)->cpu_percent, 15.5);
}

TEST(UsageWindow, CountersThatGoBackCountFromNothing) {
  UsageWindow window;
  window.Add(Second(1), At(10, 100, 5000));
  window.Add(Second(2), At(10, 100, 1000));
  EXPECT_DOUBLE_EQ(window.Mean(1)->received_kib_per_s, 0);
  EXPECT_DOUBLE_EQ(window.Mean(1)->cpu_percent, 0);
  window.Add(Second(2), At(10, 100, 1000));  // No time has passed: no rate.
  EXPECT_EQ(window.size(), 1u);
}

}  // namespace
}  // namespace rudderfish
