// SPDX-License-Identifier: Apache-2.0
#include "net/stream_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "net/socket_address.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class Connection {
 public:
  explicit Connection(const std::string& address) {
    const HostAndPort where = *ParseHostAndPort(address);
    const SocketAddress to = *SocketAddress::Of(where.host, where.port);
    file_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(file_, to.get(), to.size()), 0);
  }
  ~Connection() { ::close(file_); }

  void Send(std::string_view text) const {
    EXPECT_EQ(::send(file_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  void EndSending() const { ::shutdown(file_, SHUT_WR); }
  std::string Read(size_t bytes) const {
    std::string text;
    char room[4096];
    while (text.size() < bytes) {
      const ssize_t count = ::recv(file_, room, std::min(sizeof room, bytes - text.size()), 0);
      if (count <= 0) break;
      text.append(room, static_cast<size_t>(count));
    }
    return text;
  }
  std::string ReadAll() const { return Read(size_t{1} << 30); }

 private:
  int file_;
};

StreamServerOptions OptionsOf() {
  return {.wire = "test", .listen = {"127.0.0.1:0"}, .quiet = milliseconds(30)};
}

class StreamServerTest : public ::testing::Test {
 protected:
  void Start(const StreamServerOptions& options, StreamHandler handler) {
    auto started = StreamServer::Start(options, &metrics_, std::move(handler));
    ASSERT_TRUE(started) << started.error().message;
    server_ = *std::move(started);
  }
  std::string address() const { return server_->addresses()[0]; }
  bool Counted(std::string_view end, int count) const {
    const std::string line = fmt::format(
        "rudderfish_stream_connections_total{{end=\"{}\",wire=\"test\"}} {}\n", end, count);
    const SystemClock clock;
    const Instant late = clock.Now() + seconds(10);
    while (metrics_.Text().find(line) == std::string::npos) {
      if (clock.Now() > late) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
  }

  MetricRegistry metrics_;
  std::unique_ptr<StreamServer> server_;
};

std::optional<StreamAnswer> EchoLine(std::string_view received, StreamEvent event) {
  if (event == StreamEvent::kBytes && !received.ends_with('\n')) return std::nullopt;
  return StreamAnswer{.bytes = fmt::format("<{}>", received)};
}

TEST_F(StreamServerTest, AnswersWhenTheHandlerSaysSo) {
  Start(OptionsOf(), EchoLine);
  const Connection parts(address());
  parts.Send("a");
  parts.Send("b\n");
  EXPECT_EQ(parts.ReadAll(), "<ab\n>");
  const Connection ended(address());
  ended.Send("c");
  ended.EndSending();
  EXPECT_EQ(ended.ReadAll(), "<c>");
  const Connection quiet(address());
  quiet.Send("d");
  EXPECT_EQ(quiet.ReadAll(), "<d>");
  EXPECT_TRUE(Counted("served", 3));
}

TEST_F(StreamServerTest, WhatIsSentAfterTheAnswerDoesNotSpoilIt) {
  Start(OptionsOf(), [](std::string_view, StreamEvent) { return StreamAnswer{.bytes = "early"}; });
  const Connection connection(address());
  connection.Send("a");
  std::this_thread::sleep_for(milliseconds(20));
  connection.Send("b");
  EXPECT_EQ(connection.ReadAll(), "early");
}

TEST_F(StreamServerTest, ConnectionsMayGoOn) {
  Start(OptionsOf(), [](std::string_view, StreamEvent) {
    return StreamAnswer{.bytes = "(1.0)", .after = StreamAnswer::After::kKeep};
  });
  const Connection connection(address());
  for (int i = 0; i < 3; ++i) {
    connection.Send("getState");
    EXPECT_EQ(connection.Read(5), "(1.0)");
  }
}

TEST_F(StreamServerTest, WhoSendsTooMuchOrTooSlowlyIsDropped) {
  StreamServerOptions options = OptionsOf();
  options.request_limit_bytes = 100;
  options.request_limit = milliseconds(200);
  options.idle_limit = milliseconds(200);
  Start(options, [](std::string_view, StreamEvent) { return std::optional<StreamAnswer>(); });
  const Connection large(address());
  large.Send(std::string(101, 'x'));
  EXPECT_EQ(large.ReadAll(), "");
  EXPECT_TRUE(Counted("large", 1));
  const Connection slow(address()), idle(address());
  slow.Send("x");
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_TRUE(Counted("slow", 2));
}

TEST_F(StreamServerTest, AClientThatNeverReadsIsDroppedAndOthersAreServed) {
  StreamServerOptions options = OptionsOf();
  options.request_limit = milliseconds(300);
  Start(options, [](std::string_view received, StreamEvent) {
    return StreamAnswer{.bytes = std::string(received.starts_with("big") ? 32 << 20 : 2, 'a')};
  });
  const Connection deaf(address());
  deaf.Send("big");
  const Connection other(address());
  other.Send("x");
  EXPECT_EQ(other.ReadAll(), "aa");
  EXPECT_TRUE(Counted("slow", 1));
}

TEST_F(StreamServerTest, IdleConnectionsMakeRoomForNewOnes) {
  StreamServerOptions options = OptionsOf();
  options.connections_max = 2;
  options.idle_limit = Duration(0);
  Start(options, [](std::string_view, StreamEvent) {
    return StreamAnswer{.bytes = "y", .after = StreamAnswer::After::kKeep};
  });
  const Connection first(address());
  first.Send("x");
  EXPECT_EQ(first.Read(1), "y");
  const Connection second(address()), third(address());
  third.Send("x");
  EXPECT_EQ(third.Read(1), "y");
  EXPECT_EQ(first.ReadAll(), "");
  EXPECT_TRUE(Counted("full", 1));
}

TEST_F(StreamServerTest, AddressesThatCannotBeHadAreAnError) {
  Start(OptionsOf(), EchoLine);
  StreamServerOptions options = OptionsOf();
  options.listen = {address()};
  const auto second = StreamServer::Start(options, &metrics_, EchoLine);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("cannot listen on"));
  options.listen = {"unix:/tmp/x"};
  EXPECT_FALSE(StreamServer::Start(options, &metrics_, EchoLine));
}

}  // namespace
}  // namespace rudderfish
