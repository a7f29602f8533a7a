// SPDX-License-Identifier: Apache-2.0
#include "net/stream_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/metrics.h"
#include "net/stream_server.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class StreamRequestTest : public ::testing::Test {
 protected:
  StreamPeer Serve(StreamHandler handler) {
    auto started = StreamServer::Start({.wire = "test", .listen = {"127.0.0.1:0"}}, &metrics_,
                                       std::move(handler));
    EXPECT_TRUE(started) << started.error().message;
    server_ = *std::move(started);
    return *ParseStreamPeer(server_->addresses()[0]);
  }

  MetricRegistry metrics_;
  std::unique_ptr<StreamServer> server_;
};

TEST_F(StreamRequestTest, ReturnsAllUpToTheEnd) {
  const std::string sent = std::string(200'000, 'x') + "\n";
  StreamServerOptions options{.wire = "test", .listen = {"127.0.0.1:0"}};
  options.request_limit_bytes = 1 << 20;
  auto server = StreamServer::Start(
      options, &metrics_,
      [](std::string_view received, StreamEvent) -> std::optional<StreamAnswer> {
        if (!received.ends_with('\n')) return std::nullopt;
        return StreamAnswer{.bytes = "<" + std::string(received) + ">"};
      });
  ASSERT_TRUE(server);
  const StreamPeer peer = *ParseStreamPeer((*server)->addresses()[0]);
  const auto answer = AskStream(peer, sent, milliseconds(10'000), 1 << 20);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, "<" + sent + ">");
}

TEST_F(StreamRequestTest, AnswersAreBounded) {
  const StreamPeer peer = Serve(
      [](std::string_view, StreamEvent) { return StreamAnswer{.bytes = std::string(5000, 'x')}; });
  const auto answer = AskStream(peer, "a\n", milliseconds(10'000), 4999);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("answers more than 4999 bytes"));
}

TEST_F(StreamRequestTest, SilenceEnds) {
  const StreamPeer peer =
      Serve([](std::string_view, StreamEvent) { return std::optional<StreamAnswer>(); });
  const auto answer = AskStream(peer, "a\n", milliseconds(50), 100);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded);
}

TEST_F(StreamRequestTest, SaysThatNothingListens) {
  StreamPeer peer =
      Serve([](std::string_view, StreamEvent) { return std::optional<StreamAnswer>(); });
  server_ = nullptr;
  for (const StreamPeer& at : {peer, StreamPeer{.path = "/nonexistent/x", .address = {}}}) {
    const auto made = ConnectStream(at, milliseconds(1000));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kNotFound) << made.error().message;
    EXPECT_THAT(made.error().message, HasSubstr(at.Text() + ": nothing listens there"));
  }
  EXPECT_THAT(ConnectStream({.path = std::string(200, 'x'), .address = {}}, milliseconds(1000))
                  .error()
                  .message,
              HasSubstr("too long for a socket"));
}

TEST(StreamPeer, IsAPathOrAnAddress) {
  EXPECT_EQ(ParseStreamPeer("/run/x.sock")->path, "/run/x.sock");
  EXPECT_EQ(ParseStreamPeer("./x.sock")->path, "./x.sock");
  EXPECT_EQ(ParseStreamPeer("localhost:90")->address.port, 90);
  for (const char* text : {"localhost", "", ":"}) EXPECT_FALSE(ParseStreamPeer(text)) << text;
}

}  // namespace
}  // namespace rudderfish
