// SPDX-License-Identifier: Apache-2.0
#include "kube/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/faulty_server.h"
#include "tests/support/polling.h"

namespace rudderfish::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Connection;
using testing::FaultyServer;
using testing::SeenRequest;

EventNote MovedNote(const std::string& pod) {
  return {.regarding = {.api_version = "v1",
                        .kind = "Pod",
                        .name_space = "shop",
                        .name = pod,
                        .uid = "u-" + pod},
          .reason = "Moved",
          .action = "Move",
          .note = "from edge-1 to cloud-2"};
}

class Recorded : public ::testing::Test {
 protected:
  Recorded()
      : server_([this](const SeenRequest&, Connection* to) {
          while (is_held_) std::this_thread::sleep_for(milliseconds(1));
          to->Answer(status_, "{}");
        }),
        client_(testing::OpenClient({.server = server_.url()}, testing::QuickOptions(), clock_)) {}

  // Lets the test's time pass in steps until `condition` holds.
  bool Until(const std::function<bool()>& condition, Duration step = milliseconds(1)) {
    return testing::Eventually(client_.get(), [&] {
      clock_.Advance(step);
      return condition();
    });
  }

  // So much of the test's time passes, and whatever is due is done.
  void Pass(Duration time) {
    clock_.Advance(time);
    for (int i = 0; i < 3 || !(is_held_ || client_->is_idle()); ++i) client_->Poll(milliseconds(1));
  }

  json Body(size_t number) const { return json::parse(server_.requests()[number].body); }

  ManualClock clock_;
  std::atomic<int> status_ = 201;
  std::atomic<bool> is_held_ = false;
  FaultyServer server_;
  std::unique_ptr<ApiClient> client_;
};

TEST_F(Recorded, EventSaysWhoDidWhatToWhom) {
  EventRecorder recorder(client_.get(), {.instance = "pod-1"});
  recorder.Record(MovedNote("cart"));
  ASSERT_TRUE(Until([&] { return recorder.is_idle(); }));
  const SeenRequest request = server_.requests()[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/apis/events.k8s.io/v1/namespaces/shop/events");
  const json event = Body(0);
  EXPECT_EQ(event["regarding"]["uid"], "u-cart");
  EXPECT_EQ(event["reason"], "Moved");
  EXPECT_EQ(event["action"], "Move");
  EXPECT_EQ(event["type"], "Normal");
  EXPECT_EQ(event["reportingInstance"], "pod-1");
  EXPECT_TRUE(event["metadata"]["name"].get<std::string>().starts_with("cart."));
  EXPECT_FALSE(event.contains("series"));
}

TEST_F(Recorded, RepetitionsBecomeOneSeries) {
  EventRecorder recorder(client_.get(), {});
  recorder.Record(MovedNote("cart"));
  ASSERT_TRUE(Until([&] { return recorder.is_idle(); }));
  for (int i = 0; i < 100; ++i) recorder.Record(MovedNote("cart"));
  ASSERT_TRUE(Until([&] { return recorder.is_idle(); }));
  ASSERT_EQ(server_.requests().size(), 2u);
  EXPECT_EQ(server_.requests()[1].method, "PATCH");
  EXPECT_EQ(Body(1)["series"]["count"], 101);
  EXPECT_EQ(recorder.counts().merged, 100);
}

// As client-go's recorder: a series is written when it becomes one, then to keep it from being
// forgotten.
TEST_F(Recorded, ASeriesIsWrittenOnceInMinutes) {
  EventRecorder recorder(client_.get(), {});
  for (int i = 0; i < 120; ++i) {  // For an hour.
    recorder.Record(MovedNote("cart"));
    Pass(seconds(30));
  }
  EXPECT_EQ(server_.requests().size(), 7u) << "one Event, and one write in ten minutes";
  EXPECT_EQ(Body(1)["series"]["count"], 2);
  EXPECT_GE(Body(6)["series"]["count"], 100);
}

TEST_F(Recorded, AnotherNoteIsASeriesOfItsOwn) {
  EventRecorder recorder(client_.get(), {});
  EventNote note = MovedNote("cart");
  recorder.Record(note);
  note.note = "from edge-1 to cloud-3";
  recorder.Record(note);
  ASSERT_TRUE(Until([&] { return recorder.counts().sent == 2; }, milliseconds(0)));
  EXPECT_THAT((std::vector<json>{Body(0)["note"], Body(1)["note"]}),
              ::testing::UnorderedElementsAre("from edge-1 to cloud-2", "from edge-1 to cloud-3"));
}

TEST_F(Recorded, WhereNumbersDifferTheNewestNoteIsToldNowAndThen) {
  EventRecorder recorder(client_.get(), {});
  EventNote note = MovedNote("cart");
  note.again = Again::kAnotherNote;
  for (int i = 0; i < 120; ++i) {  // For an hour.
    note.note = "0/" + std::to_string(i) + " nodes";
    recorder.Record(note);
    Pass(seconds(30));
  }
  ASSERT_EQ(server_.requests().size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(server_.requests()[i].method, "POST") << "no server lets a note be changed";
  }
  EXPECT_EQ(Body(0)["note"], "0/0 nodes");
  EXPECT_FALSE(Body(0).contains("series"));
  EXPECT_EQ(Body(1)["note"], "0/20 nodes");
  EXPECT_EQ(Body(1)["series"]["count"], 20) << "those that were not told yet";
  EXPECT_NE(Body(0)["metadata"]["name"], Body(1)["metadata"]["name"]);
  EXPECT_EQ(recorder.counts().failed, 0);
}

TEST_F(Recorded, ASeriesWaitsForTheAnswerOfItsEvent) {
  is_held_ = true;
  EventRecorder recorder(client_.get(), {});
  recorder.Record(MovedNote("cart"));
  ASSERT_TRUE(Until([&] { return server_.requests().size() == 1; }));
  recorder.Record(MovedNote("cart"));
  Pass(milliseconds(100));
  EXPECT_EQ(server_.requests().size(), 1u) << "there is nothing to patch yet";
  is_held_ = false;
  ASSERT_TRUE(Until([&] { return recorder.counts().sent == 2; }));
  EXPECT_EQ(server_.requests()[1].method, "PATCH");
}

TEST_F(Recorded, OtherObjectsAreNotMerged) {
  EventRecorder recorder(client_.get(), {});
  recorder.Record(MovedNote("cart"));
  recorder.Record(MovedNote("shop"));
  ASSERT_TRUE(Until([&] { return recorder.is_idle(); }));
  EXPECT_EQ(recorder.counts().sent, 2);
}

TEST_F(Recorded, SeriesEndsWithSilence) {
  EventRecorder recorder(client_.get(), {});
  recorder.Record(MovedNote("cart"));
  ASSERT_TRUE(Until([&] { return recorder.is_idle(); }));
  clock_.Advance(std::chrono::minutes(6));
  recorder.Record(MovedNote("cart"));
  ASSERT_TRUE(Until([&] { return recorder.is_idle(); }));
  EXPECT_EQ(server_.requests()[1].method, "POST");
}

TEST_F(Recorded, NoMoreAreSentThanTheBucketHasTokens) {
  EventRecorder recorder(client_.get(), {.burst = 3, .per_second = 1});
  for (int i = 0; i < 10; ++i) recorder.Record(MovedNote("pod-" + std::to_string(i)));
  ASSERT_TRUE(testing::Eventually(client_.get(), [&] { return recorder.counts().sent == 3; }));
  for (int i = 0; i < 20; ++i) client_->Poll(milliseconds(1));  // No time passes.
  EXPECT_EQ(recorder.counts().sent, 3);
  EXPECT_TRUE(Until([&] { return recorder.counts().sent == 10; }, milliseconds(100)));
}

TEST_F(Recorded, ASeriesThatWaitsDelaysNoOther) {
  EventRecorder recorder(client_.get(), {});
  recorder.Record(MovedNote("cart"));
  ASSERT_TRUE(Until([&] { return recorder.counts().sent == 1; }, milliseconds(0)));
  recorder.Record(MovedNote("cart"));
  ASSERT_TRUE(Until([&] { return recorder.counts().sent == 2; }, milliseconds(0)));
  recorder.Record(MovedNote("cart"));  // No time has passed since it was told.
  for (const char* pod : {"front", "shipping"}) recorder.Record(MovedNote(pod));
  ASSERT_TRUE(Until([&] { return recorder.counts().sent == 4; }, milliseconds(0)));
  EXPECT_EQ(server_.requests()[3].method, "POST");
  EXPECT_TRUE(recorder.is_idle()) << "a shutdown does not wait for it";
  Pass(std::chrono::minutes(10));
  ASSERT_EQ(server_.requests().size(), 5u);
  EXPECT_EQ(server_.requests()[4].method, "PATCH");
}

TEST_F(Recorded, WhatTheQueueCannotHoldIsCounted) {
  EventRecorder recorder(client_.get(), {.queue_max = 4, .burst = 1, .per_second = 0.001});
  for (int i = 0; i < 10; ++i) recorder.Record(MovedNote("pod-" + std::to_string(i)));
  EXPECT_EQ(recorder.counts().dropped, 6);
}

TEST_F(Recorded, FailuresAreCountedAndForgotten) {
  status_ = 403;
  EventRecorder recorder(client_.get(), {});
  recorder.Record(MovedNote("cart"));
  ASSERT_TRUE(Until([&] { return recorder.counts().failed == 1; }));
  status_ = 201;
  recorder.Record(MovedNote("cart"));
  ASSERT_TRUE(Until([&] { return recorder.counts().sent == 1; }));
  EXPECT_EQ(server_.requests().back().method, "POST");
}

TEST_F(Recorded, EventsOfObjectsWithoutNamespaceStandInDefault) {
  EventRecorder recorder(client_.get(), {});
  EventNote note = MovedNote("cart");
  note.regarding = {.api_version = "v1", .kind = "Node", .name = "edge-1"};
  note.note = std::string(5000, 'x');
  recorder.Record(note);
  ASSERT_TRUE(Until([&] { return recorder.is_idle(); }));
  EXPECT_EQ(server_.requests()[0].target, "/apis/events.k8s.io/v1/namespaces/default/events");
  EXPECT_LE(Body(0)["note"].get<std::string>().size(), 1024u);
}

}  // namespace
}  // namespace rudderfish::kube
