// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_check.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
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
  EXPECT_EQ(AcceptConnections(all, milliseconds(2000)).value(), (std::vector<char>{1, 0, 1}));
  EXPECT_TRUE(AcceptConnections({}, milliseconds(10))->empty());
}

TEST(AcceptConnections, ManyAreAskedInLotsAndWithoutSocketsNothingIsKnown) {
  const Port open(true), closed(false);
  std::vector<SocketAddress> many(2 * kChecksAtOnce + 1, closed.Address());
  many.back() = open.Address();
  const std::vector<char> accepted = AcceptConnections(many, milliseconds(2000)).value();
  ASSERT_EQ(accepted.size(), many.size());
  EXPECT_EQ(std::count(accepted.begin(), accepted.end(), 1), 1);
  EXPECT_EQ(accepted.back(), 1);

  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto none = AcceptConnections(many, milliseconds(100));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
}

// 192.0.2.0/24 is for documents (RFC 5737): nothing answers there, or the network says so.
TEST(AcceptConnections, WhoDoesNotAnswerIsWaitedForNoLongerThanAsked) {
  const std::vector<SocketAddress> silent{SocketAddress::Of("192.0.2.1", 9).value()};
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(AcceptConnections(silent, milliseconds(200)).value(), (std::vector<char>{0}));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(2000));
}

}  // namespace
}  // namespace rudderfish
