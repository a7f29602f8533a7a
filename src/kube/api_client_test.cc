// SPDX-License-Identifier: Apache-2.0
#include "kube/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>
#include <set>

#include "base/files.h"
#include "tests/support/faulty_server.h"
#include "tests/support/polling.h"

namespace rudderfish::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Connection;
using testing::FaultyServer;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::SeenRequest;
using testing::Transport;

using testing::Eventually;
using testing::OpenClient;
using testing::QuickOptions;
using testing::RealClock;

std::unique_ptr<ApiClient> Open(const FaultyServer& server,
                                const ApiClientOptions& options = QuickOptions()) {
  return OpenClient(ClusterAccess{.server = server.url()}, options);
}

// Answers with these, one after another, the last one for ever.
FaultyServer::Handler Statuses(std::vector<int> statuses, std::string headers = "") {
  return [statuses = std::move(statuses), headers](const SeenRequest& request, Connection* to) {
    const size_t at = std::min<size_t>(request.number, statuses.size() - 1);
    to->Answer(statuses[at], "{\"n\":" + std::to_string(request.number) + "}", headers);
  };
}

TEST(ApiClient, KeepsItsConnectionAndSaysWhoItIs) {
  FaultyServer server(Statuses({200}));
  ClusterAccess access{.server = server.url(), .token = "open-sesame", .as_user = "anna"};
  access.as_groups = {"builders"};
  const auto client = OpenClient(access);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(client->Get("/version").has_value());
  EXPECT_EQ(server.connections(), 1);
  const std::string head = server.requests()[0].head;
  EXPECT_THAT(head, HasSubstr("User-Agent: rudderfish\r\n"));
  EXPECT_THAT(head, HasSubstr("Authorization: Bearer open-sesame\r\n"));
  EXPECT_THAT(head, HasSubstr("Impersonate-User: anna\r\n"));
  EXPECT_THAT(head, HasSubstr("Impersonate-Group: builders\r\n"));
}

TEST(ApiClient, MethodsCarryTheirContentTypes) {
  FaultyServer server(Statuses({200}));
  const auto client = Open(server);
  const std::pair<Method, const char*> methods[] = {
      {Method::kPost, "POST|application/json"},
      {Method::kPut, "PUT|application/json"},
      {Method::kMergePatch, "PATCH|application/merge-patch+json"},
      {Method::kJsonPatch, "PATCH|application/json-patch+json"},
      {Method::kApply, "PATCH|application/apply-patch+yaml"}};
  for (const auto& [method, expected] : methods) {
    EXPECT_TRUE(client->Call({.method = method, .path = "/x", .body = "{}"}).ok());
    const SeenRequest request = server.requests().back();
    EXPECT_EQ(request.body, "{}");
    EXPECT_THAT(request.method + "|" + request.head,
                HasSubstr(std::string(expected).substr(0, std::string(expected).find('|'))));
    EXPECT_THAT(request.head,
                HasSubstr("Content-Type: " +
                          std::string(expected).substr(std::string(expected).find('|') + 1)));
  }
  EXPECT_TRUE(client->Call({.method = Method::kDelete, .path = "/x"}).ok());
  EXPECT_EQ(server.requests().back().method, "DELETE");
  EXPECT_THAT(server.requests().back().head, Not(HasSubstr("Content-Type")));
}

TEST(ApiClient, RepeatsWhatMayBeRepeatedAfterServerErrors) {
  FaultyServer server(Statuses({500, 503, 200}));
  const auto client = Open(server);
  EXPECT_EQ(client->Get("/x"), "{\"n\":2}");
  EXPECT_EQ(client->counts().retries, 2);
}

TEST(ApiClient, NeverRepeatsAPostThatMayHaveBeenDone) {
  FaultyServer server(Statuses({500, 200}));
  const auto client = Open(server);
  EXPECT_EQ(client->Call({.method = Method::kPost, .path = "/x", .body = "{}"}).status.code, 500);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(ApiClient, RepeatsAPostThatWasThrottled) {
  FaultyServer server(Statuses({429, 200}));
  const auto client = Open(server);
  EXPECT_TRUE(client->Call({.method = Method::kPost, .path = "/x", .body = "{}"}).ok());
  EXPECT_EQ(client->counts().throttled, 1);
}

TEST(ApiClient, TakesA429AsAnAnswerWhereItIsOne) {
  FaultyServer server(Statuses({429, 200}));
  const auto client = Open(server);
  const ApiAnswer answer =
      client->Call({.method = Method::kPost, .path = "/x", .body = "{}", .repeat = Repeat::kNever});
  EXPECT_EQ(answer.status.code, 429);
}

TEST(ApiClient, WaitsAsLongAsRetryAfterSays) {
  FaultyServer server(Statuses({429, 200}, "Retry-After: 1\r\n"));
  const auto client = Open(server);
  const Instant begin = RealClock().Now();
  EXPECT_TRUE(client->Get("/x").has_value());
  EXPECT_GE(RealClock().Now() - begin, seconds(1));
}

TEST(ApiClient, GivesUpAtOnceWhenRetryAfterIsBeyondTheDeadline) {
  FaultyServer server(Statuses({429}, "Retry-After: 60\r\n"));
  const auto client = Open(server);
  const ApiAnswer answer = client->Call({.path = "/x", .deadline = seconds(5)});
  EXPECT_EQ(answer.outcome.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(answer.status.retry_after, seconds(60));
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(ApiClient, GivesUpAfterSomeAttempts) {
  FaultyServer server(Statuses({500}));
  const auto client = Open(server);
  EXPECT_FALSE(client->Get("/x").has_value());
  EXPECT_EQ(server.requests().size(), 5u);
}

TEST(ApiClient, RepeatsAfterAConnectionWasReset) {
  FaultyServer server([](const SeenRequest& request, Connection* to) {
    if (request.number == 0) {
      to->Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it");
      to->Reset();
    } else {
      to->Answer(200, "{}");
    }
  });
  const auto client = Open(server);
  EXPECT_EQ(client->Get("/x"), "{}");
}

TEST(ApiClient, EndsARequestThatGetsNoAnswerAtItsDeadline) {
  FaultyServer server([](const SeenRequest&, Connection* to) { to->Hang(); });
  const auto client = Open(server);
  const ApiAnswer answer = client->Call({.path = "/api/v1/nodes", .deadline = milliseconds(100)});
  EXPECT_EQ(answer.outcome.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(answer.outcome.error().message, HasSubstr("/api/v1/nodes: no answer in time"));
}

TEST(ApiClient, SaysThatNoServerListens) {
  std::string url;
  {
    FaultyServer server(Statuses({200}));
    url = server.url();
  }
  const auto client = OpenClient(ClusterAccess{.server = url});
  const auto answer = client->Get("/version");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(answer.error().message, url + "/version: cannot connect: Connection refused");
}

TEST(ApiClient, SendsNoMoreThanItsLimitAtATime) {
  std::atomic<int> now = 0, most = 0;
  FaultyServer server([&](const SeenRequest&, Connection* to) {
    most = std::max(most.load(), ++now);
    std::this_thread::sleep_for(milliseconds(5));
    --now;
    to->Answer(200, "{}");
  });
  ApiClientOptions options = QuickOptions();
  options.requests_max = 3;
  const auto client = Open(server, options);
  int done = 0;
  for (int i = 0; i < 20; ++i) client->Send({.path = "/x"}, [&](const ApiAnswer&) { ++done; });
  EXPECT_TRUE(Eventually(client.get(), [&] { return done == 20; }));
  EXPECT_LE(most, 3);
  most = done = 0;
  client->SetRequestsMax(1);
  for (int i = 0; i < 5; ++i) client->Send({.path = "/x"}, [&](const ApiAnswer&) { ++done; });
  EXPECT_TRUE(Eventually(client.get(), [&] { return done == 5; }));
  EXPECT_EQ(most, 1);
}

TEST(ApiClient, WhatHasItsOwnRoomWaitsForNoOther) {
  FaultyServer server([](const SeenRequest& request, Connection* to) {
    if (request.target != "/own") to->Hang();
    to->Answer(200, "{}");
  });
  ApiClientOptions options = QuickOptions();
  options.requests_max = 2;
  const auto client = Open(server, options);
  for (int i = 0; i < 20; ++i) client->Send({.path = "/x"}, nullptr);
  client->Poll(milliseconds(1));
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(client->Call({.path = "/own", .deadline = seconds(10), .room = Room::kOwn}).ok());
  EXPECT_EQ(server.connections(), 3);
}

TEST(ApiClient, CancelledRequestsNeverAnswer) {
  FaultyServer server(Statuses({200}));
  const auto client = Open(server);
  bool answered = false;
  const ApiClient::Id id = client->Send({.path = "/x"}, [&](const ApiAnswer&) { answered = true; });
  client->Cancel(id);
  EXPECT_TRUE(client->Get("/y").has_value());
  EXPECT_FALSE(answered);
}

TEST(ApiClient, VerifiesWhoTheServerIs) {
  FaultyServer server(Statuses({200}), Transport::kTls), other(Statuses({200}), Transport::kTls);
  ClusterAccess access{.server = server.url()};
  access.authority.text = server.certificate();
  EXPECT_TRUE(OpenClient(access)->Get("/x").has_value());
  access.authority.text = other.certificate();
  const auto refused = OpenClient(access)->Get("/x");
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("certificate"));
  access.authority.text.clear();
  EXPECT_FALSE(OpenClient(access)->Get("/x").has_value());
  access.certificate_check = ServerCertificate::kAccepted;
  EXPECT_TRUE(OpenClient(access)->Get("/x").has_value());
}

TEST(ApiClient, VerifiesTheNameThatTheKubeconfigGives) {
  FaultyServer server(Statuses({200}), Transport::kTls);
  ClusterAccess access{.server = server.url(), .tls_server_name = "kube"};
  access.authority.text = server.certificate();
  EXPECT_TRUE(OpenClient(access)->Get("/x").has_value());
  EXPECT_THAT(server.requests().back().head, HasSubstr("Host: 127.0.0.1:"));
  access.tls_server_name = "another";
  EXPECT_FALSE(OpenClient(access)->Get("/x").has_value());
}

// Each is asked several times over one client: what libcurl keeps of one failure meets the next.
TEST(ApiClient, AddressesAtWhichThereCanBeNoServerAreErrorsHoweverOftenTheyAreAsked) {
  const std::string longest(300, 'a');
  const std::string bad_name = "xn--" + std::string("\xff\xfe") + ".invalid";
  const std::string huge((8 << 20) + 1, 'a');  // More than libcurl takes as a text.
  const std::vector<std::string> hosts = {"nosuch.invalid:6443",
                                          longest,
                                          longest + ".invalid",
                                          "127.0.0.1:70000",
                                          "[::1:6443",
                                          "[::1]:",
                                          "[fe80::%25nosuch]:1",
                                          bad_name,
                                          "xn--a.invalid",
                                          "127.0.0.1:1",
                                          "-",
                                          "a..b.invalid",
                                          "%00",
                                          "127.0.0.1:-1",
                                          huge};
  for (const std::string& host : hosts) {
    for (const bool by_proxy : {false, true}) {
      ClusterAccess access{.server = by_proxy ? "https://127.0.0.1:1" : "https://" + host};
      if (by_proxy) access.proxy_url = "http://" + host;
      const auto client = OpenClient(access);
      for (int i = 0; i < 3; ++i) {
        const ApiAnswer answer = client->Call({.path = "/version", .deadline = seconds(2)});
        ASSERT_FALSE(answer.ok()) << host.substr(0, 100);
        EXPECT_EQ(answer.status.code, 0);
        EXPECT_FALSE(answer.outcome.error().message.empty());
      }
    }
  }
}

TEST(ApiClient, ConnectionsResetInTheHandshakeAreTriedAgain) {
  FaultyServer server(Statuses({200}), Transport::kTlsReset);
  const auto answer = Open(server)->Get("/x");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(server.connections(), 5);
}

struct Watched {
  bool is_open = false;
  std::vector<std::string> lines;
  std::optional<ApiAnswer> end;
  ApiClient::WatchCalls Calls() {
    return {.on_open = [this] { is_open = true; },
            .on_line = [this](std::string_view line) { lines.emplace_back(line); },
            .on_end = [this](ApiAnswer answer) { end = std::move(answer); }};
  }
};

TEST(ApiClientWatch, TellsLinesHoweverTheyAreCut) {
  FaultyServer server([](const SeenRequest&, Connection* to) {
    to->BeginStream();
    for (const char* part : {"{\"a", "\":1}\n{\"b\":2}\n{", "\"c\":3}", "\n"}) {
      to->Chunk(part);
      std::this_thread::sleep_for(milliseconds(2));
    }
    to->EndStream();
  });
  const auto client = Open(server);
  Watched watched;
  client->Watch("/x?watch=1", seconds(10), watched.Calls());
  ASSERT_TRUE(Eventually(client.get(), [&] { return watched.end.has_value(); }));
  EXPECT_EQ(watched.lines, (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}", "{\"c\":3}"}));
  EXPECT_TRUE(watched.end->ok());
}

TEST(ApiClientWatch, IsOpenBeforeTheFirstLine) {
  FaultyServer server([](const SeenRequest&, Connection* to) {
    to->BeginStream();
    to->Hang();
  });
  const auto client = Open(server);
  Watched watched;
  client->Watch("/x?watch=1", seconds(10), watched.Calls());
  EXPECT_TRUE(Eventually(client.get(), [&] { return watched.is_open; }));
  EXPECT_TRUE(watched.lines.empty());
}

TEST(ApiClientWatch, RefusalIsToldAsAnyOther) {
  FaultyServer server(Statuses({410}));
  const auto client = Open(server);
  Watched watched;
  client->Watch("/x?watch=1", seconds(10), watched.Calls());
  ASSERT_TRUE(Eventually(client.get(), [&] { return watched.end.has_value(); }));
  EXPECT_TRUE(watched.end->status.IsExpired());
  EXPECT_FALSE(watched.is_open);
}

TEST(ApiClientWatch, LineWithoutEndIsAnError) {
  FaultyServer server([](const SeenRequest&, Connection* to) {
    to->BeginStream();
    const std::string part(1 << 20, 'x');
    for (int i = 0; i < 64; ++i) to->Chunk(part);
  });
  const auto client = Open(server);
  Watched watched;
  client->Watch("/x?watch=1", seconds(10), watched.Calls());
  ASSERT_TRUE(Eventually(client.get(), [&] { return watched.end.has_value(); }));
  ASSERT_FALSE(watched.end->ok());
  EXPECT_THAT(watched.end->outcome.error().message, HasSubstr("too long"));
}

// Two connections to a server that then stands still; what is begun after that finds another.
class StandsStill : public ::testing::Test {
 protected:
  StandsStill()
      : server_([this](const SeenRequest& request, Connection* to) {
          if (request.target == "/both") {
            const std::lock_guard lock(mutex_);
            frozen_.insert(to);
          }
          while (request.target == "/both" && Frozen() < 2) std::this_thread::yield();
          if (is_still_ && IsFrozen(to)) to->Hang();
          while (request.target == "/slow" && !may_answer_) std::this_thread::yield();
          to->Answer(200, "{}");
        }),
        client_(Open(server_)) {}

  void UseTwoConnections() {
    int done = 0;
    for (int i = 0; i < 2; ++i) client_->Send({.path = "/both"}, [&](const ApiAnswer&) { ++done; });
    ASSERT_TRUE(Eventually(client_.get(), [&] { return done == 2; }));
    ASSERT_EQ(server_.connections(), 2);
  }

  size_t Frozen() {
    const std::lock_guard lock(mutex_);
    return frozen_.size();
  }
  bool IsFrozen(Connection* connection) {
    const std::lock_guard lock(mutex_);
    return frozen_.contains(connection);
  }

  std::mutex mutex_;
  std::set<Connection*> frozen_;  // Once it stands still.
  std::atomic<bool> is_still_ = false, may_answer_ = false;
  FaultyServer server_;
  std::unique_ptr<ApiClient> client_;
};

TEST_F(StandsStill, AfterOneTimeOutNothingMoreGoesOverItsIdleConnections) {
  UseTwoConnections();
  is_still_ = true;
  EXPECT_FALSE(client_->Call({.path = "/x", .deadline = milliseconds(50)}).ok());
  EXPECT_TRUE(client_->Call({.path = "/y", .deadline = seconds(10)}).ok());
  EXPECT_EQ(server_.connections(), 3);
}

TEST_F(StandsStill, AfterASilentWatchNothingMoreGoesOverIdleConnections) {
  UseTwoConnections();
  is_still_ = true;
  client_->NoteSilence();
  EXPECT_TRUE(client_->Call({.path = "/y", .deadline = seconds(10)}).ok());
  EXPECT_EQ(server_.connections(), 3);
}

TEST_F(StandsStill, WhatIsUnderWayIsLeftAlone) {
  bool done = false;
  client_->Send({.method = Method::kPost, .path = "/slow", .body = "{}"},
                [&](const ApiAnswer& answer) { done = answer.ok(); });
  ASSERT_TRUE(Eventually(client_.get(), [&] { return !server_.requests().empty(); }));
  client_->NoteSilence();
  may_answer_ = true;
  EXPECT_TRUE(Eventually(client_.get(), [&] { return done; }));
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST(ApiClient, TimersRunInTheirOrderAndCanBeCancelled) {
  const auto client = OpenClient(ClusterAccess{.server = "http://127.0.0.1:1"});
  std::string order;
  client->After(milliseconds(2), [&] { order += "b"; });
  client->After(milliseconds(1), [&] { order += "a"; });
  client->Cancel(client->After(milliseconds(1), [&] { order += "x"; }));
  EXPECT_TRUE(Eventually(client.get(), [&] { return order.size() >= 2; }));
  EXPECT_EQ(order, "ab");
}

TEST(ApiClient, OtherDescriptorsWakeIt) {
  const auto client = OpenClient(ClusterAccess{.server = "http://127.0.0.1:1"});
  const int descriptor = eventfd(1, EFD_NONBLOCK);
  bool woken = false;
  client->WaitFor(descriptor, [&] {
    woken = true;
    client->StopWaitingFor(descriptor);
  });
  client->Poll(seconds(60));
  EXPECT_TRUE(woken);
  close(descriptor);
}

TEST(ApiClient, ReadsAReplacedTokenFileWhenItIsRefused) {
  const std::string path = ::testing::TempDir() + "/token-" + std::to_string(getpid());
  ASSERT_TRUE(WriteFileAtomically(path, "old\n").has_value());
  FaultyServer server([](const SeenRequest& request, Connection* to) {
    to->Answer(request.head.find("Bearer new\r\n") == std::string::npos ? 401 : 200, "{}");
  });
  ClusterAccess access{.server = server.url()};
  access.token_file = path;
  const auto client = OpenClient(access);
  EXPECT_EQ(client->Call({.path = "/x"}).status.code, 401);
  EXPECT_EQ(server.requests().size(), 1u);  // Nothing newer to try.
  ASSERT_TRUE(WriteFileAtomically(path, "new").has_value());
  EXPECT_TRUE(client->Get("/x").has_value());
  unlink(path.c_str());
}

}  // namespace
}  // namespace rudderfish::kube
