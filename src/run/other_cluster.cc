// SPDX-License-Identifier: Apache-2.0
#include "run/other_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rudderfish {
namespace {

constexpr size_t kClusterNameMax = 63;

// It stands in names of kinds, on command lines and in labels of metrics.
bool IsClusterName(const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= kClusterNameMax && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), is_plain);
}

}  // namespace

Result<OtherCluster> ReadOtherCluster(const YamlNode& node, const std::filesystem::path& folder) {
  OtherCluster cluster;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const std::string kubeconfig, map.OptionalString("kubeconfig", ""));
  if (!kubeconfig.empty()) cluster.kubeconfig = folder / kubeconfig;
  TRY_ASSIGN(cluster.context, map.OptionalString("context", ""));
  TRY(map.Finish());
  if (kubeconfig.empty() && cluster.context.empty())
    return node.Expected("`kubeconfig` or `context`");
  return cluster;
}

Result<void> FindOtherCluster(const YamlNode& node, OtherCluster* cluster) {
  if (!cluster->is_named) return {};
  Result<kube::ClusterAccess> access =
      kube::FindCluster({.kubeconfig = cluster->kubeconfig.string(), .context = cluster->context},
                        kube::KubeEnvironment::OfProcess());
  if (!access) return node.Refuse(access.error().message);
  cluster->access = *std::move(access);
  return {};
}

Result<std::vector<NamedCluster>> ReadNamedClusters(const YamlNode& node,
                                                    const std::filesystem::path& folder) {
  std::vector<NamedCluster> clusters;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  for (const auto& [name, value] : map.Entries()) {
    if (!IsClusterName(name)) {
      return value.Refuse(fmt::format(
          "`{}` is no name of a cluster: use lower case letters, digits and `-`", name));
    }
    TRY_ASSIGN(OtherCluster where, ReadOtherCluster(value, folder));
    clusters.push_back({.name = name, .where = std::move(where), .node = value});
  }
  if (clusters.empty()) return node.Refuse("must not be empty: name a cluster, or remove it");
  return clusters;
}

Result<void> FindNamedClusters(std::vector<NamedCluster>* clusters, const std::string& own) {
  for (NamedCluster& one : *clusters) {
    TRY(FindOtherCluster(one.node, &one.where));
    const std::string& server = one.where.access->server;
    if (server == own) {
      return one.node.Refuse(
          fmt::format("{} is the API server of `cluster` as well: two schedulers of one name would "
                      "race for every pod",
                      server));
    }
    for (const NamedCluster& other : *clusters) {
      if (&other == &one) break;
      if (other.where.access->server == server)
        return one.node.Refuse(
            fmt::format("{} is the API server of {} as well", server, other.name));
    }
  }
  return {};
}

}  // namespace rudderfish
