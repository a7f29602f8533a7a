// SPDX-License-Identifier: Apache-2.0
#include "kube/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Error ErrorOf(int code, const std::string& path, Method method = Method::kGet) {
  return ToError(ParseStatus("", code), method, path);
}

TEST(ApiStatus, StatusObjectsAreRead) {
  const ApiStatus status = ParseStatus(
      R"({"kind":"Status","status":"Failure","message":"too busy","reason":"TooManyRequests",)"
      R"("details":{"retryAfterSeconds":3},"code":429})",
      429);
  EXPECT_EQ(status.reason, "TooManyRequests");
  EXPECT_EQ(status.message, "too busy");
  EXPECT_EQ(status.retry_after, std::chrono::seconds(3));
  EXPECT_FALSE(status.IsExpired());
}

TEST(ApiStatus, ExpiredVersionsAreKnownByCodeAndByReason) {
  EXPECT_TRUE(ParseStatus("", 410).IsExpired());
  EXPECT_TRUE(ParseStatus(R"({"kind":"Status","reason":"Expired","code":410})", 200).IsExpired());
}

TEST(ApiStatus, VersionsAheadOfTheServerAreKnownByTheirCause) {
  const ApiStatus status =
      ParseStatus(R"({"kind":"Status","reason":"Timeout","message":"Too large",)"
                  R"("details":{"causes":[{"reason":"ResourceVersionTooLarge"}]},"code":504})",
                  504);
  EXPECT_TRUE(status.is_version_too_large);
}

TEST(ApiStatus, AnswersThatAreNoStatusAreToldByTheirCode) {
  const ApiStatus status = ParseStatus("<html>Bad Gateway</html>", 502);
  EXPECT_EQ(status.code, 502);
  EXPECT_EQ(status.message, "server error");
}

TEST(ApiStatus, ForbiddenNamesTheRuleToAdd) {
  EXPECT_THAT(ErrorOf(403, "/api/v1/pods?limit=1").message,
              HasSubstr("a ClusterRole of this user: {apiGroups: [\"\"], resources: [\"pods\"], "
                        "verbs: [\"list\"]}"));
  EXPECT_THAT(ErrorOf(403, "/api/v1/pods?watch=1").message,
              HasSubstr("verbs: [\"list\", \"watch\"]"));
  EXPECT_THAT(
      ErrorOf(403, "/apis/apps/v1/namespaces/shop/deployments/cart/scale", Method::kMergePatch)
          .message,
      HasSubstr("a Role in namespace shop, or a ClusterRole, of this user: {apiGroups: "
                "[\"apps\"], resources: [\"deployments/scale\"], verbs: [\"patch\"]}"));
  EXPECT_EQ(ErrorOf(403, "/metrics").message, "GET /metrics: 403 forbidden");
}

TEST(ApiStatus, ForbiddenToAnonymousAsksForCredentialsInsteadOfARule) {
  ApiStatus status;
  status.code = 403;
  status.message = R"(pods is forbidden: User "system:anonymous" cannot list resource "pods")";
  const std::string message = ToError(status, Method::kGet, "/api/v1/pods").message;
  EXPECT_THAT(message, HasSubstr("names no credentials"));
  EXPECT_THAT(message, Not(HasSubstr("ClusterRole")));
}

TEST(ApiStatus, CodesBecomeThoseOfResults) {
  EXPECT_EQ(ErrorOf(404, "/api/v1/pods/x").code, ErrorCode::kNotFound);
  EXPECT_EQ(ErrorOf(409, "/api/v1/pods/x").code, ErrorCode::kConflict);
  EXPECT_EQ(ErrorOf(503, "/api/v1/pods/x").code, ErrorCode::kUnavailable);
  EXPECT_EQ(ErrorOf(401, "/api/v1/pods/x").code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(ErrorOf(422, "/api/v1/pods/x").code, ErrorCode::kInvalidArgument);
}

TEST(ApiPath, NamespacesAreResourcesThemselves) {
  EXPECT_EQ(ParseApiPath("/api/v1/namespaces").resource, "namespaces");
  EXPECT_EQ(ParseApiPath("/api/v1/namespaces/shop").name, "shop");
  EXPECT_EQ(ParseApiPath("/api/v1/namespaces/shop/pods").name_space, "shop");
  EXPECT_EQ(ParseApiPath("/version").resource, "");
}

}  // namespace
}  // namespace rudderfish::kube
