// SPDX-License-Identifier: Apache-2.0
#include "kube/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "base/files.h"

namespace rudderfish::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTwoContexts[] = R"(apiVersion: v1
kind: Config
current-context: prod
clusters:
- name: east
  cluster:
    server: https://east.example:6443/
    certificate-authority-data: Q0E=
- name: west
  cluster:
    server: https://west.example
    certificate-authority: certs/ca.pem
    tls-server-name: kubernetes.internal
    proxy-url: http://proxy.example:3128
users:
- name: anna
  user:
    client-certificate-data: Q0VSVA==
    client-key-data: S0VZ
- name: robot
  user:
    token: open-sesame
    as: deployer
    as-groups: [builders]
contexts:
- name: prod
  context: {cluster: east, user: anna, namespace: shop}
- name: test
  context: {cluster: west, user: robot}
)";

Result<ClusterAccess> Parse(const std::string& text, const KubeconfigChoice& choice = {}) {
  return ParseKubeconfigs({{"/etc/kube/config", text}}, choice);
}

std::string ErrorOf(const std::string& text, const KubeconfigChoice& choice = {}) {
  const auto access = Parse(text, choice);
  return access.has_value() ? "no error" : access.error().message;
}

// kTwoContexts with one part replaced.
std::string With(const std::string& old_part, const std::string& new_part) {
  std::string text = kTwoContexts;
  const size_t at = text.find(old_part);
  EXPECT_NE(at, std::string::npos) << old_part;
  return text.replace(at, old_part.size(), new_part);
}

TEST(Kubeconfig, CurrentContextChoosesClusterUserAndNamespace) {
  const auto access = Parse(kTwoContexts);
  ASSERT_TRUE(access.has_value()) << access.error().message;
  EXPECT_EQ(access->server, "https://east.example:6443");
  EXPECT_EQ(access->authority.text, "CA");
  EXPECT_EQ(access->certificate.text, "CERT");
  EXPECT_EQ(access->key.text, "KEY");
  EXPECT_EQ(access->name_space, "shop");
  EXPECT_EQ(access->certificate_check, ServerCertificate::kVerified);
}

TEST(Kubeconfig, ContextAndNamespaceCanBeChosen) {
  const auto access = Parse(kTwoContexts, {.context = "test", .name_space = "lab"});
  ASSERT_TRUE(access.has_value()) << access.error().message;
  EXPECT_EQ(access->server, "https://west.example");
  EXPECT_EQ(access->authority.file, "/etc/kube/certs/ca.pem");
  EXPECT_EQ(access->tls_server_name, "kubernetes.internal");
  EXPECT_EQ(access->proxy_url, "http://proxy.example:3128");
  EXPECT_EQ(access->token, "open-sesame");
  EXPECT_EQ(access->as_user, "deployer");
  EXPECT_EQ(access->as_groups, std::vector<std::string>{"builders"});
  EXPECT_EQ(access->name_space, "lab");
}

TEST(Kubeconfig, WhatIsMissingIsNamedWithItsPlace) {
  EXPECT_THAT(ErrorOf(With("current-context: prod", "current-context: prd")),
              HasSubstr("/etc/kube/config:3:18: `current-context`: no context \"prd\""));
  EXPECT_THAT(ErrorOf(kTwoContexts, {.context = "nowhere"}),
              HasSubstr("no context \"nowhere\" in /etc/kube/config; there are: prod, test"));
  EXPECT_THAT(ErrorOf(With("cluster: east, user", "cluster: north, user")),
              HasSubstr("no cluster \"north\" in /etc/kube/config; there are: east, west"));
  EXPECT_THAT(ErrorOf(With("user: anna, name", "user: ann, name")),
              HasSubstr("no user \"ann\" in /etc/kube/config; there are: anna, robot"));
  EXPECT_THAT(ErrorOf(With("current-context: prod\n", "")), HasSubstr("no current-context is set"));
  EXPECT_THAT(ErrorOf(With("    server: https://east.example:6443/\n", "")), HasSubstr("server"));
}

TEST(Kubeconfig, WhatCannotBeUsedIsRefused) {
  EXPECT_THAT(ErrorOf(With("client-key-data: S0VZ", "username: x")),
              HasSubstr("no basic authentication"));
  EXPECT_THAT(
      ErrorOf(With("token: open-sesame", "auth-provider: {name: gcp}"), {.context = "test"}),
      HasSubstr("use an exec plugin"));
  EXPECT_THAT(ErrorOf(With("    client-key-data: S0VZ\n", "")), HasSubstr("without a client-key"));
  EXPECT_THAT(ErrorOf(With("data: Q0E=", "data: '?'")), HasSubstr("this is not base64"));
  EXPECT_THAT(ErrorOf(With("https://east.example:6443/", "ftp://east")), HasSubstr("https://HOST"));
  EXPECT_THAT(ErrorOf(With("https://east.example:6443/", "https://")), HasSubstr("https://HOST"));
  EXPECT_THAT(ErrorOf(With("Q0E=", "Q0E=\n    insecure-skip-tls-verify: true")),
              HasSubstr("nothing is verified"));
  EXPECT_THAT(ErrorOf("kind: Pod"), HasSubstr("no kubeconfig"));
  EXPECT_THAT(ErrorOf("a: [1"), HasSubstr("/etc/kube/config:"));
}

TEST(Kubeconfig, EmptyNamesAndPasswordsAreNone) {
  for (const char* empty : {"username: \"\"\n    password: \"\"", "username:\n    password:"}) {
    const auto access =
        Parse(With("client-key-data: S0VZ", std::string("client-key-data: S0VZ\n    ") + empty));
    ASSERT_TRUE(access) << access.error().message;
    EXPECT_EQ(access->certificate.text, "CERT");
  }
}

TEST(Kubeconfig, TheOidcProviderIsRead) {
  const std::string provider = "auth-provider: {name: oidc, config: {id-token: an-id}}";
  const auto access = Parse(With("token: open-sesame", provider), {.context = "test"});
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->oidc->id_token, "an-id");
  EXPECT_EQ(access->token, "");
  EXPECT_THAT(
      ErrorOf(With("token: open-sesame", "auth-provider: {name: oidc}"), {.context = "test"}),
      HasSubstr("no id-token and no refresh-token"));
  EXPECT_THAT(ErrorOf(With("token: open-sesame",
                           "auth-provider: {name: oidc, config: {id-token: \"a\\r\\nb\"}}"),
                      {.context = "test"}),
              HasSubstr("more than one line"));
}

TEST(Kubeconfig, TwoEntriesOfOneNameInAFileAreRefused) {
  for (const auto& [name, same, list] :
       {std::tuple("west", "east", "clusters"), std::tuple("robot", "anna", "users"),
        std::tuple("test", "prod", "contexts")}) {
    EXPECT_THAT(ErrorOf(With(std::string("- name: ") + name, std::string("- name: ") + same)),
                HasSubstr(std::string("`") + list + "` has two entries with the name \"" + same));
  }
}

TEST(Kubeconfig, EmptyDocumentsAtItsEndArePassedOver) {
  for (const char* end : {"---", "---\n", "---\n# the end\n\n---  \n", "...\n", "# more\n"})
    EXPECT_TRUE(Parse(std::string(kTwoContexts) + end)) << end;
  EXPECT_FALSE(Parse(std::string(kTwoContexts) + "---\nkind: Config\n")) << "not empty";
}

TEST(Kubeconfig, FilesOfCommentsArePassedOver) {
  for (const char* nothing : {"", "\n\n", "# nothing here", "---\n", "  # a\n---\n# b\n"}) {
    const auto access =
        ParseKubeconfigs({{"/a", nothing}, {"/b", kTwoContexts}, {"/c", nothing}}, {});
    ASSERT_TRUE(access) << nothing << ": " << access.error().message;
    EXPECT_EQ(access->server, "https://east.example:6443");
  }
}

TEST(Kubeconfig, SecretsAreNotShown) {
  EXPECT_THAT(ErrorOf(With("open-sesame", "\"open\\nsesame\""), {.context = "test"}),
              Not(HasSubstr("sesame")));
  EXPECT_THAT(ErrorOf(With("S0VZ", "s3cret!")), Not(HasSubstr("s3cret")));
}

TEST(Kubeconfig, InsecureServersAndThoseWithoutSchemeAreUnderstood) {
  const auto insecure =
      Parse(With("certificate-authority-data: Q0E=", "insecure-skip-tls-verify: true"));
  ASSERT_TRUE(insecure.has_value()) << insecure.error().message;
  EXPECT_EQ(insecure->certificate_check, ServerCertificate::kAccepted);
  EXPECT_EQ(Parse(With("https://east.example:6443/", "10.0.0.1:6443"))->server,
            "https://10.0.0.1:6443");
}

TEST(Kubeconfig, ExecPluginIsReadWithWhatItIsTold) {
  const std::string text = With("token: open-sesame", R"(exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/login
      args: [--for, west]
      env: [{name: REGION, value: eu}]
      installHint: get it from the shelf
      provideClusterInfo: true
      interactiveMode: IfAvailable)");
  const auto access = Parse(text, {.context = "test"});
  ASSERT_TRUE(access.has_value()) << access.error().message;
  ASSERT_TRUE(access->exec.has_value());
  EXPECT_EQ(access->exec->command, "/etc/kube/bin/login");
  EXPECT_EQ(access->exec->arguments, (std::vector<std::string>{"--for", "west"}));
  EXPECT_EQ(access->exec->environment.front().second, "eu");
  EXPECT_THAT(access->exec->cluster_as_json, HasSubstr("\"server\":\"https://west.example\""));
  EXPECT_THAT(access->exec->cluster_as_json, HasSubstr("kubernetes.internal"));
}

TEST(Kubeconfig, FirstFileOfAListCountsForAName) {
  const std::string first = R"(clusters: [{name: east, cluster: {server: "https://first"}}])";
  const auto access = ParseKubeconfigs({{"/a", first}, {"/b", kTwoContexts}}, {});
  ASSERT_TRUE(access.has_value()) << access.error().message;
  EXPECT_EQ(access->server, "https://first");
  EXPECT_EQ(access->certificate.text, "CERT");
}

class FoundFiles : public ::testing::Test {
 protected:
  FoundFiles() : folder_(::testing::TempDir() + "/kubeconfigs-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_ / "home/.kube");
    std::filesystem::create_directories(folder_ / "account");
  }
  ~FoundFiles() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ / name, text).has_value());
  }

  std::filesystem::path folder_;
};

TEST_F(FoundFiles, FlagGoesBeforeVariableBeforeHome) {
  Write("flag", With("east.example", "flag.example"));
  Write("variable", With("east.example", "variable.example"));
  Write("home/.kube/config", With("east.example", "home.example"));
  KubeEnvironment environment;
  environment.home = folder_ / "home";
  EXPECT_EQ(FindCluster({}, environment)->server, "https://home.example:6443");
  environment.kubeconfig = (folder_ / "missing").string() + "::" + (folder_ / "variable").string();
  EXPECT_EQ(FindCluster({}, environment)->server, "https://variable.example:6443");
  EXPECT_EQ(FindCluster({.kubeconfig = folder_ / "flag"}, environment)->server,
            "https://flag.example:6443");
  const auto missing = FindCluster({.kubeconfig = folder_ / "missing"}, environment);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST_F(FoundFiles, PluginIsToldTheAuthorityOfAFile) {
  Write("ca.pem", std::string("\0\1\2\3\4", 5));
  Write("config", R"(current-context: a
clusters: [{name: c, cluster: {server: "https://h", certificate-authority: ca.pem}}]
users:
- name: u
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: c, provideClusterInfo: true}
contexts: [{name: a, context: {cluster: c, user: u}}]
)");
  const auto access = FindCluster({.kubeconfig = folder_ / "config"}, {});
  ASSERT_TRUE(access.has_value()) << access.error().message;
  EXPECT_THAT(access->exec->cluster_as_json,
              HasSubstr("\"certificate-authority-data\":\"AAECAwQ=\""));
}

TEST_F(FoundFiles, PodWithoutKubeconfigUsesItsServiceAccount) {
  Write("account/token", "t");
  Write("account/namespace", "shop\n");
  KubeEnvironment environment;
  environment.home = folder_ / "nobody";
  environment.service_account = folder_ / "account";
  environment.service_host = "fd00::1";
  environment.service_port = "443";
  const auto access = FindCluster({}, environment);
  ASSERT_TRUE(access.has_value()) << access.error().message;
  EXPECT_EQ(access->server, "https://[fd00::1]:443");
  EXPECT_EQ(access->token_file, folder_ / "account/token");
  EXPECT_EQ(access->name_space, "shop");
  Write("home/.kube/config", "# nothing here\n");
  environment.home = folder_ / "home";
  EXPECT_EQ(FindCluster({}, environment).value().token_file, folder_ / "account/token");
  environment.service_host.clear();
  const auto nothing = FindCluster({}, environment);
  ASSERT_FALSE(nothing.has_value());
  EXPECT_THAT(nothing.error().message, HasSubstr("no cluster: no kubeconfig"));
}

}  // namespace
}  // namespace rudderfish::kube
