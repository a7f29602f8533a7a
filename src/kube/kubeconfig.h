// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// Which API server to talk to and as whom, found as kubectl finds it: --kubeconfig, else the files
// of $KUBECONFIG merged (of entries of one name the first counts; files that are not there are
// passed over), else ~/.kube/config, else the ServiceAccount of the pod we run in. Relative paths
// are relative to the file they stand in. Unknown keys are left alone, because kubeconfigs belong
// to others. What is wrong in a file is told with file:line:column; values are never shown.

namespace rudderfish::kube {

// A certificate or key in PEM: as text, or the file to read it from when it is needed (again).
struct PemSource {
  std::string text;
  std::filesystem::path file;
  bool empty() const { return text.empty() && file.empty(); }
};

// A program that prints an ExecCredential.
struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string install_hint;
  bool wants_cluster = false;   // provideClusterInfo
  std::string cluster_as_json;  // What it is told of the cluster then.
};

// auth-provider oidc: an id-token, and what it is renewed with (kube/oidc.h).
struct OidcProvider {
  std::string issuer, client_id, client_secret;
  std::string id_token, refresh_token;
  PemSource authority;         // Of the issuer; empty: the system's.
  std::filesystem::path file;  // Where it stands,
  std::string user;            // of which user.
};

enum class ServerCertificate { kVerified, kAccepted };  // The latter: insecure-skip-tls-verify.

struct ClusterAccess {
  std::string origin;  // For messages: context "prod" of /etc/kube/config.

  std::string server;  // https://host[:port][/prefix], without a slash at the end.
  PemSource authority;
  ServerCertificate certificate_check = ServerCertificate::kVerified;
  std::string tls_server_name;  // Empty: the host of `server`.
  std::string proxy_url;        // Empty: as the environment says.

  PemSource certificate;
  PemSource key;
  std::string token;
  std::filesystem::path token_file;  // Goes before `token`.
  std::optional<ExecPlugin> exec;
  std::optional<OidcProvider> oidc;

  std::string as_user;  // Impersonation.
  std::string as_uid;
  std::vector<std::string> as_groups;

  std::string name_space;  // Of commands that name none.
};

// What the command line says; empty: not said.
struct KubeconfigChoice {
  std::string kubeconfig;
  std::string context;
  std::string name_space;
};

// What the process was given.
struct KubeEnvironment {
  std::string kubeconfig;  // $KUBECONFIG
  std::string home;        // $HOME
  std::string service_host;
  std::string service_port;
  std::filesystem::path service_account = "/var/run/secrets/kubernetes.io/serviceaccount";

  static KubeEnvironment OfProcess();
};

Result<ClusterAccess> FindCluster(const KubeconfigChoice& choice,
                                  const KubeEnvironment& environment);

// The same from texts, for which no file is opened.
struct KubeconfigText {
  std::filesystem::path path;
  std::string text;
};
Result<ClusterAccess> ParseKubeconfigs(const std::vector<KubeconfigText>& files,
                                       const KubeconfigChoice& choice);

// What its file says of it now: kubectl, or a login, may have renewed its tokens.
Result<OidcProvider> ReadOidcAgain(const OidcProvider& provider);

}  // namespace rudderfish::kube
