// SPDX-License-Identifier: Apache-2.0
#include "net/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "net/http_server.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class HttpClientTest : public ::testing::Test {
 protected:
  HttpClientTest() {
    HttpRoutes routes;
    routes.Add("GET", "/hello", [](const HttpRequest& request) {
      return HttpResponse{.body = "hello " + std::string(request.query)};
    });
    routes.Add("POST", "/echo", [](const HttpRequest& request) {
      return HttpResponse{.body = std::string(request.body)};
    });
    routes.Add("GET", "/large",
               [](const HttpRequest&) { return HttpResponse{.body = std::string(100'000, 'x')}; });
    routes.Add("GET", "/never", [this](const HttpRequest&) {
      while (!closing_) std::this_thread::yield();
      return HttpResponse{};
    });
    auto server = HttpServer::Start(
        {.listen = {"127.0.0.1:0"}, .body_limits = {{"/echo", 1 << 20}}}, std::move(routes));
    CHECK(server.has_value());
    server_ = *std::move(server);
  }
  ~HttpClientTest() override { closing_ = true; }

  std::string Url(std::string_view path) const {
    return "http://" + server_->addresses()[0] + std::string(path);
  }

  std::atomic<bool> closing_ = false;
  std::unique_ptr<HttpServer> server_;
  HttpClient client_;
};

TEST_F(HttpClientTest, GetsAndPosts) {
  const auto got = client_.Fetch({.url = Url("/hello?x")});
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "hello x");
  EXPECT_EQ(client_.Fetch({.url = Url("/echo"), .body = "abc"})->body, "abc");
  EXPECT_EQ(client_.Fetch({.url = Url("/nothing")})->status, 404);
}

TEST_F(HttpClientTest, RunsManyAtOnceAndMoreFromTheirCallbacks) {
  int done = 0;
  for (int i = 0; i < 40; ++i) {
    client_.Start({.url = Url("/hello")}, [&](const Result<HttpReply>& reply) {
      EXPECT_TRUE(reply.has_value());
      client_.Start({.url = Url("/hello")}, [&](const Result<HttpReply>&) { ++done; });
    });
  }
  while (client_.Poll(seconds(1)) > 0) {
  }
  EXPECT_EQ(done, 40);
}

TEST_F(HttpClientTest, GivesUpAtTheDeadlineWhileOthersGoOn) {
  std::optional<Result<HttpReply>> slow;
  client_.Start({.url = Url("/never"), .deadline = milliseconds(50)},
                [&](Result<HttpReply> reply) { slow = std::move(reply); });
  while (client_.Poll(seconds(1)) > 0) {
  }
  ASSERT_TRUE(slow.has_value() && !slow->has_value());
  EXPECT_EQ(slow->error().code, ErrorCode::kDeadlineExceeded);
}

TEST_F(HttpClientTest, SaysWhetherAConnectionOrAnAnswerWasLate) {
  const auto why = [this](HttpFetch fetch) {
    fetch.deadline = milliseconds(200);
    const auto reply = client_.Fetch(std::move(fetch));
    return reply ? "" : reply.error().message;
  };
  ASSERT_TRUE(client_.Fetch({.url = Url("/hello")}));
  EXPECT_THAT(why({.url = Url("/never")}),
              EndsWith(": no answer within 0.2 s on a kept connection"));

  // A listener that accepts nothing: once its queue is full, connections wait.
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, at, size), 0);
  ASSERT_EQ(listen(listener, 0), 0);
  ASSERT_EQ(getsockname(listener, at, &size), 0);
  std::vector<int> filling;
  for (int i = 0; i < 4; ++i) {
    filling.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    connect(filling.back(), at, size);
  }
  EXPECT_THAT(why({.url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/"}),
              EndsWith(": no connection within 0.2 s"));
  for (const int one : filling) close(one);
  close(listener);
}

TEST_F(HttpClientTest, RefusesAnswersAboveTheLimit) {
  const auto reply = client_.Fetch({.url = Url("/large"), .body_limit_bytes = 99'999});
  ASSERT_FALSE(reply.has_value());
  EXPECT_THAT(reply.error().message, HasSubstr("larger than 99999 bytes"));
  EXPECT_TRUE(client_.Fetch({.url = Url("/large"), .body_limit_bytes = 100'000}).has_value());
}

TEST_F(HttpClientTest, MessagesKeepSecrets) {
  const std::string port = server_->addresses()[0].substr(10);
  server_->Stop(seconds(1));
  for (const std::string& url :
       {std::string("http://user:secret@127.0.0.1:") + port + "/a?token=secret",
        std::string("file:///etc/hostname"), std::string("secret")}) {
    const auto reply = client_.Fetch(
        {.url = url, .headers = {"Authorization: Bearer secret"}, .deadline = seconds(5)});
    ASSERT_FALSE(reply.has_value());
    EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(reply.error().message.find("Bearer"), std::string::npos);
    EXPECT_EQ(reply.error().message.find("token"), std::string::npos);
  }
  EXPECT_EQ(PublicUrl("https://a:b@c@host:1/p@th?q#f"), "https://host:1/p@th");
  EXPECT_EQ(PublicUrl("http://host"), "http://host");
}

TEST_F(HttpClientTest, ForgetsWhatIsInFlightWhenItEnds) {
  bool called = false;
  {
    HttpClient client;
    client.Start({.url = Url("/hello")}, [&](const Result<HttpReply>&) { called = true; });
    EXPECT_EQ(client.in_flight(), 1);
  }
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace rudderfish
