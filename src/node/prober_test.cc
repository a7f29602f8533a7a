// SPDX-License-Identifier: Apache-2.0
#include "node/prober.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A TCP port of loopback, open or closed, that no other process has while this lives.
class Port {
 public:
  enum class Kind { kListening, kClosed };
  explicit Port(Kind kind) : file_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(file_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    if (kind == Kind::kListening) ::listen(file_, 16);
    socklen_t size = sizeof address;
    ::getsockname(file_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~Port() { ::close(file_); }

  SocketAddress address() const { return *SocketAddress::Of("127.0.0.1", port_); }

 private:
  int file_;
  uint16_t port_ = 0;
};

class ProberTest : public ::testing::Test {
 protected:
  ProberTest() : wake_(::eventfd(0, EFD_CLOEXEC)) {}
  ~ProberTest() override { ::close(wake_); }

  static ProberOptions Fast(const std::string& node) {
    return {.node = node,
            .interval = milliseconds(1),
            .probes_per_second = 1000,
            .timeout = milliseconds(100)};
  }

  // Turns all of them until it holds; false: it did not within ten seconds.
  bool Until(const std::vector<Prober*>& probers, const std::function<bool()>& holds) {
    const Instant end = clock_.Now() + seconds(10);
    while (!holds()) {
      if (clock_.Now() > end) return false;
      for (Prober* prober : probers) {
        prober->Wait(milliseconds(1), wake_);
        prober->Turn();
      }
    }
    return true;
  }

  SystemClock clock_;
  int wake_;
};

TEST_F(ProberTest, PeersAnswerOverUdpAndSayTheirNames) {
  const Port port(Port::Kind::kListening);
  Prober one(Fast("one"), &clock_), two(Fast("two"), &clock_);
  ASSERT_TRUE(two.Answer(port.address()));
  one.SetTargets({{"two's", ProbeProtocol::kUdp, port.address()},
                  {"two's", ProbeProtocol::kTcp, port.address()}});
  const auto& targets = one.targets();
  ASSERT_TRUE(Until({&one, &two}, [&] {
    return targets[0]->trips.count() > 2 && targets[1]->trips.count() > 2;
  }));
  EXPECT_EQ(targets[0]->node, "two");
  EXPECT_EQ(targets[1]->node, "two");  // TCP does not say it, but it is the same address.
  EXPECT_GT(targets[0]->trips.sum_seconds(), 0);
  EXPECT_GT(targets[1]->trips.sum_seconds(), 0);
}

TEST_F(ProberTest, WhatDoesNotAnswerIsAFailure) {
  const Port closed(Port::Kind::kClosed);
  Prober prober(Fast("one"), &clock_);
  prober.SetTargets({{"gone", ProbeProtocol::kUdp, closed.address()},
                     {"gone", ProbeProtocol::kTcp, closed.address()}});
  const auto& targets = prober.targets();
  ASSERT_TRUE(Until({&prober}, [&] {
    return targets[0]->trips.failures() > 0 && targets[1]->trips.failures() > 0;
  }));
  EXPECT_EQ(targets[0]->trips.count(), 0u);
  EXPECT_EQ(targets[1]->trips.count(), 0u);
  EXPECT_FALSE(targets[1]->trouble.empty());
}

TEST_F(ProberTest, WhatIsKnownOfTargetsThatStayStays) {
  const Port port(Port::Kind::kListening);
  Prober prober(Fast("one"), &clock_);
  const ProbeTarget target{"user", ProbeProtocol::kTcp, port.address()};
  prober.SetTargets({target});
  ASSERT_TRUE(Until({&prober}, [&] { return prober.targets()[0]->trips.count() > 0; }));
  prober.SetTargets({{"other", ProbeProtocol::kTcp, port.address()}, target});
  EXPECT_EQ(prober.targets()[0]->trips.count(), 0u);
  EXPECT_GT(prober.targets()[1]->trips.count(), 0u);
}

TEST_F(ProberTest, RatesAreKept) {
  const Port port(Port::Kind::kListening);
  ManualClock clock;
  Prober prober({.node = "one", .interval = seconds(1), .probes_per_second = 2}, &clock);
  prober.SetTargets({{"a", ProbeProtocol::kTcp, port.address()},
                     {"b", ProbeProtocol::kTcp, port.address()},
                     {"c", ProbeProtocol::kTcp, port.address()}});
  const auto tried = [&] {
    uint64_t sum = 0;
    for (const auto& target : prober.targets())
      sum += target->trips.count() + target->trips.failures();
    return sum;
  };
  for (int i = 0; i < 1000; ++i) {
    clock.Advance(milliseconds(10));
    prober.Turn();
  }
  EXPECT_LE(tried(), 20u);
  EXPECT_GE(tried(), 18u);
}

}  // namespace
}  // namespace rudderfish
