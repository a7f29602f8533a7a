// SPDX-License-Identifier: Apache-2.0
#include "node/proc_files.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

TEST(ProcFiles, CpuIsBusyUnlessIdleOrWaitingForADisk) {
  const auto times = ParseProcStat(
      "cpu  100 10 50 800 40 3 7 2 90 0\ncpu0 50 5 25 400 20 1 3 1 45 0\n"
      "cpu1 50 5 25 400 20 2 4 1 45 0\nintr 12 0 0\nctxt 5\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(*times, (CpuTimes{.busy_ticks = 172, .total_ticks = 1012, .cores = 2}));
  EXPECT_EQ(ParseProcStat("cpu 1 2 3 4\n")->busy_ticks, 6);  // Of old kernels.
  EXPECT_FALSE(ParseProcStat("cpu 1 2 3\n"));
  EXPECT_FALSE(ParseProcStat("cpu -1 2 3 4\n"));
  EXPECT_FALSE(ParseProcStat(""));
}

TEST(ProcFiles, MemoryIsReadInKib) {
  const auto memory = ParseProcMeminfo(
      "MemTotal:       32864004 kB\nMemFree:  1 kB\nMemAvailable:   30219736 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total_bytes, 32864004LL * 1024);
  EXPECT_EQ(memory->available_bytes, 30219736LL * 1024);
  for (const char* bad : {"", "MemTotal: 5 kB\n", "MemTotal: 5\nMemAvailable: 1 kB\n",
                          "MemTotal: 5 kB\nMemAvailable: 6 kB\n"})
    EXPECT_FALSE(ParseProcMeminfo(bad)) << bad;
}

TEST(ProcFiles, InterfacesHaveReceivedAndTransmittedBytes) {
  const auto devices = ParseProcNetDev(
      "Inter-|   Receive                            |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
      "    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\n"
      "ens33:18446744073709551615 9 0 0 0 0 0 0 77 5 0 0 0 0 0 0\n");
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[1], (DeviceBytes{"ens33", 18446744073709551615u, 77}));
  EXPECT_FALSE(ParseProcNetDev("eth0: 1 2 3\n"));
  EXPECT_FALSE(ParseProcNetDev(": 1 2 3 4 5 6 7 8 9\n"));
}

TEST(ProcFiles, DisksCountSectorsOf512Bytes) {
  const auto devices = ParseProcDiskstats(
      "   8       0 sda 10 0 200 5 20 0 400 7 0 12 12\n   8       1 sda1 1 0 2 5 2 0 4 7 0 1 1\n");
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[0], (DeviceBytes{"sda", 200 * 512, 400 * 512}));
  EXPECT_FALSE(ParseProcDiskstats("8 0 sda 10 0\n"));
  EXPECT_FALSE(ParseProcDiskstats("x 0 sda 10 0 200 5 20 0 400 7\n"));
}

}  // namespace
}  // namespace rudderfish
