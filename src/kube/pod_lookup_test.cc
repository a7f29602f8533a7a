// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_lookup.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/faulty_server.h"
#include "tests/support/polling.h"

namespace rudderfish::kube {
namespace {

using testing::Connection;
using testing::FaultyServer;
using testing::SeenRequest;

const PodIdentity kLookedUp{"shop", "web-1", "u1"};

Result<PodStanding> Read(std::string_view items) {
  return internal::ReadPodStanding(
      R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":)" + std::string(items) + "}",
      kLookedUp);
}

TEST(PodLookup, SaysWhichNodeThePodHas) {
  const auto found = Read(R"([{"metadata":{"name":"web-1","uid":"u1"},"spec":{"nodeName":"edge-1"},
                               "status":{"phase":"Running"}}])");
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_TRUE(found->is_there);
  EXPECT_FALSE(found->is_terminating);
  EXPECT_EQ(found->node, "edge-1");
}

TEST(PodLookup, APodWithoutANodeIsThereAndMayEnd) {
  const auto found = Read(R"([{"metadata":{"name":"web-1","uid":"u1",
                               "deletionTimestamp":"2026-11-24T00:00:00Z"},"spec":{}}])");
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_TRUE(found->is_there);
  EXPECT_TRUE(found->is_terminating);
  EXPECT_EQ(found->node, "");
}

TEST(PodLookup, AnotherPodOfThatNameOneThatHasEndedAndNoneAreGone) {
  for (const char* items :
       {"[]", "null", R"([{"metadata":{"uid":"u2"},"spec":{"nodeName":"edge-1"}}])",
        R"([{"metadata":{"uid":"u1"},"spec":{"nodeName":"a"},"status":{"phase":"Succeeded"}}])",
        R"([{"metadata":{"uid":"u1"},"status":{"phase":"Failed"}}])"}) {
    const auto found = Read(items);
    ASSERT_TRUE(found.has_value()) << items;
    EXPECT_FALSE(found->is_there) << items;
  }
}

TEST(PodLookup, AnAnswerOfSomebodyElseSaysNothing) {
  for (const char* answer : {"", "{}", "[]", "<html>", R"({"kind":"Status","code":200})",
                             R"({"kind":"PodList","items":"none"})"})
    EXPECT_FALSE(internal::ReadPodStanding(answer, kLookedUp).has_value()) << answer;
}

TEST(PodLookup, AsksForOneNameAndSaysWhatItDidNotHear) {
  std::atomic<int> status = 200;
  FaultyServer server([&](const SeenRequest&, Connection* to) {
    to->Answer(status, R"({"kind":"PodList","items":[]})");
  });
  const auto client = testing::OpenClient({.server = server.url()});
  std::optional<Result<PodStanding>> heard;
  const auto look_up = [&] {
    heard.reset();
    LookUpPod(client.get(), kLookedUp, [&](const Result<PodStanding>& found) { heard = found; });
    return testing::Eventually(client.get(), [&] { return heard.has_value(); });
  };
  ASSERT_TRUE(look_up());
  ASSERT_TRUE(heard->has_value());
  EXPECT_FALSE((*heard)->is_there);
  EXPECT_EQ(server.requests()[0].method, "GET");
  EXPECT_EQ(server.requests()[0].target,
            "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dweb-1");
  status = 404;  // Of something between.
  ASSERT_TRUE(look_up());
  EXPECT_FALSE(heard->has_value());
}

}  // namespace
}  // namespace rudderfish::kube
