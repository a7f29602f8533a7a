// SPDX-License-Identifier: Apache-2.0
#include "kube/exec_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "kube/credentials.h"

namespace rudderfish::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kV1[] = "client.authentication.k8s.io/v1";

std::string Credential(const std::string& status, const std::string& version = kV1) {
  return R"({"apiVersion":")" + version + R"(","kind":"ExecCredential","status":)" + status + "}";
}

std::string ErrorOf(const std::string& output) {
  const auto credential = ParseExecCredential(output, kV1);
  return credential.has_value() ? "no error" : credential.error().message;
}

TEST(ExecCredential, TokensCertificatesAndDatesAreRead) {
  const auto credential = ParseExecCredential(
      Credential(R"({"token":"t","clientCertificateData":"c","clientKeyData":"k",)"
                 R"("expirationTimestamp":"2026-11-21T07:26:52Z"})"),
      kV1);
  ASSERT_TRUE(credential.has_value()) << credential.error().message;
  EXPECT_EQ(credential->token, "t");
  EXPECT_EQ(credential->certificate, "c");
  EXPECT_EQ(credential->key, "k");
  EXPECT_TRUE(credential->expires.has_value());
}

TEST(ExecCredential, AnythingElseIsRefusedWithoutShowingIt) {
  EXPECT_THAT(ErrorOf("s3cret"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("no ExecCredential"));
  EXPECT_THAT(ErrorOf(Credential("{}", "client.authentication.k8s.io/v1beta1")),
              HasSubstr("not of apiVersion"));
  EXPECT_THAT(ErrorOf(Credential("{}")), HasSubstr("neither a token"));
  EXPECT_THAT(ErrorOf(Credential("7")), HasSubstr("no status"));
  EXPECT_THAT(ErrorOf(Credential(R"({"token":"s3cret","clientKeyData":"k"})")),
              HasSubstr("without one"));
  EXPECT_THAT(ErrorOf(Credential(R"({"token":"s3cret","expirationTimestamp":"s3cret"})")),
              Not(HasSubstr("s3cret")));
  EXPECT_THAT(ErrorOf(Credential(R"({"token":"s3\ncret"})")), HasSubstr("more than one line"));
}

// A user whose plugin is a shell script.
class PluginOf : public ::testing::Test {
 protected:
  PluginOf() : folder_(::testing::TempDir() + "/plugin-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~PluginOf() override { std::filesystem::remove_all(folder_); }

  ExecPlugin Plugin(const std::string& script) {
    return {.api_version = kV1, .command = "/bin/sh", .arguments = {"-c", script}};
  }

  Credentials Open(const std::string& script, Duration limit = seconds(20)) {
    ClusterAccess access{.server = "https://127.0.0.1"};
    access.exec = Plugin(script);
    auto credentials = Credentials::Open(std::move(access), &clock_, limit);
    EXPECT_TRUE(credentials.has_value());
    return *std::move(credentials);
  }

  // Waits for the plugin to end.
  Credentials::Standing Await(Credentials* credentials) {
    Credentials::Standing standing = credentials->Check();
    while (standing == Credentials::Standing::kPending) {
      pollfd waited{credentials->descriptor(), POLLIN, 0};
      poll(&waited, 1, 20);
      standing = credentials->Check();
    }
    return standing;
  }

  int Runs() const { return static_cast<int>(std::filesystem::file_size(folder_ / "runs")); }

  SystemClock clock_;
  std::filesystem::path folder_;
};

TEST_F(PluginOf, GivesATokenAndIsToldTheCluster) {
  ExecPlugin plugin = Plugin("echo \"$KUBERNETES_EXEC_INFO\" > \"$HERE/told\"; echo '" +
                             Credential(R"({"token":"t"})") + "'");
  plugin.environment = {{"HERE", folder_}};
  plugin.wants_cluster = true;
  plugin.cluster_as_json = R"({"server":"https://east"})";
  ClusterAccess access;
  access.exec = plugin;
  auto credentials = Credentials::Open(access, &clock_);
  ASSERT_TRUE(credentials.has_value());
  EXPECT_EQ(Await(&*credentials), Credentials::Standing::kReady);
  EXPECT_EQ(credentials->identity()->token, "t");
  EXPECT_EQ(ReadFile(folder_ / "told"),
            R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":)"
            R"({"interactive":false,"cluster":{"server":"https://east"}}})"
            "\n");
}

TEST_F(PluginOf, RunsOnceWhileItsCredentialIsGood) {
  auto credentials =
      Open("printf x >> " + (folder_ / "runs").string() + "; echo '" +
           Credential(R"({"token":"t","expirationTimestamp":"2200-01-01T00:00:00Z"})") + "'");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Await(&credentials), Credentials::Standing::kReady);
  EXPECT_EQ(Runs(), 1);
}

TEST_F(PluginOf, ThatHangsIsKilledWithAllItStarted) {
  auto credentials = Open("echo $$ > " + (folder_ / "pid").string() + "; sleep 1000 & sleep 1000",
                          milliseconds(200));
  EXPECT_EQ(Await(&credentials), Credentials::Standing::kFailed);
  EXPECT_THAT(credentials.error().message, HasSubstr("gave no answer in time and was killed"));
  EXPECT_EQ(credentials.error().code, ErrorCode::kDeadlineExceeded);
  const pid_t group = static_cast<pid_t>(atoi(ReadFile(folder_ / "pid")->c_str()));
  ASSERT_GT(group, 1);
  // The kernel takes a moment to bury the second one, whose parent is not us.
  for (int i = 0; i < 400 && kill(-group, 0) == 0; ++i) usleep(5000);
  EXPECT_NE(kill(-group, 0), 0);
}

TEST_F(PluginOf, ThatFailsIsToldByItsStatusAlone) {
  auto credentials = Open("echo s3cret; echo s3cret >&2; exit 3");
  EXPECT_EQ(Await(&credentials), Credentials::Standing::kFailed);
  EXPECT_EQ(credentials.error().message,
            "exec plugin /bin/sh: it ended with status 3; run it by hand to see why");
}

TEST_F(PluginOf, ThatPrintsWithoutEndIsKilled) {
  auto credentials = Open("yes");
  EXPECT_EQ(Await(&credentials), Credentials::Standing::kFailed);
  EXPECT_THAT(credentials.error().message, HasSubstr("prints without end"));
}

TEST_F(PluginOf, ThatIsNotThereIsNamedWithItsHint) {
  ClusterAccess access;
  access.exec =
      ExecPlugin{.api_version = kV1, .command = "/no/such/login", .install_hint = "get it\nthere"};
  auto credentials = Credentials::Open(access, &clock_);
  ASSERT_TRUE(credentials.has_value());
  EXPECT_EQ(credentials->Check(), Credentials::Standing::kFailed);
  EXPECT_EQ(
      credentials->error().message,
      "exec plugin /no/such/login cannot be started: No such file or directory: get it there");
}

TEST(Credentials, FilesAreReadAgainEveryMinute) {
  const std::string path = ::testing::TempDir() + "/minute-token-" + std::to_string(getpid());
  ASSERT_TRUE(WriteFileAtomically(path, "first\n").has_value());
  ManualClock clock;
  ClusterAccess access;
  access.token_file = path;
  auto credentials = Credentials::Open(access, &clock);
  ASSERT_TRUE(credentials.has_value());
  ASSERT_TRUE(WriteFileAtomically(path, "second\n").has_value());
  clock.Advance(seconds(59));
  EXPECT_EQ(credentials->Check(), Credentials::Standing::kReady);
  EXPECT_EQ(credentials->identity()->token, "first");
  clock.Advance(seconds(1));
  credentials->Check();
  EXPECT_EQ(credentials->identity()->token, "second");
  unlink(path.c_str());
  clock.Advance(seconds(60));  // What was read last stays good.
  EXPECT_EQ(credentials->Check(), Credentials::Standing::kReady);
  EXPECT_EQ(credentials->identity()->token, "second");
}

TEST(Credentials, MissingFilesAreNamed) {
  ClusterAccess access;
  access.token_file = "/no/such/token";
  const SystemClock clock;
  const auto credentials = Credentials::Open(access, &clock);
  ASSERT_FALSE(credentials.has_value());
  EXPECT_THAT(credentials.error().message, HasSubstr("/no/such/token"));
}

}  // namespace
}  // namespace rudderfish::kube
