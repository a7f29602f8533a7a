// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

namespace rudderfish {
namespace {

using std::chrono::milliseconds;

// A socket on a free port of this machine; it listens, or not.
class Port {
 public:
  explicit Port(bool listens) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const SocketAddress any = SocketAddress::Of("127.0.0.1", 0).value();
    EXPECT_EQ(::bind(socket_, any.get(), any.size()), 0);
    if (!listens) return;
    EXPECT_EQ(::listen(socket_, 4), 0);
  }
  ~Port() { ::close(socket_); }
  Port(const Port&) = delete;

  SocketAddress Address() const {
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &size), 0);
    return {reinterpret_cast<const sockaddr*>(&bound), size};
  }

 private:
  int socket_;
};

TEST(AcceptConnections, TellsWhoListensOfSeveralAtOnce) {
  const Port open(true), closed(false), other(true);
  const std::vector<SocketAddress> all{open.Address(), closed.Address(), other.Address()};
  EXPECT_EQ(AcceptConnections(all, milliseconds(2000)), (std::vector<char>{1, 0, 1}));
  EXPECT_TRUE(AcceptConnections({}, milliseconds(10)).empty());
}

// 192.0.2.0/24 is for documents (RFC 5737): nothing answers there, or the network says so.
TEST(AcceptConnections, WhoDoesNotAnswerIsWaitedForNoLongerThanAsked) {
  const std::vector<SocketAddress> silent{SocketAddress::Of("192.0.2.1", 9).value()};
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(AcceptConnections(silent, milliseconds(200)), (std::vector<char>{0}));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(2000));
}

}  // namespace
}  // namespace rudderfish
