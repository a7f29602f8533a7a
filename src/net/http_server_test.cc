// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "tests/support/raw_http.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::EndsWith;
using testing::Fetch;
using ::testing::HasSubstr;
using testing::RawConnection;
using ::testing::StartsWith;

HttpRoutes Echo() {
  HttpRoutes routes;
  routes.Add("GET", "/hello", [](const HttpRequest& request) {
    return HttpResponse{.content_type = "text/plain",
                        .body = "hello " + std::string(request.query)};
  });
  routes.Add("POST", "/echo", [](const HttpRequest& request) {
    return HttpResponse{.content_type = std::string(request.content_type),
                        .body = std::string(request.body)};
  });
  return routes;
}

std::unique_ptr<HttpServer> Started(HttpServerOptions options, HttpHandler handler = Echo()) {
  if (options.listen.empty()) options.listen = {"127.0.0.1:0"};
  if (options.body_limits.empty()) options.body_limits = {{"/echo", 1 << 20}};
  auto server = HttpServer::Start(options, std::move(handler));
  CHECK(server.has_value());
  return *std::move(server);
}

std::string SocketPath() {
  return (std::filesystem::path(::testing::TempDir()) / fmt::format("http-{}.sock", ::getpid()))
      .string();
}

TEST(HttpServer, AnswersSeveralRequestsOnOneConnection) {
  const auto server = Started({});
  RawConnection connection(server->addresses()[0]);
  for (int i = 0; i < 3; ++i) {
    connection.Send(fmt::format("GET /hello?{} HTTP/1.1\r\nHost: x\r\n\r\n", i));
    const std::string response = connection.Receive();
    EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"));
    EXPECT_THAT(response, EndsWith(fmt::format("\r\n\r\nhello {}", i)));
  }
}

TEST(HttpServer, AnswersRequestsThatArriveTogetherInTheirOrder) {
  const auto server = Started({});
  RawConnection connection(server->addresses()[0]);
  connection.Send(
      "GET /hello?1 HTTP/1.1\r\nHost: x\r\n\r\nGET /hello?2 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(connection.Receive(), EndsWith("hello 1"));
  EXPECT_THAT(connection.Receive(), EndsWith("hello 2"));
}

TEST(HttpServer, ListensOnAUnixSocketOfItsOwnerOnly) {
  const std::string path = SocketPath();
  {
    const auto server = Started({.listen = {"unix:" + path, "127.0.0.1:0"}});
    EXPECT_THAT(Fetch("unix:" + path, "/hello?u"), EndsWith("hello u"));
    EXPECT_THAT(Fetch(server->addresses()[1], "/hello?t"), EndsWith("hello t"));
    EXPECT_EQ(std::filesystem::status(path).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    const auto second = HttpServer::Start({.listen = {"unix:" + path}}, Echo());
    ASSERT_FALSE(second.has_value());
    EXPECT_THAT(second.error().message, HasSubstr("another process listens"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(HttpServer, TakesTheSocketOfAServerThatWasKilled) {
  const std::string path = SocketPath();
  {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, path.c_str(), sizeof at.sun_path - 1);
    const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::bind(left, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    ::close(left);
  }
  const auto server = Started({.listen = {"unix:" + path}});
  EXPECT_THAT(Fetch("unix:" + path, "/hello?again"), EndsWith("hello again"));
}

TEST(HttpServer, RefusesAddressesThatAreNone) {
  for (const char* text : {"", "5000", "localhost", "localhost:", "example:80", "1.2.3.4:70000",
                           "::1:80", "unix:", "127.0.0.1:8x"}) {
    const auto server = HttpServer::Start({.listen = {text}}, Echo());
    ASSERT_FALSE(server.has_value()) << text;
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument) << text;
  }
  const auto taken = Started({});
  const auto second = HttpServer::Start({.listen = taken->addresses()}, Echo());
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("in use"));
}

TEST(HttpServer, SaysWhatIsNotThereAndWhatAPathTakes) {
  const auto server = Started({});
  EXPECT_THAT(
      Fetch(server->addresses()[0], "/nothing"),
      AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("{\"message\":\"nothing at /nothing\"")));
  EXPECT_THAT(Fetch(server->addresses()[0], "/echo"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: POST\r\n")));
}

TEST(HttpServer, AnswersHeadLikeGetWithoutTheBody) {
  const auto server = Started({});
  RawConnection connection(server->addresses()[0]);
  connection.Send("HEAD /hello?12 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(connection.Receive(false),
              AllOf(HasSubstr("Content-Length: 8\r\n"), EndsWith("\r\n\r\n")));
  connection.Send("GET /hello?on HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(connection.Receive(), EndsWith("hello on"));
}

TEST(HttpServer, TakesBodiesInChunksAndThoseThatWaitForLeave) {
  const auto server = Started({});
  RawConnection connection(server->addresses()[0]);
  connection.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_THAT(connection.Receive(), EndsWith("abcde"));
  connection.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(connection.Receive(false), StartsWith("HTTP/1.1 100 "));
  connection.Send("ok");
  EXPECT_THAT(connection.Receive(), EndsWith("\r\n\r\nok"));
}

// What is sent, and the status it must get. The connection is closed after each.
TEST(HttpServer, AnswersWhatBreaksABoundAndTellsItAndCloses) {
  std::mutex mutex;
  std::vector<std::string> told;
  const auto server = Started({.header_limit_bytes = 1024,
                               .body_limits = {{"/echo", 100}, {"/large", 10'000}},
                               .request_limit = milliseconds(200),
                               .rejected = [&](std::string_view path, int status) {
                                 const std::lock_guard lock(mutex);
                                 told.push_back(fmt::format("{} {}", path, status));
                               }});
  const std::pair<std::string, std::string> cases[] = {
      {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n" + std::string(101, 'x'),
       "413"},
      {"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" +
           std::string(255, 'x') + "\r\n0\r\n\r\n",
       "413"},
      {"GET /hello HTTP/1.1\r\nHost: x\r\nX: " + std::string(5000, 'x') + "\r\n\r\n", "431"},
      {"GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", "413"},
      {"POST /other HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
       "413"},
      {"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;" +
           std::string(1 << 20, 'x'),
       "413"},
      {"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " +
           std::string(1 << 20, 'x'),
       "413"},
      {"this is not HTTP\r\n\r\n", "400"},
      {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"},
  };
  for (const auto& [sent, status] : cases) {
    RawConnection connection(server->addresses()[0]);
    connection.Send(sent);
    const std::string response = connection.Receive();
    EXPECT_THAT(response, StartsWith("HTTP/1.1 " + status)) << sent.substr(0, 80);
    EXPECT_THAT(response, HasSubstr("\"status\":\"error\"")) << sent.substr(0, 80);
    EXPECT_TRUE(connection.AtEnd());
  }
  EXPECT_THAT(Fetch(server->addresses()[0], "/hello?still"), EndsWith("hello still"));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(told.size(), std::size(cases));
  for (size_t i = 0; i < told.size(); ++i) EXPECT_THAT(told[i], EndsWith(" " + cases[i].second));
  EXPECT_EQ(told[0], "/echo 413");
}

// Half of a body that is held until the connection ends.
std::string HalfABody(size_t bytes) {
  return fmt::format("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", 2 * bytes,
                     std::string(bytes, 'x'));
}

TEST(HttpServer, BodiesOfAllConnectionsHaveOneBudget) {
  const auto server = Started({.body_limits = {{"/echo", 1000}}, .memory_limit_bytes = 1000});
  const std::string address = server->addresses()[0];
  {
    RawConnection first(address), second(address);
    first.Send(HalfABody(400));
    second.Send(HalfABody(400));
    std::string answer;
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    // Until both halves are held.
    while (!answer.starts_with("HTTP/1.1 503") && std::chrono::steady_clock::now() < end) {
      RawConnection third(address);
      third.Send(HalfABody(400) + std::string(400, 'x'));
      answer = third.Receive();
      if (answer.starts_with("HTTP/1.1 503")) {
        EXPECT_THAT(answer, HasSubstr("Connection: close"));
        EXPECT_TRUE(third.AtEnd());
      }
    }
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
    EXPECT_THAT(Fetch(address, "/hello?small"), EndsWith("hello small"));
  }
  // What they held is free again.
  for (int i = 0; i < 20; ++i) {
    RawConnection later(address);
    later.Send(HalfABody(400) + std::string(400, 'x'));
    const std::string answer = later.Receive();
    if (answer.starts_with("HTTP/1.1 200")) return;
    std::this_thread::sleep_for(milliseconds(50));
  }
  FAIL() << "the budget did not come back";
}

TEST(HttpServer, AnAnswerBeyondTheBudgetIs503) {
  const auto server = Started({.memory_limit_bytes = 1000}, [](const HttpRequest& request) {
    return HttpResponse{.body = std::string(request.path == "/large" ? 1001 : 999, 'x')};
  });
  EXPECT_THAT(Fetch(server->addresses()[0], "/large"), StartsWith("HTTP/1.1 503"));
  // What an answer held is given back once it is sent, of which its client may know first.
  for (int i = 0; i < 3; ++i) {
    std::string answer = Fetch(server->addresses()[0], "/small");
    for (int tries = 0; tries < 500 && !answer.starts_with("HTTP/1.1 200"); ++tries) {
      std::this_thread::sleep_for(milliseconds(10));
      answer = Fetch(server->addresses()[0], "/small");
    }
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  }
}

TEST(HttpServer, KeepsAWorkersStateOnItsThread) {
  constexpr int kThreads = 3, kClients = 12, kRequests = 50;
  std::vector<int> counts(kThreads, 0);  // Without locks.
  std::vector<std::thread::id> ids(kThreads);
  const auto server = Started({.threads = kThreads}, [&](const HttpRequest& request) {
    if (counts[request.worker]++ == 0) ids[request.worker] = std::this_thread::get_id();
    const bool same = ids[request.worker] == std::this_thread::get_id();
    return HttpResponse{.body = same ? "same" : "another"};
  });
  std::vector<std::thread> clients;
  std::atomic<int> good = 0;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&] {
      RawConnection connection(server->addresses()[0]);
      for (int i = 0; i < kRequests; ++i) {
        connection.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        good += connection.Receive().ends_with("same");
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, kClients * kRequests);
  EXPECT_TRUE(server->Stop(seconds(10)));
  EXPECT_EQ(counts[0] + counts[1] + counts[2], kClients * kRequests);
  for (int count : counts) EXPECT_EQ(count, kClients / kThreads * kRequests);
}

// A handler that waits until it is let go.
class Gate {
 public:
  HttpResponse Pass() {
    std::unique_lock lock(mutex_);
    ++entered_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    return {.body = "through"};
  }
  void AwaitEntry() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_ > 0; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int entered_ = 0;
  bool open_ = false;
};

TEST(HttpServer, FinishesWhatHasBegunWhenItIsStopped) {
  Gate gate;
  const auto server = Started({}, [&](const HttpRequest&) { return gate.Pass(); });
  const std::string address = server->addresses()[0];
  RawConnection idle(address), busy(address);
  busy.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  gate.AwaitEntry();
  std::atomic<bool> clean = false;
  std::thread stopping([&] { clean = server->Stop(seconds(30)); });
  while (RawConnection(address).connected()) {
  }
  gate.Open();
  EXPECT_THAT(busy.Receive(), AllOf(HasSubstr("Connection: close"), EndsWith("through")));
  stopping.join();
  EXPECT_TRUE(clean);
  EXPECT_TRUE(idle.AtEnd());
}

TEST(HttpServer, CutsAfterTheDeadlineWhatDoesNotEnd) {
  const auto server = Started({});
  RawConnection slow(server->addresses()[0]);
  slow.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhal");
  EXPECT_THAT(Fetch(server->addresses()[0], "/hello?x"), EndsWith("hello x"));
  EXPECT_FALSE(server->Stop(milliseconds(20))) << "half a request counted as idle";
  EXPECT_TRUE(slow.AtEnd());
}

TEST(HttpServer, AnswersAThrowingHandlerWith500) {
  const auto server =
      Started({}, [](const HttpRequest&) -> HttpResponse { throw std::bad_alloc(); });
  EXPECT_THAT(Fetch(server->addresses()[0], "/"), StartsWith("HTTP/1.1 500 "));
}

TEST(HttpMessage, ErrorIsJsonWhateverItHolds) {
  EXPECT_EQ(HttpError(400, "a \"b\"\n").body,
            "{\"message\":\"a \\\"b\\\"\\n\",\"status\":\"error\"}\n");
  EXPECT_THAT(HttpError(400, "\xff").body, HasSubstr("\\ufffd"));
}

}  // namespace
}  // namespace rudderfish
