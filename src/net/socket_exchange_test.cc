// SPDX-License-Identifier: Apache-2.0
#include "net/socket_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "net/socket_address.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;

// Takes one connection, reads a line and says what it was told; an empty answer: nothing, ever.
class OneAnswer {
 public:
  OneAnswer(int listener, std::string answer)
      : listener_(listener), thread_([this, answer = std::move(answer)] {
          const int peer = ::accept(listener_, nullptr, nullptr);
          char bytes[256];
          const ssize_t count = ::recv(peer, bytes, sizeof bytes, 0);
          heard_.assign(bytes, count > 0 ? static_cast<size_t>(count) : 0);
          if (answer.empty()) {
            (void)::recv(peer, bytes, sizeof bytes, 0);  // Until the other side gives up.
          } else {
            (void)::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
          }
          ::close(peer);
        }) {}
  ~OneAnswer() {
    Join();
    ::close(listener_);
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  const std::string& heard() const { return heard_; }

 private:
  int listener_;
  std::string heard_;
  std::thread thread_;
};

int ListenOnFile(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  return listener;
}

int ListenOnPort(uint16_t* port) {
  const SocketAddress address = SocketAddress::Of("127.0.0.1", 0).value();
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::bind(listener, address.get(), address.size()), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size), 0);
  *port = ntohs(bound.sin_port);
  return listener;
}

TEST(SocketExchange, AsksAFileAndAPort) {
  const TestFolder folder;
  const std::string path = (folder.path() / "s.sock").string();
  {
    OneAnswer server(ListenOnFile(path), "forty\n");
    EXPECT_EQ(SocketExchange(path, "how many\n", std::chrono::seconds(5), 100).value(), "forty\n");
    server.Join();
    EXPECT_EQ(server.heard(), "how many\n");
  }
  uint16_t port = 0;
  OneAnswer server(ListenOnPort(&port), "two\n");
  EXPECT_EQ(SocketExchange("127.0.0.1:" + std::to_string(port), "?\n", std::chrono::seconds(5), 100)
                .value(),
            "two\n");
}

TEST(SocketExchange, IsBounded) {
  const TestFolder folder;
  const std::string path = (folder.path() / "s.sock").string();
  {
    OneAnswer server(ListenOnFile(path), std::string(200, 'x'));
    const auto answer = SocketExchange(path, "?\n", std::chrono::seconds(5), 100);
    ASSERT_FALSE(answer.has_value());
    EXPECT_THAT(answer.error().message, HasSubstr("answered more than 100 bytes"));
  }
  ::unlink(path.c_str());
  OneAnswer silent(ListenOnFile(path), "");
  const auto answer = SocketExchange(path, "?\n", std::chrono::milliseconds(50), 100);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded);
}

TEST(SocketExchange, SaysThatNothingListens) {
  const auto refusal = [](const std::string& address) {
    return SocketExchange(address, "?\n", std::chrono::seconds(1), 100).error().message;
  };
  EXPECT_EQ(refusal("/no/such.sock"), "/no/such.sock: nothing listens there");
  EXPECT_EQ(refusal("127.0.0.1:1"), "127.0.0.1:1: nothing listens there");
  EXPECT_EQ(refusal("localhost"),
            "localhost: expected HOST:PORT, or the path of a socket with a slash in it");
  EXPECT_THAT(refusal("/" + std::string(200, 'x')), HasSubstr("is too long for a socket"));
}

}  // namespace
}  // namespace rudderfish
