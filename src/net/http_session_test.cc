// SPDX-License-Identifier: Apache-2.0
#include "net/http_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/check.h"
#include "tests/support/raw_http.h"

// How long connections live; what is said over them is tested by net/http_server_test.cc.

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using testing::Fetch;
using testing::RawConnection;

std::unique_ptr<HttpServer> Serving(HttpServerOptions options) {
  HttpRoutes routes;
  routes.Add("GET", "/hello", [](const HttpRequest& request) {
    return HttpResponse{.content_type = "text/plain",
                        .body = "hello " + std::string(request.query)};
  });
  routes.Add("POST", "/echo", [](const HttpRequest& request) {
    return HttpResponse{.content_type = "text/plain", .body = std::string(request.body)};
  });
  options.listen = {"127.0.0.1:0"};
  options.body_limits = {{"/echo", 1000}};
  auto server = HttpServer::Start(options, std::move(routes));
  CHECK(server.has_value());
  return *std::move(server);
}

TEST(HttpSession, ClosesWhatIsTooSlowToAsk) {
  const auto server = Serving({.request_limit = milliseconds(50)});
  for (const char* half : {"GET /hello HTTP/1.1\r\nHost",
                           "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"}) {
    RawConnection connection(server->addresses()[0]);
    connection.Send(half);
    EXPECT_TRUE(connection.AtEnd()) << half;
  }
}

TEST(HttpSession, ClosesConnectionsThatAreIdle) {
  const auto server = Serving({.idle_limit = milliseconds(50)});
  RawConnection connection(server->addresses()[0]);
  EXPECT_TRUE(connection.AtEnd());
}

// Connections of a server that has room for so many.
class Crowded : public ::testing::Test {
 protected:
  std::unique_ptr<RawConnection> Connect() {
    return std::make_unique<RawConnection>(server_->addresses()[0]);
  }
  // One of which the server has seen what was sent.
  std::unique_ptr<RawConnection> ConnectAndAsk() {
    auto connection = Connect();
    connection->Send("GET /hello?1 HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(connection->Receive(), EndsWith("hello 1"));
    return connection;
  }
  bool IsServed(RawConnection* connection) {
    connection->Send("GET /hello?on HTTP/1.1\r\nHost: x\r\n\r\n");
    return connection->Receive().ends_with("hello on");
  }

  std::unique_ptr<HttpServer> server_ = Serving({.threads = 1, .connections_max = 3});
};

TEST_F(Crowded, TheOneThatHasBeenSilentLongestIsClosedForANewOne) {
  const auto first = ConnectAndAsk(), second = ConnectAndAsk(), third = ConnectAndAsk();
  EXPECT_TRUE(IsServed(first.get()));  // Now the second has been silent longest.
  const auto fourth = ConnectAndAsk();
  EXPECT_TRUE(second->AtEnd());
  EXPECT_TRUE(IsServed(first.get()));
  EXPECT_TRUE(IsServed(third.get()));
  EXPECT_TRUE(IsServed(fourth.get()));
}

TEST_F(Crowded, AClientThatOnlyHoldsConnectionsKeepsNoOtherOut) {
  std::vector<std::unique_ptr<RawConnection>> held;
  for (int i = 0; i < 50; ++i) held.push_back(Connect());
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(Fetch(server_->addresses()[0], "/hello?probe"), EndsWith("hello probe"));
  for (int i = 0; i < 46; ++i) EXPECT_TRUE(held[i]->AtEnd()) << i;
}

TEST_F(Crowded, HalfARequestStaysBeforeSilentConnections) {
  const auto half = Connect();
  half->Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nha");
  const auto second = ConnectAndAsk();
  for (int i = 0; i < 10; ++i) ConnectAndAsk();
  half->Send("lf");
  EXPECT_THAT(half->Receive(), EndsWith("half"));
}

TEST_F(Crowded, HalvesOfRequestsKeepNoOtherClientOut) {
  std::vector<std::unique_ptr<RawConnection>> halves;
  for (int i = 0; i < 20; ++i) {
    halves.push_back(Connect());
    halves.back()->Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nha");
  }
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(Fetch(server_->addresses()[0], "/hello?probe"), EndsWith("hello probe"));
  EXPECT_TRUE(halves[0]->AtEnd());
}

}  // namespace
}  // namespace rudderfish
