// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_source.h"

#include <fmt/format.h>

#include <filesystem>

#include "kube/dump.h"

namespace rudderfish {
namespace {

std::vector<std::string> Missing(const kube::Mirror& mirror) {
  std::vector<std::string> missing;
  for (int i = 0; i < kube::kResourceCount; ++i) {
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

}  // namespace

const std::vector<OptionSpec>& ClusterOptions() {
  static const auto* options = new std::vector<OptionSpec>{
      {"--from", "DUMP_FILE",
       "what `kubectl get nodes,pods,replicasets,deployments -A -o json` printed; further files "
       "may follow"}};
  return *options;
}

Result<ClusterSource> OpenCluster(const Arguments& arguments) {
  const std::optional<std::string> first = arguments.Text("from");
  if (!first) return Invalid("--from: name a dump of `kubectl get ... -o json`");
  std::vector<std::filesystem::path> paths{*first};
  for (const std::string& more : arguments.operands()) paths.emplace_back(more);
  return FromDumps(paths);
}

}  // namespace rudderfish
