// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/suggest.h"
#include "kube/draft_application.h"
#include "kube/dump.h"
#include "kube/kubeconfig.h"

namespace rudderfish {
namespace {

constexpr Duration kListLimit = std::chrono::seconds(30);

std::vector<std::string> Missing(const kube::Mirror& mirror) {
  std::vector<std::string> missing;
  for (int i = 0; i < kube::kMirroredCount; ++i) {
    const auto resource = static_cast<kube::Resource>(i);
    if (!mirror.IsSynced(resource)) missing.emplace_back(kube::NameOf(resource).kind);
  }
  return missing;
}

Result<ClusterSource> FromDumps(const std::vector<std::filesystem::path>& paths) {
  ClusterSource source;
  source.clock = std::make_unique<SystemClock>();
  source.mirror = std::make_unique<kube::Mirror>(source.clock.get());
  TRY_ASSIGN(const kube::DumpContent content, kube::LoadDumps(paths, source.mirror.get()));
  if (!content.counts.contains(kube::Resource::kNodes)) {
    return Invalid("--from: no dump holds a node; add `kubectl get nodes -o json`");
  }
  for (const auto& path : paths) {
    source.name += (source.name.empty() ? "" : ", ") + path.string();
  }
  source.missing = Missing(*source.mirror);
  return source;
}

Result<ClusterSource> Live(const Arguments& arguments) {
  TRY_ASSIGN(ClusterConnection connection, ConnectToCluster(arguments));
  ClusterSource source;
  source.clock = std::move(connection.clock);
  source.client = std::move(connection.client);
  source.name = source.client->access().server;
  source.mirror = std::make_unique<kube::Mirror>(source.clock.get());
  source.feed = std::make_unique<kube::ClusterFeed>(source.client.get());
  source.feed->Add(source.mirror.get(), kube::EndedPods::kAll);
  TRY(source.feed->Sync(kListLimit));
  source.missing = source.feed->Missing(*source.mirror);
  return source;
}

// Where namespaces are seen, one that is not there is a slip.
Result<void> CheckNamespaces(const kube::Mirror& mirror, const std::vector<std::string>& names) {
  if (!mirror.IsSynced(kube::Resource::kNamespaces)) return {};
  std::vector<std::string_view> known;
  for (const auto& [key, unused] : mirror.namespaces.objects()) known.push_back(key.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return Invalid("--namespace: no namespace is called `{}`{}", name, DidYouMean(name, known));
  }
  return {};
}

}  // namespace

Result<ClusterConnection> ConnectToCluster(const Arguments& arguments) {
  const kube::KubeconfigChoice choice{.kubeconfig = arguments.Text("kubeconfig").value_or(""),
                                      .context = arguments.Text("context").value_or("")};
  TRY_ASSIGN(kube::ClusterAccess access,
             kube::FindCluster(choice, kube::KubeEnvironment::OfProcess()));
  ClusterConnection made;
  made.name_space = arguments.Text("namespace")
                        .value_or(access.name_space.empty() ? "default" : access.name_space);
  TRY_ASSIGN(made.client, kube::ApiClient::Open(std::move(access), made.clock.get()));
  return made;
}

Result<void> ClusterSource::CheckHoldsPods() const {
  if (is_live()) return {};
  for (const kube::Resource resource : {kube::Resource::kPods, kube::Resource::kReplicaSets}) {
    if (mirror->IsSynced(resource)) continue;
    const kube::ResourceName& name = kube::NameOf(resource);
    return Invalid("{}: holds no {}; add a file written with `kubectl get {} -A -o json`",
                   this->name, name.kind, name.resource);
  }
  return {};
}

const std::vector<OptionSpec>& ClusterOptions() {
  static const auto* options = new std::vector<OptionSpec>{
      {"--from", "DUMP_FILE",
       "read the output of `kubectl get nodes,pods,replicasets,deployments -A -o json` instead of "
       "a live cluster; more files may follow"},
      {"--kubeconfig", "FILE", "kubeconfig file (default $KUBECONFIG or ~/.kube/config)"},
      {"--context", "NAME", "context of the kubeconfig (default: the current context)"},
      {"-n,--namespace", "NS[,NS...]", "namespaces of the workloads (default: all)"},
      kAllNamespacesOption,
      {"--application", "FILE",
       "description of the application: layers, calls and execution times, which the API server "
       "does not know"}};
  return *options;
}

Result<ClusterSource> OpenCluster(const Arguments& arguments) {
  TRY(arguments.Exclude("from", "kubeconfig"));
  TRY(arguments.Exclude("from", "context"));
  TRY(arguments.Exclude("namespace", "all-namespaces"));
  const std::optional<std::string> first = arguments.Text("from");
  if (!first && !arguments.operands().empty()) {
    return Invalid("`{}` was not expected here; dumps follow --from", arguments.operands()[0]);
  }
  std::vector<std::filesystem::path> paths;
  if (first) paths.emplace_back(*first);
  for (const std::string& more : arguments.operands()) paths.emplace_back(more);
  TRY_ASSIGN(ClusterSource source, first ? FromDumps(paths) : Live(arguments));
  if (arguments.Has("namespace")) {
    TRY_ASSIGN(const std::vector<std::string> names, arguments.List("namespace"));
    TRY(CheckNamespaces(*source.mirror, names));
    source.namespaces.insert(names.begin(), names.end());
  }
  return source;
}

Result<std::shared_ptr<const Application>> ApplicationOf(const Arguments& arguments,
                                                         const ClusterSource& source,
                                                         CallsInFile calls) {
  const std::optional<std::string> path = arguments.Text("application");
  TRY_ASSIGN(Application application,
             path ? LoadApplication(*path, calls)
                  : kube::DraftApplication(*source.mirror, source.namespaces));
  return std::make_shared<const Application>(std::move(application));
}

}  // namespace rudderfish
