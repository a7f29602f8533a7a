// SPDX-License-Identifier: Apache-2.0
#include "run/move_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tests/support/faulty_server.h"
#include "tests/support/polling.h"

namespace rudderfish {
namespace {

using testing::Connection;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SeenRequest;
using Word = MoveDriver::Word;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Goes on as told.
class ManualClock final : public Clock {
 public:
  Instant Now() const override { return Instant(Duration(now_.load())); }
  void Advance(Duration by) { now_ += by.count(); }

 private:
  std::atomic<int64_t> now_ = Duration(seconds(1000)).count();
};

// An API server with one pod that another `run` has begun to move, or none.
class MoveDriverTest : public ::testing::Test {
 protected:
  MoveDriverTest()
      : server_([this](const SeenRequest& request, Connection* to) { Serve(request, to); }),
        driver_(testing::OpenClient({.server = server_.url()}, testing::QuickOptions(), clock_),
                {}) {}

  void Serve(const SeenRequest& request, Connection* to) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (path == "/api/v1/pods")
      return to->Answer(200, R"({"items":[)" + (listed_ ? Pod() : "") + "]}");
    if (path == "/api/v1/namespaces/shop/pods/web-1" && listed_ && request.method == "GET")
      return to->Answer(200, Pod());
    to->Answer(404, "{}");
  }

  bool Within(const std::function<bool()>& condition) {
    const Instant end = testing::RealClock().Now() + seconds(20);
    while (!condition()) {
      if (testing::RealClock().Now() > end) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
  }

  std::string EndOf(uint64_t order) {
    std::optional<MoveDriver::End> end;
    EXPECT_TRUE(Within([&] { return (end = driver_.Take(order)).has_value(); }));
    return end ? end->why : "";
  }

  size_t Writes() const {
    const std::vector<SeenRequest> seen = server_.requests();
    return static_cast<size_t>(
        std::count_if(seen.begin(), seen.end(), [](const auto& r) { return r.method != "GET"; }));
  }

  static std::string Pod() {
    const PodMove move{.id = "m1",
                       .target = "b",
                       .target_hostname = "b",
                       .replica_set = "web",
                       .replica_set_uid = "rs",
                       .workload = "Deployment/web",
                       .begun = 1,
                       .deadline = 9'999'999'999'999,
                       .by = std::string(kMoveByRun)};
    return Json{{"metadata",
                 {{"namespace", "shop"},
                  {"name", "web-1"},
                  {"uid", "u1"},
                  {"resourceVersion", "5"},
                  {"labels", {{"app", "web"}, {kMoveKey, move.id}}},
                  {"annotations", {{kMoveKey, PodMoveText(move)}}}}},
                {"spec", {{"nodeName", "a"}}},
                {"status", {{"phase", "Running"}}}}
        .dump();
  }

  ManualClock clock_;
  std::atomic<bool> listed_ = false;
  testing::FaultyServer server_;
  MoveDriver driver_;
};

TEST_F(MoveDriverTest, NothingIsAskedOfTheClusterBeforeItMayAct) {
  driver_.Say(Word::kUndo);
  EXPECT_EQ(EndOf(driver_.Begin({{"shop", "web-1", "u1"}, "b"})), "moves are held back");
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(MoveDriverTest, AnOrderThatCannotBeCarriedOutSaysWhyAndWritesNothing) {
  driver_.Say(Word::kAct);
  EXPECT_THAT(EndOf(driver_.Begin({{"shop", "web-1", "u1"}, "b"})), HasSubstr("is not found"));
  EXPECT_TRUE(Within([&] { return driver_.is_idle(); }));
  EXPECT_EQ(Writes(), 0u);
  driver_.Say(Word::kUndo);
  EXPECT_EQ(EndOf(driver_.Begin({{"shop", "web-1", "u1"}, "b"})), "moves are held back");
}

TEST_F(MoveDriverTest, AMoveThatAnotherProcessLeftIsContinuedAndAnOldWordTouchesNothing) {
  listed_ = true;
  driver_.Say(Word::kAct);
  ASSERT_TRUE(Within([&] { return !driver_.Standings().empty(); }));
  EXPECT_EQ(driver_.Standings()[0].move.id, "m1");
  EXPECT_EQ(driver_.Standings()[0].pod, "shop/web-1");
  // The ReplicaSet is not there: it is undone, and the server refuses that.
  EXPECT_TRUE(Within([&] { return Writes() > 0; }));
  clock_.Advance(MoveDriver::kWordLimit + milliseconds(1));
  std::this_thread::sleep_for(milliseconds(400));  // A step that was under way.
  const size_t before = Writes();
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_EQ(Writes(), before);
  EXPECT_FALSE(driver_.Standings().empty());
  driver_.Say(Word::kNothing);
  EXPECT_TRUE(Within([&] { return driver_.is_idle(); })) << "another instance leads";
}

TEST_F(MoveDriverTest, AMoveThatAnotherProcessLeftIsUndoneWhileNoneMayBegin) {
  listed_ = true;
  driver_.Start();
  driver_.Say(Word::kUndo);
  ASSERT_TRUE(Within([&] { return !driver_.Standings().empty(); }));
  EXPECT_EQ(driver_.Standings()[0].move.id, "m1");
  EXPECT_TRUE(Within([&] { return Writes() > 0; }));  // The server refuses to undo it.
  EXPECT_EQ(EndOf(driver_.Begin({{"shop", "web-1", "u1"}, "b"})), "moves are held back");
}

TEST_F(MoveDriverTest, WhatIsFinishedBeginsNothingMore) {
  driver_.Say(Word::kAct);
  driver_.Finish(seconds(5));
  driver_.Say(Word::kAct);
  EXPECT_EQ(EndOf(driver_.Begin({{"shop", "web-1", "u1"}, "b"})), "moves are held back");
}

}  // namespace
}  // namespace rudderfish
