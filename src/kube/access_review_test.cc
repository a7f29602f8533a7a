// SPDX-License-Identifier: Apache-2.0
#include "kube/access_review.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/faulty_server.h"
#include "tests/support/polling.h"

// What a real server says to it is tried in tests/run_live_test.py.

namespace rudderfish::kube {
namespace {

using testing::Connection;
using ::testing::ElementsAre;
using testing::FaultyServer;
using ::testing::HasSubstr;
using testing::SeenRequest;

const std::vector<Right> kRights = {
    {.verb = "list", .group = "", .resource = "pods", .name_space = "", .name = ""},
    {.verb = "watch", .group = "", .resource = "pods", .name_space = "", .name = ""},
    {.verb = "get",
     .group = "coordination.k8s.io",
     .resource = "leases",
     .name_space = "shop",
     .name = "lease"}};

TEST(AccessReview, EachRightIsAskedAndAnsweredInOrder) {
  FaultyServer server([](const SeenRequest& request, Connection* to) {
    const bool allowed = request.body.find("watch") == std::string::npos;
    to->Answer(201, std::string(R"({"status":{"allowed":)") + (allowed ? "true" : "false") + "}}");
  });
  const auto client = testing::OpenClient({.server = server.url()});
  const auto allowed = ReviewAccess(client.get(), kRights, std::chrono::seconds(20));
  ASSERT_TRUE(allowed.has_value()) << allowed.error().message;
  EXPECT_THAT(*allowed, ElementsAre(true, false, true));
  for (const SeenRequest& request : server.requests()) {
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
  }
}

TEST(AccessReview, ServerThatIsNotThereIsToldWithinTheDeadline) {
  const auto client = testing::OpenClient({.server = "http://127.0.0.1:1"});
  const auto allowed = ReviewAccess(client.get(), kRights, std::chrono::milliseconds(200));
  ASSERT_FALSE(allowed.has_value());
  EXPECT_THAT(allowed.error().message, HasSubstr("127.0.0.1:1"));
}

TEST(AccessReview, BodySaysWhatIsAskedAndNoMore) {
  EXPECT_EQ(internal::AccessReviewBody(kRights[0]),
            R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",)"
            R"("spec":{"resourceAttributes":{"verb":"list","group":"","resource":"pods"}}})");
  EXPECT_THAT(internal::AccessReviewBody(kRights[2]),
              HasSubstr(R"("namespace":"shop","name":"lease")"));
}

TEST(AccessReview, AnswersThatAreNoneAreRefused) {
  for (const char* body : {"", "[]", "{}", R"({"status":{}})", R"({"status":{"allowed":"yes"}})"}) {
    EXPECT_FALSE(internal::ReadAccessReview(body).has_value()) << body;
  }
}

TEST(AccessReview, RulesToAddStandByResourceAndPlace) {
  EXPECT_THAT(
      RulesToAdd(kRights),
      ElementsAre(
          R"(a ClusterRole: {apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]})",
          R"(a Role in namespace shop: {apiGroups: ["coordination.k8s.io"], resources: ["leases"],)"
          R"( resourceNames: ["lease"], verbs: ["get"]})"));
  EXPECT_TRUE(RulesToAdd({}).empty());
}

}  // namespace
}  // namespace rudderfish::kube
