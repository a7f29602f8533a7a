// SPDX-License-Identifier: Apache-2.0
#include "node/node_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// A free port of loopback for both protocols: an open TCP listener that holds it.
class HeldPort {
 public:
  HeldPort() : file_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(file_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(file_, 64);
    socklen_t size = sizeof address;
    ::getsockname(file_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~HeldPort() { ::close(file_); }
  uint16_t port() const { return port_; }

 private:
  int file_;
  uint16_t port_ = 0;
};

template <class Holds>
bool Within10s(Holds holds) {
  const SystemClock clock;
  const Instant end = clock.Now() + std::chrono::seconds(10);
  while (clock.Now() < end) {
    if (holds()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

NodeAgentOptions Fast(const std::string& node, uint16_t port) {
  return {.node = node,
          .period = milliseconds(20),
          .listen_ip = "127.0.0.1",
          .port = port,
          .interval = milliseconds(5),
          .probes_per_second = 500};
}

TEST(NodeAgent, MeasuresItsNode) {
  const SystemClock clock;
  const HeldPort port;
  const auto agent = NodeAgent::Start(Fast("one", port.port()), &clock);
  ASSERT_TRUE(agent) << agent.error().message;
  ASSERT_TRUE(Within10s([&] { return (*agent)->WhyNotReady().empty(); }));
  EXPECT_EQ((*agent)->WhyNotAlive(), "");
  ASSERT_TRUE(Within10s([&] { return (*agent)->Usage().has_value(); }));
  const auto usage = (*agent)->Usage();
  ASSERT_TRUE(usage);
  EXPECT_GT(usage->memory_percent, 0);
  EXPECT_LE(usage->cpu_percent, 100);
  EXPECT_THAT((*agent)->Metrics(), HasSubstr("rudderfish_node_cpu_cores{node=\"one\"}"));
}

TEST(NodeAgent, OneOfTwoAgentsMeasuresThePair) {
  const SystemClock clock;
  const HeldPort a, b;
  const std::vector<HostAndPort> all{{"127.0.0.1", a.port(), true}, {"127.0.0.1", b.port(), true}};
  NodeAgentOptions first = Fast("one", a.port()), second = Fast("two", b.port());
  first.peers = second.peers = all;
  const auto one = NodeAgent::Start(first, &clock), two = NodeAgent::Start(second, &clock);
  ASSERT_TRUE(one && two);
  const auto measures = [](const NodeAgent& agent, std::string_view peer) {
    return agent.Metrics().find(fmt::format("peer=\"{}\",protocol=\"udp\"", peer)) !=
           std::string::npos;
  };
  const auto knows_one = [](const NodeAgent& agent) {
    const std::string text = agent.Metrics();
    return text.find("rudderfish_node_peers{node=\"one\"} 1\n") != std::string::npos ||
           text.find("rudderfish_node_peers{node=\"two\"} 1\n") != std::string::npos;
  };
  ASSERT_TRUE(Within10s([&] { return knows_one(**one) && knows_one(**two); }));
  ASSERT_TRUE(Within10s([&] { return measures(**one, "two") || measures(**two, "one"); }));
  EXPECT_NE(measures(**one, "two"), measures(**two, "one"));
}

TEST(NodeAgent, UsersAreMeasuredOrSaidToBeMissing) {
  const SystemClock clock;
  const HeldPort port, user;
  NodeAgentOptions options = Fast("one", port.port());
  options.users = {{"127.0.0.1", user.port(), true}, {"127.0.0.1", 1, true}};
  const auto agent = NodeAgent::Start(options, &clock);
  ASSERT_TRUE(agent);
  ASSERT_TRUE(Within10s([&] { return (*agent)->UserTrips(0).has_value(); }));
  ASSERT_TRUE(Within10s([&] {
    const auto trips = (*agent)->UserTrips(1);
    return !trips && trips.error().message.find("refused") != std::string::npos;
  }));
}

TEST(NodeAgent, NodesThatCannotBeReadAreAnError) {
  const SystemClock clock;
  NodeAgentOptions options = Fast("one", 0);
  options.sources.proc = "/no/such/folder";
  const auto agent = NodeAgent::Start(options, &clock);
  ASSERT_FALSE(agent);
  EXPECT_THAT(agent.error().message, HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace rudderfish
