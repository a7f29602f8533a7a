// SPDX-License-Identifier: Apache-2.0
#include "node/node_counters.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

class NodeReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    top_ = fs::temp_directory_path() /
           ("rudderfish_node_" + std::to_string(::getpid()) + "_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top_);
    fs::create_directories(top_ / "proc/1/net");
    fs::create_directories(top_ / "sys");
    Put("proc/stat", "cpu  1 0 1 8 0 0 0 0 0 0\ncpu0 1 0 1 8 0 0 0 0 0 0\n");
    Put("proc/meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n");
    Put("proc/1/net/dev",
        "h\nh\nlo: 1 0 0 0 0 0 0 0 1 0\neth0: 10 0 0 0 0 0 0 0 20 0\n"
        "cni0: 100 0 0 0 0 0 0 0 200 0\nveth1: 1000 0 0 0 0 0 0 0 2000 0\n");
    Put("proc/diskstats",
        "8 0 sda 1 0 2 0 1 0 4 0\n8 1 sda1 1 0 2 0 1 0 4 0\n253 0 dm-0 1 0 2 0 1 0 4 0\n");
  }
  void TearDown() override { fs::remove_all(top_); }

  void Put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(top_ / path, text));
  }
  void Make(const std::string& path) { fs::create_directories(top_ / path); }
  NodeSources Sources() const { return {.proc = top_ / "proc", .sys = top_ / "sys"}; }

  fs::path top_;
};

TEST_F(NodeReaderTest, DevicesOfThePhysicalMachineCountOnce) {
  Make("sys/class/net/eth0/device");
  Make("sys/class/net/cni0/bridge");
  Make("sys/class/net/veth1/brport");
  Make("sys/block/sda/device");
  Make("sys/block/dm-0");
  const auto read = NodeReader(Sources()).Read();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->cpu, (CpuTimes{.busy_ticks = 2, .total_ticks = 10, .cores = 1}));
  EXPECT_EQ(read->memory.available_bytes, 40 * 1024);
  EXPECT_EQ(read->received_bytes, 10u);
  EXPECT_EQ(read->transmitted_bytes, 20u);
  EXPECT_EQ(read->read_bytes, 2 * 512u);
  EXPECT_EQ(read->written_bytes, 4 * 512u);
}

TEST_F(NodeReaderTest, NamespacesWithoutDevicesCountWhatLeavesThem) {
  Make("sys/class/net/cni0/bridge");
  Make("sys/class/net/veth1/brport");
  Make("sys/block/sda");
  Make("sys/block/dm-0");
  const auto read = NodeReader(Sources()).Read();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->received_bytes, 10u);
  EXPECT_EQ(read->read_bytes, 2 * 512u);
}

TEST_F(NodeReaderTest, NamesThatAreGivenCountInstead) {
  Make("sys/class/net/eth0/device");
  NodeSources sources = Sources();
  sources.interfaces = {"cni0", "veth1"};
  sources.disks = {"dm-0"};
  const auto read = NodeReader(sources).Read();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->received_bytes, 1100u);
  EXPECT_EQ(read->written_bytes, 4 * 512u);
}

TEST_F(NodeReaderTest, DevicesThatAppearLaterAreLookedAt) {
  Make("sys/class/net/eth0/device");
  NodeReader reader(Sources());
  ASSERT_TRUE(reader.Read());
  Put("proc/1/net/dev", "eth0: 10 0 0 0 0 0 0 0 20 0\neth1: 5 0 0 0 0 0 0 0 6 0\n");
  Make("sys/class/net/eth1/device");
  EXPECT_EQ(reader.Read()->received_bytes, 15u);
}

TEST_F(NodeReaderTest, MachinesWithoutDisksHaveNoDiskBytes) {
  fs::remove(top_ / "proc/diskstats");
  EXPECT_EQ(NodeReader(Sources()).Read()->read_bytes, 0u);
  fs::remove(top_ / "proc/meminfo");
  EXPECT_FALSE(NodeReader(Sources()).Read());
}

TEST(NodeReader, ReadsThisMachine) {
  const auto read = NodeReader({}).Read();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_GT(read->cpu.total_ticks, 0);
  EXPECT_GT(read->memory.total_bytes, 0);
}

}  // namespace
}  // namespace rudderfish
