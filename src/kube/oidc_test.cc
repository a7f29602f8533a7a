// SPDX-License-Identifier: Apache-2.0
#include "kube/oidc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/files.h"
#include "kube/base64.h"
#include "kube/credentials.h"
#include "tests/support/faulty_server.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::Connection;
using rudderfish::testing::FaultyServer;
using rudderfish::testing::SeenRequest;
using ::testing::HasSubstr;
using ::testing::Not;

// A JWT of that end, in seconds since 1970.
std::string IdToken(int64_t end, const std::string& who = "anna") {
  std::string claims =
      EncodeBase64("{\"sub\":\"" + who + "\",\"exp\":" + std::to_string(end) + "}");
  for (char& c : claims) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return "e30." + claims.substr(0, claims.find('=')) + ".signature";
}

constexpr int64_t kPast = 1'600'000'000, kFuture = 7'000'000'000;

TEST(OidcIdToken, SaysWhenItEnds) {
  EXPECT_EQ(ExpiryOf(IdToken(kFuture)), Date(std::chrono::seconds(kFuture)));
  for (const char* odd : {"", "an-id", "a.b", "a.?.c", "a.e30.c", "a.YWJj.c"})
    EXPECT_EQ(ExpiryOf(odd), std::nullopt) << odd;
}

class OidcUser : public ::testing::Test {
 protected:
  OidcUser()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("oidc-" + std::to_string(getpid()) + ".yaml")),
        issuer_([this](const SeenRequest& request, Connection* connection) {
          if (request.target == "/realm/.well-known/openid-configuration") {
            connection->Answer(200, "{\"token_endpoint\":\"" + issuer_.url() + "/token?x=1\"}");
          } else if (wants_body_ && request.body.find("client_secret") == std::string::npos) {
            connection->Answer(401, R"({"error":"invalid_client"})");
          } else {
            connection->Answer(status_, answer_);
          }
        }) {}
  ~OidcUser() override { std::filesystem::remove(path_); }

  Credentials Open(const std::string& tokens) {
    EXPECT_TRUE(WriteFileAtomically(path_, Text(tokens)).has_value());
    return Credentials::Open(FindCluster({.kubeconfig = path_}, {}).value(), &clock_).value();
  }
  std::string Text(const std::string& tokens) const {
    return "clusters: [{name: c, cluster: {server: https://c}}]  # mine\n"
           "contexts: [{name: x, context: {cluster: c, user: anna}}]\ncurrent-context: x\n"
           "users:\n- name: anna\n  user:\n    auth-provider:\n      name: oidc\n      config: "
           "{idp-issuer-url: '" +
           issuer_.url() + "/realm/', client-id: shop, client-secret: s3cr+t, " + tokens + "}\n";
  }
  Credentials::Standing Await(Credentials* credentials) {
    Credentials::Standing standing = credentials->Check();
    while (standing == Credentials::Standing::kPending) {
      EXPECT_NE(credentials->wake(), Instant::max());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      standing = credentials->Check();
    }
    return standing;
  }

  SystemClock clock_;
  std::filesystem::path path_;
  std::atomic<bool> wants_body_ = false;
  std::atomic<int> status_ = 200;
  std::string answer_ = "{\"id_token\":\"" + IdToken(kFuture) + "\",\"refresh_token\":\"rotated\"}";
  FaultyServer issuer_;
};

TEST_F(OidcUser, AnIdTokenThatIsGoodIsUsedAsItIs) {
  auto credentials = Open("id-token: " + IdToken(kFuture, "bob") + ", refresh-token: old");
  EXPECT_EQ(credentials.Check(), Credentials::Standing::kReady);
  EXPECT_EQ(credentials.identity()->token, IdToken(kFuture, "bob"));
  EXPECT_TRUE(issuer_.requests().empty());
}

TEST_F(OidcUser, OneThatHasExpiredIsRenewedAndAReplacedRefreshTokenIsKept) {
  auto credentials = Open("id-token: " + IdToken(kPast) + ", refresh-token: old-one");
  EXPECT_EQ(Await(&credentials), Credentials::Standing::kReady);
  EXPECT_EQ(credentials.identity()->token, IdToken(kFuture));
  const auto requests = issuer_.requests();
  ASSERT_EQ(requests.size(), 2);
  EXPECT_EQ(requests[1].method, "POST");
  EXPECT_EQ(requests[1].target, "/token?x=1");
  EXPECT_EQ(requests[1].body, "grant_type=refresh_token&refresh_token=old-one");
  EXPECT_THAT(requests[1].head, HasSubstr("Authorization: Basic " + EncodeBase64("shop:s3cr%2Bt")));
  EXPECT_EQ(ReadFile(path_), Text("id-token: " + IdToken(kPast) + ", refresh-token: rotated"));
}

TEST_F(OidcUser, AnIssuerMayWantTheClientsSecretInTheBody) {
  wants_body_ = true;
  auto credentials = Open("refresh-token: old");
  EXPECT_EQ(Await(&credentials), Credentials::Standing::kReady);
  ASSERT_EQ(issuer_.requests().size(), 3);
  EXPECT_EQ(issuer_.requests()[2].body,
            "grant_type=refresh_token&refresh_token=old&client_id=shop&client_secret=s3cr%2Bt");
}

TEST_F(OidcUser, ATokenThatKubectlHasRenewedMeanwhileIsTakenFromTheFile) {
  auto credentials = Open("id-token: " + IdToken(kFuture) + ", refresh-token: old");
  ASSERT_TRUE(
      WriteFileAtomically(path_, Text("id-token: " + IdToken(kFuture + 1) + ", refresh-token: b"))
          .has_value());
  EXPECT_TRUE(credentials.Reject(*credentials.identity()));
  EXPECT_EQ(Await(&credentials), Credentials::Standing::kReady);
  EXPECT_EQ(credentials.identity()->token, IdToken(kFuture + 1));
  EXPECT_TRUE(issuer_.requests().empty());
}

TEST_F(OidcUser, ARefusalNamesTheIssuerAndNoSecret) {
  status_ = 400;
  answer_ = R"({"error":"invalid_grant","error_description":"token s3cr+t"})";
  auto credentials = Open("refresh-token: old-one");
  EXPECT_EQ(Await(&credentials), Credentials::Standing::kFailed);
  EXPECT_EQ(credentials.error().message,
            "OIDC issuer " + issuer_.url() +
                "/realm/: status 400 (invalid_grant) for the refresh token; log in again");
  status_ = 200;
  answer_ = "{\"access_token\":\"s3cr+t\"}";
  auto scoped = Open("refresh-token: old-one");
  EXPECT_EQ(Await(&scoped), Credentials::Standing::kFailed);
  EXPECT_THAT(scoped.error().message, HasSubstr("log in with the scope openid"));
  EXPECT_THAT(scoped.error().message, Not(HasSubstr("s3cr")));
}

TEST_F(OidcUser, WithoutARefreshTokenAnExpiredOneSaysHowToGoOn) {
  auto credentials = Open("id-token: " + IdToken(kPast));
  EXPECT_EQ(credentials.Check(), Credentials::Standing::kFailed);
  EXPECT_THAT(credentials.error().message, HasSubstr("refresh-token); log in again"));
  EXPECT_TRUE(issuer_.requests().empty());
}

}  // namespace
}  // namespace rudderfish::kube
