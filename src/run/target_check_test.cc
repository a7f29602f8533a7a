// SPDX-License-Identifier: Apache-2.0
#include "run/target_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tests/support/faulty_server.h"
#include "tests/support/kube_json.h"
#include "tests/support/polling.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Connection;
using ::testing::HasSubstr;
using testing::NodeJson;
using testing::PodJson;
using testing::SeenRequest;

constexpr Duration kListLimit = seconds(20);
constexpr char kEndOfList[] =
    R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":)"
    R"({"k8s.io/initial-events-end":"true"}}}})"
    "\n";

std::string EventLine(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

// Pod `web` on node `a`, and node `b`, which is cordoned once the test says so.
MovedPod Named(const std::string& name) {
  return {.id = {.object_namespace = "default", .name = name}};
}

class TargetCheckTest : public ::testing::Test {
 protected:
  TargetCheckTest()
      : server_([this](const SeenRequest& request, Connection* to) { Serve(request, to); }),
        client_(testing::OpenClient({.server = server_.url()})),
        check_(client_.get()) {}

  void Serve(const SeenRequest& request, Connection* to) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    const std::string resource = path.substr(path.rfind('/') + 1);
    to->BeginStream();
    if (resource == "nodes") {
      to->Chunk(EventLine("ADDED", NodeJson{.name = "a"}.Text()));
      to->Chunk(EventLine("ADDED", NodeJson{.name = "b"}.Text()));
    }
    if (resource == "pods")
      to->Chunk(EventLine(
          "ADDED",
          PodJson{.name = "web", .owner = "web-1", .node = "a", .more_spec = more_spec_}.Text()));
    to->Chunk(kEndOfList);
    if (resource == "nodes") {
      while (!is_cordoned_ && !is_over_) std::this_thread::sleep_for(milliseconds(1));
      to->Chunk(EventLine("MODIFIED", NodeJson{.name = "b",
                                               .spec = R"({"unschedulable":true,"taints":[{"key":)"
                                                       R"("node.kubernetes.io/unschedulable",)"
                                                       R"("effect":"NoSchedule"}]})"}
                                          .Text()));
    }
    to->Hang();
  }
  ~TargetCheckTest() override { is_over_ = true; }

  std::map<std::string, int> Lists() const {  // By path.
    std::map<std::string, int> lists;
    for (const SeenRequest& request : server_.requests())
      ++lists[request.target.substr(0, request.target.find('?'))];
    return lists;
  }

  std::atomic<bool> is_cordoned_ = false, is_over_ = false;
  std::string more_spec_;
  testing::FaultyServer server_;
  std::unique_ptr<kube::ApiClient> client_;
  TargetCheck check_;
};

TEST_F(TargetCheckTest, ManyQuestionsCostOneListAndTheLastKnowsWhatHasChanged) {
  for (int k = 0; k < 5; ++k) {
    const Result<std::string> why = check_.WhyRefuses(Named("web"), "b", kListLimit);
    ASSERT_TRUE(why) << why.error().message;
    EXPECT_EQ(*why, "");
  }
  is_cordoned_ = true;
  std::string why;
  const Instant end = testing::RealClock().Now() + seconds(20);
  while (why.empty() && testing::RealClock().Now() < end) {
    check_.Poll();
    why = check_.WhyRefuses(Named("web"), "b", kListLimit).value_or("none");
  }
  EXPECT_THAT(why, HasSubstr("unschedulable"));
  const std::map<std::string, int> lists = Lists();
  EXPECT_GE(lists.size(), 5u);
  for (const auto& [path, times] : lists) EXPECT_EQ(times, 1) << path;
}

// The node that a template names is where its owner wants it; that of an earlier move is not.
TEST_F(TargetCheckTest, ANodeThatTheTemplateNamesIsKept) {
  more_spec_ = R"(,"nodeSelector":{"kubernetes.io/hostname":"a"})";
  MovedPod web = Named("web");
  EXPECT_THAT(check_.WhyRefuses(web, "b", kListLimit).value_or("none"), HasSubstr("selector"));
  web.is_replacement = true;
  EXPECT_EQ(check_.WhyRefuses(web, "b", kListLimit).value_or("none"), "");
}

TEST_F(TargetCheckTest, AsksNothingBeforeTheFirstQuestion) {
  check_.Poll();
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(TargetCheckTest, APodOrANodeThatIsNotThereIsNotFound) {
  const Result<std::string> pod = check_.WhyRefuses(Named("gone"), "b", kListLimit);
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().message, "pod default/gone is not found");
  const Result<std::string> node = check_.WhyRefuses(Named("web"), "c", kListLimit);
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().message, "node c is not found");
}

// Once the server is silent for long, what was seen of it decides nothing.
TEST(TargetCheck, WhatIsTooOldIsNoAnswer) {
  ManualClock clock;
  std::atomic<bool> is_broken = false;
  testing::FaultyServer server([&](const SeenRequest& request, Connection* to) {
    if (is_broken) return to->Reset();
    const std::string path = request.target.substr(0, request.target.find('?'));
    to->BeginStream();
    if (path == "/api/v1/nodes") to->Chunk(EventLine("ADDED", NodeJson{.name = "b"}.Text()));
    if (path == "/api/v1/pods")
      to->Chunk(EventLine("ADDED", PodJson{.name = "web", .owner = "w", .node = "b"}.Text()));
    to->Chunk(kEndOfList);
    to->EndStream();  // The client watches again.
  });
  const auto client = testing::OpenClient({.server = server.url()}, testing::QuickOptions(), clock);
  TargetCheck check(client.get());
  ASSERT_TRUE(check.WhyRefuses(Named("web"), "b", kListLimit));
  is_broken = true;
  clock.Advance(seconds(60));
  const Result<std::string> why = check.WhyRefuses(Named("web"), "b", kListLimit);
  ASSERT_FALSE(why);
  EXPECT_EQ(why.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(why.error().message, HasSubstr("too old"));
}

}  // namespace
}  // namespace rudderfish
