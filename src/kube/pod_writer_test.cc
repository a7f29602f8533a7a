// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/faulty_server.h"
#include "tests/support/polling.h"

// That no Binding goes out once its sender may not bind any more, wherever it waits.

namespace rudderfish::kube {
namespace {

using std::chrono::milliseconds;
using testing::Connection;
using testing::FaultyServer;
using testing::SeenRequest;

class Bindings : public ::testing::Test {
 protected:
  void Open(const FaultyServer& server, ClusterAccess access = {}) {
    access.server = server.url();
    ApiClientOptions options = testing::QuickOptions();
    options.requests_max = 1;
    client_ = testing::OpenClient(std::move(access), options);
  }
  void Bind(const std::string& name) {
    BindPod(
        client_.get(), {"shop", name, "uid-" + name}, "edge-1",
        [this] {
          if (on_asked_) on_asked_();
          return may_bind_.load();
        },
        [this](ApiAnswer answer) { answers_.push_back(std::move(answer)); });
  }
  bool Answered(size_t count) {
    return testing::Eventually(client_.get(), [&] { return answers_.size() == count; });
  }
  static void ExpectHeldBack(const ApiAnswer& answer) {
    EXPECT_EQ(answer.status.code, 0);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.outcome.error().code, ErrorCode::kFailedPrecondition);
    EXPECT_THAT(answer.outcome.error().message, ::testing::HasSubstr("held back, and not sent"));
  }

  std::atomic<bool> may_bind_ = true;
  std::function<void()> on_asked_;
  std::unique_ptr<ApiClient> client_;
  std::vector<ApiAnswer> answers_;
};

TEST_F(Bindings, ThatWaitForRoomAreHeldBack) {
  std::atomic<bool> is_answered = false;
  FaultyServer server([&](const SeenRequest&, Connection* to) {
    while (!is_answered) std::this_thread::sleep_for(milliseconds(1));
    to->Answer(201, "{}");
  });
  Open(server);
  for (const char* name : {"web-1", "web-2", "web-3"}) Bind(name);
  const bool is_sent =
      testing::Eventually(client_.get(), [&] { return server.requests().size() == 1; });
  may_bind_ = false;
  is_answered = true;
  ASSERT_TRUE(is_sent && Answered(3));
  EXPECT_TRUE(answers_[0].ok()) << "what was sent is sent";
  ExpectHeldBack(answers_[1]);
  ExpectHeldBack(answers_[2]);
  EXPECT_EQ(server.requests().size(), 1u);
  may_bind_ = true;
  Bind("web-2");
  ASSERT_TRUE(Answered(4));
  EXPECT_TRUE(answers_[3].ok());
}

TEST_F(Bindings, ThatWereThrottledAreNotRepeated) {
  FaultyServer server([&](const SeenRequest&, Connection* to) {
    may_bind_ = false;
    to->Answer(429, "{}");
  });
  Open(server);
  Bind("web-1");
  ASSERT_TRUE(Answered(1));
  ExpectHeldBack(answers_[0]);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(Bindings, AreAskedForOnceThereIsAConnection) {
  FaultyServer server([](const SeenRequest&, Connection* to) { to->Answer(201, "{}"); },
                      testing::Transport::kTls);
  ClusterAccess access;
  access.authority.text = server.certificate();
  Open(server, access);
  int asked = 0;
  on_asked_ = [&] {
    ++asked;
    EXPECT_EQ(server.connections(), 1) << "who connects slowly is asked afterwards";
    EXPECT_TRUE(server.requests().empty());
    may_bind_ = false;
  };
  Bind("web-1");
  ASSERT_TRUE(Answered(1));
  EXPECT_EQ(asked, 1);
  ExpectHeldBack(answers_[0]);
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace rudderfish::kube
