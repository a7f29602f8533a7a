// SPDX-License-Identifier: Apache-2.0
#include "kube/reflector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/faulty_server.h"
#include "tests/support/object_store.h"
#include "tests/support/polling.h"

// What a server can do to a list and a watch, byte by byte. What a server really does is tried in
// tests/live/.

namespace rudderfish::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Connection;
using testing::Eventually;
using testing::FaultyServer;
using ::testing::HasSubstr;
using testing::ObjectStore;
using testing::ObjectVersions;
using testing::SeenRequest;

constexpr char kGone[] = R"({"kind":"Status","reason":"Expired","message":"old","code":410})";

std::string Object(const std::string& name, int version) {
  return R"({"metadata":{"name":")" + name + R"(","uid":"u","resourceVersion":")" +
         std::to_string(version) + R"("}})";
}

std::string Event(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

std::string EndOfList(int version) {
  return Event("BOOKMARK", R"({"metadata":{"resourceVersion":")" + std::to_string(version) +
                               R"(","annotations":{"k8s.io/initial-events-end":"true"}}})");
}

std::string List(int version, const std::string& items, const std::string& next = "") {
  return R"({"metadata":{"resourceVersion":")" + std::to_string(version) + R"(","continue":")" +
         next + R"("},"items":[)" + items + "]}";
}

bool Has(const SeenRequest& request, const std::string& part) {
  return request.target.find(part) != std::string::npos;
}

void Stream(Connection* to, const std::string& lines) {
  to->BeginStream();
  to->Chunk(lines);
}

// A reflector of a server that does what the test says.
class Reflected : public ::testing::Test {
 protected:
  using Handler = std::function<void(const SeenRequest&, int attempt, Connection*)>;

  // `handler` gets all requests but those for its health, numbered from 0.
  void Begin(Handler handler, InitialList initial = InitialList::kStreamed,
             ReflectorOptions options = {}, const Clock* clock = &testing::RealClock()) {
    server_ = std::make_unique<FaultyServer>(
        [this, handler = std::move(handler)](const SeenRequest& request, Connection* to) {
          if (request.target == "/healthz") {
            to->Answer(200, "{}");
          } else {
            handler(request, attempts_++, to);
          }
        });
    client_ = testing::OpenClient({.server = server_->url()}, testing::QuickOptions(), *clock);
    options.path = "/api/v1/pods";
    options.initial = initial;
    options.back_off = {.first = milliseconds(1), .last = milliseconds(5)};
    if (options.relist_back_off.first < seconds(1)) options.relist_back_off = options.back_off;
    reflector_ = std::make_unique<Reflector>(client_.get(), options, &store_);
    reflector_->Start();
  }

  bool Until(const std::function<bool()>& condition) {
    return Eventually(client_.get(), condition);
  }

  // name -> version.
  static ObjectVersions Versions(const std::vector<std::pair<std::string, int>>& objects) {
    ObjectVersions versions;
    for (const auto& [name, version] : objects)
      versions["/" + name] = "u@" + std::to_string(version);
    return versions;
  }

  std::vector<SeenRequest> Requests() const {
    std::vector<SeenRequest> requests = server_->requests();
    std::erase_if(requests, [](const SeenRequest& r) { return r.target == "/healthz"; });
    return requests;
  }

  ObjectStore store_;
  std::atomic<int> attempts_ = 0;
  std::unique_ptr<FaultyServer> server_;
  std::unique_ptr<ApiClient> client_;
  std::unique_ptr<Reflector> reflector_;
};

TEST_F(Reflected, StreamedListIsCompleteAtItsBookmark) {
  Begin([](const SeenRequest&, int, Connection* to) {
    Stream(to, Event("ADDED", Object("a", 1)) + Event("ADDED", Object("b", 2)) + EndOfList(5) +
                   Event("MODIFIED", Object("a", 6)) + Event("DELETED", Object("b", 7)));
    to->Hang();
  });
  ASSERT_TRUE(Until([&] { return store_.deletes == 1; }));
  EXPECT_EQ(store_.objects, Versions({{"a", 6}}));
  EXPECT_EQ(store_.complete_lists, 1);
  const SeenRequest request = Requests()[0];
  EXPECT_TRUE(Has(request, "sendInitialEvents=true"));
  EXPECT_TRUE(Has(request, "resourceVersionMatch=NotOlderThan"));
  EXPECT_TRUE(Has(request, "allowWatchBookmarks=true"));
}

TEST_F(Reflected, ChangesWithinAStreamedListAreToldAfterIt) {
  Begin([](const SeenRequest&, int, Connection* to) {
    Stream(to, Event("ADDED", Object("a", 1)) + Event("ADDED", Object("b", 2)) +
                   Event("DELETED", Object("a", 3)) + Event("ADDED", Object("a", 4)) +
                   EndOfList(4));
    to->Hang();
  });
  ASSERT_TRUE(Until([&] { return store_.changes == 1; }));
  EXPECT_EQ(store_.objects, Versions({{"a", 4}, {"b", 2}}));
  EXPECT_EQ(store_.deletes, 1);
}

TEST_F(Reflected, ServerWithoutStreamsIsAskedForPages) {
  Begin([](const SeenRequest& request, int, Connection* to) {
    if (Has(request, "sendInitialEvents")) {
      to->Answer(422, R"({"kind":"Status","reason":"Invalid","code":422})");
    } else if (Has(request, "watch=1")) {
      to->BeginStream();
      to->Hang();
    } else if (Has(request, "continue=next%2Fpage")) {
      to->Answer(200, List(9, Object("b", 2)));
    } else {
      to->Answer(200, List(9, Object("a", 1), "next/page"));
    }
  });
  ASSERT_TRUE(Until([&] { return reflector_->is_synced() && Requests().size() == 4; }));
  EXPECT_EQ(store_.objects, Versions({{"a", 1}, {"b", 2}}));
  EXPECT_TRUE(Has(Requests()[1], "limit=500&resourceVersion=0"));
  EXPECT_FALSE(Has(Requests()[2], "resourceVersion=0"));
  EXPECT_TRUE(Has(Requests()[3], "resourceVersion=9"));
}

TEST_F(Reflected, StreamThatStandsStillIsGivenUpForPages) {
  Begin(
      [](const SeenRequest& request, int, Connection* to) {
        if (!Has(request, "watch=1")) return to->Answer(200, List(9, Object("a", 1)));
        to->BeginStream();  // As a server that knows nothing of initial streams.
        to->Hang();
      },
      InitialList::kStreamed, {.list_timeout = milliseconds(50)});
  EXPECT_TRUE(Until([&] { return reflector_->is_synced(); }));
  EXPECT_EQ(reflector_->initial(), InitialList::kPaged);
}

TEST_F(Reflected, WatchThatIsCutGoesOnFromTheLastVersion) {
  Begin([](const SeenRequest&, int attempt, Connection* to) {
    if (attempt == 0) {
      Stream(to, Event("ADDED", Object("a", 1)) + EndOfList(5) + Event("MODIFIED", Object("a", 6)) +
                     R"({"type":"MODIF)");
      to->Reset();
    } else {
      Stream(to, Event("MODIFIED", Object("a", 7)));
      to->Hang();
    }
  });
  ASSERT_TRUE(Until([&] { return store_.objects == Versions({{"a", 7}}); }));
  EXPECT_TRUE(Has(Requests()[1], "resourceVersion=6"));
  EXPECT_EQ(store_.lists, 1);
  EXPECT_EQ(reflector_->counts().malformed, 0);
}

TEST_F(Reflected, BookmarksMoveTheVersion) {
  Begin([](const SeenRequest&, int attempt, Connection* to) {
    if (attempt == 0) {
      Stream(to, EndOfList(5) + Event("BOOKMARK", R"({"metadata":{"resourceVersion":"50"}})"));
      to->EndStream();
    } else {
      to->BeginStream();
      to->Hang();
    }
  });
  ASSERT_TRUE(Until([&] { return Requests().size() == 2; }));
  EXPECT_TRUE(Has(Requests()[1], "resourceVersion=50"));
}

TEST_F(Reflected, ErrorEventOfAnExpiredVersionBringsANewList) {
  Begin([](const SeenRequest&, int attempt, Connection* to) {
    if (attempt == 0) {
      Stream(to, Event("ADDED", Object("a", 1)) + EndOfList(5) + Event("ERROR", kGone));
    } else {
      Stream(to, Event("ADDED", Object("b", 8)) + EndOfList(9));
    }
    to->Hang();
  });
  ASSERT_TRUE(Until([&] { return store_.complete_lists == 2; }));
  EXPECT_EQ(store_.objects, Versions({{"b", 8}}));
  EXPECT_EQ(reflector_->counts().expired, 1);
}

TEST_F(Reflected, AnswerOfAnExpiredVersionBringsACurrentList) {
  Begin(
      [](const SeenRequest& request, int attempt, Connection* to) {
        if (!Has(request, "watch=1")) {
          to->Answer(200, List(attempt == 0 ? 5 : 9, Object("a", 1)));
        } else if (attempt == 1) {
          to->Answer(410, kGone);
        } else {
          to->BeginStream();
          to->Hang();
        }
      },
      InitialList::kPaged);
  ASSERT_TRUE(Until([&] { return Requests().size() == 4; }));
  EXPECT_TRUE(Has(Requests()[0], "resourceVersion=0"));
  EXPECT_FALSE(Has(Requests()[2], "resourceVersion"));
  EXPECT_TRUE(Has(Requests()[3], "resourceVersion=9"));
}

TEST_F(Reflected, ExpiredPageRestartsTheList) {
  Begin(
      [](const SeenRequest& request, int attempt, Connection* to) {
        if (Has(request, "watch=1")) {
          to->BeginStream();
          to->Hang();
        } else if (attempt == 0) {
          to->Answer(200, List(5, Object("a", 1), "more"));
        } else if (attempt == 1) {
          to->Answer(410, kGone);
        } else {
          to->Answer(200, List(9, Object("b", 8)));
        }
      },
      InitialList::kPaged);
  ASSERT_TRUE(Until([&] { return reflector_->is_synced(); }));
  EXPECT_EQ(store_.objects, Versions({{"b", 8}}));
  EXPECT_EQ(store_.lists, 2);
  EXPECT_EQ(store_.complete_lists, 1);
}

TEST_F(Reflected, VersionTheServerHasNotReachedBringsANewList) {
  Begin([](const SeenRequest&, int attempt, Connection* to) {
    if (attempt == 0) {
      Stream(to, EndOfList(500));
      to->Reset();
    } else if (attempt == 1) {
      to->Answer(504,
                 R"({"kind":"Status","message":"Too large resource version: 500","code":504})");
    } else {
      Stream(to, Event("ADDED", Object("a", 3)) + EndOfList(4));
      to->Hang();
    }
  });
  ASSERT_TRUE(Until([&] { return store_.complete_lists == 2; }));
  EXPECT_EQ(store_.objects, Versions({{"a", 3}}));
}

TEST_F(Reflected, ServerErrorsAreWaitedOut) {
  Begin([](const SeenRequest&, int attempt, Connection* to) {
    if (attempt < 5) return to->Answer(attempt % 2 == 0 ? 500 : 429, "no");
    Stream(to, EndOfList(5));
    to->Hang();
  });
  EXPECT_TRUE(Until([&] { return reflector_->is_synced(); }));
  EXPECT_EQ(reflector_->counts().failures, 5);
  EXPECT_FALSE(reflector_->last_error().has_value());
}

TEST_F(Reflected, ForbiddenResourceIsToldWithItsRule) {
  Begin([](const SeenRequest&, int, Connection* to) { to->Answer(403, "no"); });
  ASSERT_TRUE(Until([&] { return reflector_->last_error().has_value(); }));
  EXPECT_THAT(
      reflector_->last_error()->message,
      HasSubstr("{apiGroups: [\"\"], resources: [\"pods\"], verbs: [\"list\", \"watch\"]}"));
  EXPECT_FALSE(reflector_->FreshAsOf().has_value());
}

// What such a line would have told is unknown: a mirror that skips it would be wrong.
class Unreadable : public Reflected, public ::testing::WithParamInterface<std::string> {};

TEST_P(Unreadable, LineBringsANewListAndNothingAfterItIsTold) {
  Begin(
      [](const SeenRequest&, int attempt, Connection* to) {
        if (attempt == 0) {
          Stream(to, Event("ADDED", Object("a", 1)) + Event("ADDED", Object("b", 2)) +
                         EndOfList(5) + GetParam() + "\n" + Event("DELETED", Object("b", 7)));
        } else {
          Stream(to, Event("ADDED", Object("a", 8)) + EndOfList(9));
        }
        to->Hang();
      },
      InitialList::kStreamed, {.kind = "Pod"});
  ASSERT_TRUE(Until([&] { return store_.complete_lists == 2; }));
  EXPECT_EQ(store_.objects, Versions({{"a", 8}}));
  EXPECT_EQ(store_.deletes, 0);
  EXPECT_TRUE(Has(Requests()[1], "sendInitialEvents=true"));
  EXPECT_EQ(reflector_->counts().unreadable, 1);
  EXPECT_EQ(reflector_->counts().expired, 0);
  EXPECT_FALSE(reflector_->last_error().has_value());
}

INSTANTIATE_TEST_SUITE_P(
    Lines, Unreadable,
    ::testing::Values("nonsense", "[]", R"({"type":"ADDED"})", R"({"type":"ADDED","object":7})",
                      R"({"type":"MODIFIED","object":{"metadata":{"name":"b","resourceVer)",
                      R"({"type":"SANG","object":{"metadata":{"name":"b","resourceVersion":"6"}}})",
                      R"({"type":"DELETED","object":{"metadata":{"name":"b"}}})",
                      R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"6"}}})",
                      R"({"type":"DELETED","object":{"kind":"Node","metadata":{"name":"b",)"
                      R"("resourceVersion":"6"}}})"));

TEST_F(Reflected, UnreadableLineWithinAStreamedListRestartsIt) {
  Begin([](const SeenRequest&, int attempt, Connection* to) {
    Stream(to, Event("ADDED", Object("a", 1)) +
                   (attempt == 0 ? "{\n" : Event("ADDED", Object("b", 2))) + EndOfList(5));
    to->Hang();
  });
  ASSERT_TRUE(Until([&] { return reflector_->is_synced(); }));
  EXPECT_EQ(store_.objects, Versions({{"a", 1}, {"b", 2}}));
  EXPECT_EQ(store_.lists, 2);
}

TEST_F(Reflected, ErrorAmongWhatWaitsForTheEndOfAStreamedListEndsTheWatch) {
  Begin([](const SeenRequest&, int attempt, Connection* to) {
    if (attempt == 0) {  // A change, so that what follows waits; then the line that is none.
      Stream(to, Event("ADDED", Object("a", 1)) + Event("MODIFIED", Object("a", 2)) +
                     Event("MODIFIED", R"({"metadata":{"resourceVersion":"3"}})") +
                     Event("DELETED", Object("a", 4)) + EndOfList(5));
    } else {
      Stream(to, Event("ADDED", Object("b", 8)) + EndOfList(9));
    }
    to->Hang();
  });
  ASSERT_TRUE(Until([&] { return store_.complete_lists == 2; }));
  EXPECT_EQ(store_.objects, Versions({{"b", 8}}));
  EXPECT_EQ(store_.deletes, 0);
}

TEST_F(Reflected, ServerThatIsNeverUnderstoodIsNotAskedWithoutPause) {
  Begin(
      [](const SeenRequest&, int, Connection* to) {
        Stream(to, EndOfList(5) + "nonsense\n");
        to->Hang();
      },
      InitialList::kStreamed, {.relist_back_off = {.first = seconds(100), .last = seconds(100)}});
  ASSERT_TRUE(Until([&] { return reflector_->counts().unreadable == 1; }));
  const Instant known = *reflector_->FreshAsOf();
  for (int i = 0; i < 20; ++i) client_->Poll(milliseconds(5));
  EXPECT_EQ(reflector_->counts().lists, 1);
  EXPECT_EQ(*reflector_->FreshAsOf(), known) << "what is known grows old meanwhile";
  EXPECT_THAT(reflector_->last_error()->message, HasSubstr("a line that is not JSON"));
}

// Refuses objects called "bad".
class PickyStore final : public ObjectStore {
 public:
  Result<void> Listed(const simdjson::dom::element& object) override {
    if (testing::NameOf(object) == "/bad") return Invalid("pod bad: spec: expected an object");
    return ObjectStore::Listed(object);
  }
  Result<void> Changed(const simdjson::dom::element& object) override {
    if (testing::NameOf(object) == "/bad") return Invalid("pod bad: spec: expected an object");
    return ObjectStore::Changed(object);
  }
};

TEST_F(Reflected, MalformedObjectIsListedOnceMoreAndThenLeftOut) {
  PickyStore store;
  FaultyServer server([](const SeenRequest& request, Connection* to) {
    if (request.number == 0) {
      Stream(to, EndOfList(5) + Event("ADDED", Object("bad", 6)));
    } else {
      Stream(to, Event("ADDED", Object("a", 1)) + Event("ADDED", Object("bad", 6)) + EndOfList(7) +
                     Event("MODIFIED", Object("bad", 8)) + Event("MODIFIED", Object("a", 9)));
    }
    to->Hang();
  });
  const auto client = testing::OpenClient({.server = server.url()});
  Reflector reflector(client.get(),
                      {.path = "/api/v1/pods",
                       .relist_back_off = {.first = milliseconds(1), .last = milliseconds(1)}},
                      &store);
  reflector.Start();
  ASSERT_TRUE(Eventually(client.get(), [&] { return store.changes == 1; }));
  EXPECT_EQ(store.objects, Versions({{"a", 9}}));
  EXPECT_EQ(reflector.counts().lists, 2);
  EXPECT_EQ(reflector.counts().unreadable, 1);
  EXPECT_EQ(reflector.counts().malformed, 3);
  EXPECT_EQ(reflector.left_out(), (LeftOut::Objects{{"bad", "pod bad: spec: expected an object"}}));
}

TEST_F(Reflected, ListsThatAreNoneAreTriedAgain) {
  static const char* const kBodies[] = {"",
                                        "{",
                                        "[]",
                                        "{}",
                                        R"({"metadata":{}})",
                                        R"({"metadata":{"resourceVersion":"1"},"items":{}})",
                                        R"({"metadata":{"resourceVersion":"1"},"items":null})"};
  Begin(
      [](const SeenRequest& request, int attempt, Connection* to) {
        if (!Has(request, "watch=1")) return to->Answer(200, kBodies[attempt]);
        to->BeginStream();
        to->Hang();
      },
      InitialList::kPaged);
  EXPECT_TRUE(Until([&] { return reflector_->is_synced(); }));
  EXPECT_TRUE(store_.objects.empty());
  EXPECT_EQ(reflector_->counts().unreadable, 6);
}

TEST_F(Reflected, WatchesThatEndAtOnceAreNotBegunWithoutPause) {
  Begin([](const SeenRequest&, int attempt, Connection* to) {
    to->BeginStream();
    if (attempt == 0) to->Chunk(EndOfList(5));
    to->EndStream();
  });
  reflector_ = nullptr;
  ReflectorOptions options{.path = "/api/v1/pods"};
  options.back_off = {.first = seconds(100), .last = seconds(100)};
  attempts_ = 0;
  Reflector reflector(client_.get(), options, &store_);
  reflector.Start();
  ASSERT_TRUE(Until([&] { return reflector.counts().watches == 1; }));
  for (int i = 0; i < 20; ++i) client_->Poll(milliseconds(5));
  EXPECT_EQ(reflector.counts().watches, 1);
}

// Time is the test's: how fast the server is decides nothing. All connections are answered but
// those of watches, which do what the test says.
class Silent : public Reflected {
 protected:
  void BeginAt(Handler handler) { Begin(std::move(handler), InitialList::kStreamed, {}, &clock_); }

  Duration Age() { return clock_.Now() - *reflector_->FreshAsOf(); }
  Duration Timeout() { return client_->watch_timeout(); }

  // Lists, and goes on to the first watch.
  void AwaitWatch() {
    ASSERT_TRUE(Until([&] { return reflector_->is_synced(); }));
    clock_.Advance(Timeout());
    ASSERT_TRUE(Until([&] { return Requests().size() == 2; }));
  }

  ManualClock clock_{Instant(std::chrono::hours(1))};
  std::atomic<bool> server_is_over_ = false;
};

TEST_F(Silent, WatchIsNotProvenByWhatOtherConnectionsHear) {
  BeginAt([](const SeenRequest&, int, Connection* to) {
    Stream(to, EndOfList(5));
    to->Hang();
  });
  ASSERT_TRUE(Until([&] { return reflector_->is_synced(); }));
  const Instant listed = clock_.Now();
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(seconds(1));
    ASSERT_TRUE(client_->Get("/healthz").has_value());
    EXPECT_EQ(*reflector_->FreshAsOf(), listed);
  }
}

TEST_F(Silent, WatchIsCutAndRestartedOverAnotherConnectionBeforeItIsTooOld) {
  BeginAt([](const SeenRequest&, int attempt, Connection* to) {
    if (attempt == 0) {
      Stream(to, EndOfList(5));
    } else if (attempt == 1) {
      to->BeginStream();  // And not a word.
    } else {
      Stream(to, Event("MODIFIED", Object("a", 7)));
    }
    to->Hang();
  });
  AwaitWatch();
  ASSERT_TRUE(client_->Get("/healthz").has_value());  // That connection stands still, too.
  const int connections = server_->connections();
  while (client_->counts().silences == 0) {
    ASSERT_LE(Age(), 3 * Timeout()) << "as old as what may be decided on";
    clock_.Advance(seconds(1));
    client_->Poll(milliseconds(1));
  }
  EXPECT_THAT(reflector_->last_error()->message, HasSubstr("the watch is silent"));
  clock_.Advance(seconds(1));
  ASSERT_TRUE(Until([&] { return store_.changes == 1; }));
  EXPECT_TRUE(Has(Requests().back(), "resourceVersion=5"));
  EXPECT_EQ(server_->connections(), connections + 1);
  EXPECT_EQ(store_.lists, 1);
  clock_.Advance(seconds(1));
  EXPECT_LE(Age(), seconds(1));
  EXPECT_FALSE(reflector_->last_error().has_value());
}

TEST_F(Silent, WatchThatIsNotAgreedToIsRestarted) {
  BeginAt([](const SeenRequest&, int attempt, Connection* to) {
    if (attempt == 0) Stream(to, EndOfList(5));
    if (attempt == 2) to->BeginStream();
    to->Hang();
  });
  AwaitWatch();
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(Timeout());
    client_->Poll(milliseconds(1));
  }
  EXPECT_EQ(client_->counts().silences, 1);
  EXPECT_THAT(reflector_->last_error()->message, HasSubstr("no answer to a watch in time"));
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Until([&] { return !reflector_->last_error().has_value(); }));
}

TEST_F(Silent, LineProvesAWatch) {
  std::atomic<bool> may_go = false;
  BeginAt([&](const SeenRequest&, int attempt, Connection* to) {
    Stream(to, EndOfList(5));
    while (attempt == 0 && !may_go) std::this_thread::yield();
    to->Chunk(Event("BOOKMARK", R"({"metadata":{"resourceVersion":"50"}})"));
    to->Hang();
  });
  ASSERT_TRUE(Until([&] { return reflector_->is_synced(); }));
  clock_.Advance(seconds(3));
  EXPECT_EQ(Age(), seconds(3));
  may_go = true;
  EXPECT_TRUE(Until([&] { return Age() == Duration::zero(); }));
}

// As a real server's: its end is in order, and the connection is kept.
TEST_F(Silent, QuietWatchesThatEndInTimeStayFreshOverTheSameConnections) {
  std::atomic<int> opened = 0, may_end = 0;
  BeginAt([&](const SeenRequest&, int attempt, Connection* to) {
    if (attempt == 0) {
      Stream(to, EndOfList(5));
      to->Hang();
      return;
    }
    to->BeginStream();
    opened = attempt;
    while (may_end < attempt && !server_is_over_) std::this_thread::sleep_for(milliseconds(1));
    to->EndStream();
  });
  AwaitWatch();
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(Until([&] { return opened == i; }));
    client_->Poll(milliseconds(10));  // Hears so.
    clock_.Advance(Timeout());
    may_end = i;
    ASSERT_TRUE(Until([&] { return reflector_->counts().watches == i + 1; })) << i;
    EXPECT_EQ(Age(), Duration::zero());
  }
  server_is_over_ = true;
  EXPECT_EQ(server_->connections(), 2) << "one of the list, one of all watches";
  EXPECT_EQ(client_->counts().silences, 0);
  EXPECT_EQ(reflector_->counts().failures, 0);
  for (const SeenRequest& request : Requests()) {
    if (Has(request, "sendInitialEvents")) continue;
    EXPECT_TRUE(Has(request, "timeoutSeconds=8") || Has(request, "timeoutSeconds=9") ||
                Has(request, "timeoutSeconds=10"))
        << request.target;
  }
}

TEST_F(Silent, WhatCameBetweenPollsIsReadBeforeAWatchIsCut) {
  std::atomic<bool> has_told = false;
  BeginAt([&](const SeenRequest&, int attempt, Connection* to) {
    if (attempt == 0) return Stream(to, EndOfList(5)), to->Hang();
    Stream(to, Event("MODIFIED", Object("a", 7)));
    has_told = true;
    to->Hang();
  });
  AwaitWatch();
  while (!has_told) std::this_thread::yield();
  clock_.Advance(10 * Timeout());
  ASSERT_TRUE(Until([&] { return store_.changes == 1; }));
  clock_.Advance(seconds(1));
  client_->Poll(milliseconds(1));
  EXPECT_EQ(client_->counts().silences, 0);
}

}  // namespace
}  // namespace rudderfish::kube
