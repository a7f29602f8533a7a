// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "control/mode.h"
#include "kube/kubeconfig.h"

// Clusters beside the one that a configuration names in `cluster`: of a route, of a Deployment, of
// pods that are placed.

namespace rudderfish {

struct OtherCluster {
  std::filesystem::path kubeconfig;           // Empty: as kubectl finds it.
  std::string context;                        // Empty: the current one.
  bool is_named = true;                       // False: that of the whole configuration after all.
  std::optional<kube::ClusterAccess> access;  // Once it was found.

  // By what the file says.
  bool operator==(const OtherCluster& other) const {
    return kubeconfig == other.kubeconfig && context == other.context && is_named == other.is_named;
  }
};

// "{kubeconfig: us.yaml, context: us}", either or both. A relative path is relative to `folder`.
// Looks at no file.
Result<OtherCluster> ReadOtherCluster(const YamlNode& node, const std::filesystem::path& folder);

// Reads the kubeconfig. `node` is where it is named, for messages.
Result<void> FindOtherCluster(const YamlNode& node, OtherCluster* cluster);

// One of several that have names.
struct NamedCluster {
  std::string name;
  OtherCluster where;
  YamlNode node;                  // For messages.
  std::optional<Mode> kept_mode;  // Of placement there; nothing: the file's.

  bool operator==(const NamedCluster& other) const {
    return name == other.name && where == other.where;
  }
};

// "us: {kubeconfig: us.yaml}" and so on, in the order of the file.
Result<std::vector<NamedCluster>> ReadNamedClusters(const YamlNode& node,
                                                    const std::filesystem::path& folder);

// Reads their kubeconfigs, and refuses two that are one API server; `own` is the server of the
// configuration's own cluster.
Result<void> FindNamedClusters(std::vector<NamedCluster>* clusters, const std::string& own);

}  // namespace rudderfish
