// SPDX-License-Identifier: Apache-2.0
#include "kube/condition_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "tests/support/faulty_server.h"
#include "tests/support/polling.h"

namespace rudderfish::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Connection;
using testing::FaultyServer;
using testing::SeenRequest;

PodIdentity Named(const std::string& name) { return {"shop", name, "u-" + name}; }

class Conditions : public ::testing::Test {
 protected:
  Conditions()
      : server_([this](const SeenRequest&, Connection* to) {
          while (is_held_) std::this_thread::sleep_for(milliseconds(1));
          if (status_ == 0) return to->Reset();
          to->Answer(status_, "{}");
        }),
        client_(testing::OpenClient({.server = server_.url()}, testing::QuickOptions(), clock_)),
        writer_(client_.get(), [this] { return may_write_; }) {}
  ~Conditions() override { is_held_ = false; }

  // Lets the test's time pass in steps until `condition` holds.
  bool Until(const std::function<bool()>& condition, Duration step = milliseconds(250)) {
    return testing::Eventually(client_.get(), [&] {
      clock_.Advance(step);
      return condition();
    });
  }
  bool UntilWritten(int64_t count, Duration step = milliseconds(250)) {
    return Until([&] { return writer_.counts().written == count; }, step);
  }
  // So much of the test's time passes, and whatever is due is done.
  void Pass(Duration time) {
    clock_.Advance(time);
    for (int i = 0; i < 3 || !(is_held_ || client_->is_idle()); ++i) client_->Poll(milliseconds(1));
  }
  size_t Sent() const { return server_.requests().size(); }
  json Condition(size_t number) const {
    return json::parse(server_.requests()[number].body)["status"]["conditions"][0];
  }

  ManualClock clock_;
  std::atomic<int> status_ = 200;
  std::atomic<bool> is_held_ = false;
  bool may_write_ = true;
  FaultyServer server_;
  std::unique_ptr<ApiClient> client_;
  ConditionWriter writer_;
};

TEST_F(Conditions, SayThatThePodIsUnschedulableAndWhy) {
  writer_.Write(Named("web"), "0/1 nodes");
  ASSERT_TRUE(UntilWritten(1));
  const SeenRequest request = server_.requests()[0];
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target, "/api/v1/namespaces/shop/pods/web/status");
  EXPECT_EQ(json::parse(request.body)["metadata"]["uid"], "u-web");
  const json condition = Condition(0);
  EXPECT_EQ(condition["type"], "PodScheduled");
  EXPECT_EQ(condition["status"], "False");
  EXPECT_EQ(condition["reason"], "Unschedulable");
  EXPECT_EQ(condition["message"], "0/1 nodes");
  EXPECT_TRUE(condition.contains("lastTransitionTime"));
}

TEST_F(Conditions, AreWrittenAgainAfterWhateverFailureUntilTheyAreThere) {
  for (const int status : {500, 503, 403, 0}) {
    const size_t sent = Sent();
    const int64_t written = writer_.counts().written;
    status_ = status;
    writer_.Write(Named("web" + std::to_string(status)), "0/1 nodes");
    ASSERT_TRUE(Until([&] { return Sent() >= sent + 4; })) << status;
    EXPECT_EQ(writer_.counts().written, written);
    EXPECT_EQ(writer_.unwritten(), 1u);
    status_ = 200;
    ASSERT_TRUE(UntilWritten(written + 1)) << status;
    EXPECT_EQ(writer_.unwritten(), 0u);
  }
  EXPECT_GE(writer_.counts().failed, 12);
}

TEST_F(Conditions, ThatSayNothingNewAreNotWritten) {
  writer_.Write(Named("web"), "0/1 nodes");
  ASSERT_TRUE(UntilWritten(1));
  for (int i = 0; i < 100; ++i) {
    writer_.Write(Named("web"), "0/1 nodes");
    Pass(seconds(10));
  }
  EXPECT_EQ(Sent(), 1u);
}

TEST_F(Conditions, ThatChangeAreWrittenNowAndThenWithTheNewestWord) {
  writer_.Write(Named("web"), "0/1 nodes");
  ASSERT_TRUE(UntilWritten(1, milliseconds(0)));
  for (int i = 0; i < 29; ++i) {
    writer_.Write(Named("web"), "0/" + std::to_string(i) + " nodes");
    Pass(seconds(1));
  }
  EXPECT_EQ(Sent(), 1u);
  ASSERT_TRUE(UntilWritten(2));
  EXPECT_EQ(Condition(1)["message"], "0/28 nodes");
  EXPECT_FALSE(Condition(1).contains("lastTransitionTime")) << "it has been false since the first";
  writer_.Write(Named("web"), "0/5 nodes");
  writer_.Write(Named("web"), "0/28 nodes");  // As it is.
  Pass(minutes(2));
  EXPECT_EQ(Sent(), 2u);
}

TEST_F(Conditions, ManyAreWrittenAFewAtATime) {
  is_held_ = true;
  for (int i = 0; i < 300; ++i) writer_.Write(Named("web-" + std::to_string(i)), "0/1 nodes");
  ASSERT_TRUE(Until([&] { return Sent() == 4; }));
  Pass(seconds(20));  // Who waited for a connection would reach its deadline in ten more.
  EXPECT_EQ(Sent(), 4u);
  EXPECT_EQ(writer_.unwritten(), 300u);
  is_held_ = false;
  EXPECT_TRUE(UntilWritten(300));
  EXPECT_EQ(writer_.counts().failed, 0);
}

TEST_F(Conditions, OfPodsThatMayGetANodeOrWaitNoLongerAreNotWritten) {
  status_ = 500;
  for (const char* pod : {"web", "shop", "cart"}) writer_.Write(Named(pod), "0/1 nodes");
  ASSERT_TRUE(Until([&] { return Sent() >= 3; }, milliseconds(0)));
  ASSERT_TRUE(Until([&] { return writer_.counts().failed >= 3; }, milliseconds(0)));
  writer_.Withdraw(Named("web"));
  writer_.Forget(Named("shop"));
  status_ = 200;
  const size_t sent = Sent();
  ASSERT_TRUE(UntilWritten(1));
  Pass(minutes(10));
  ASSERT_EQ(Sent(), sent + 1);
  EXPECT_THAT(server_.requests().back().target, ::testing::HasSubstr("/cart/"));
  writer_.Write(Named("web"), "0/1 nodes");  // Its Binding was refused.
  EXPECT_TRUE(UntilWritten(2));
}

TEST_F(Conditions, AreHeldBackWhileWritingIsNotAllowed) {
  may_write_ = false;
  writer_.Write(Named("web"), "0/1 nodes");
  for (int i = 0; i < 10; ++i) Pass(seconds(1));
  EXPECT_EQ(Sent(), 0u);
  may_write_ = true;
  ASSERT_TRUE(UntilWritten(1));
  EXPECT_EQ(writer_.counts().failed, 0);
}

TEST_F(Conditions, AServerThatRefusesAllIsAskedSeldomAndThosePodsThatItTakesAreNotHeldUp) {
  status_ = 403;
  for (int i = 0; i < 50; ++i) writer_.Write(Named("web-" + std::to_string(i)), "0/1 nodes");
  for (int i = 0; i < 120; ++i) Pass(seconds(5));
  EXPECT_GE(Sent(), 40u);
  EXPECT_LE(Sent(), 200u) << "four at a time, twice a minute";
  status_ = 200;
  EXPECT_TRUE(UntilWritten(50));
}

TEST_F(Conditions, OfAPodThatIsGoneAreNoFailures) {
  status_ = 404;
  writer_.Write(Named("web"), "0/1 nodes");
  ASSERT_TRUE(Until([&] { return Sent() >= 2; }));
  EXPECT_EQ(writer_.counts().failed, 0);
  writer_.Forget(Named("web"));
  EXPECT_EQ(writer_.unwritten(), 0u);
}

}  // namespace
}  // namespace rudderfish::kube
