// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cluster/application.h"
#include "kube/cluster_feed.h"
#include "kube/mirror.h"
#include "scenario/application_file.h"

// The cluster that a command looks at, as one mirror: dumps of `kubectl get -o json` (--from), or a
// live one, found as kubectl finds it.

namespace rudderfish {

struct ClusterSource {
  std::string name;  // For people: "nodes.json, pods.json", or the server.
  std::unique_ptr<Clock> clock;
  std::unique_ptr<kube::Mirror> mirror;
  std::vector<std::string> missing;  // Resources that were not to be seen, for people.
  std::set<std::string> namespaces;  // Of -n; empty: all.

  // Of a live cluster; null for dumps.
  std::unique_ptr<kube::ApiClient> client;
  std::unique_ptr<kube::ClusterFeed> feed;

  bool is_live() const { return feed != nullptr; }

  // Of dumps: whether they tell which pods there are and whose. The error says what to add.
  Result<void> CheckHoldsPods() const;
};

// A live cluster, for what asks it a few things and watches nothing.
struct ClusterConnection {
  std::unique_ptr<Clock> clock = std::make_unique<SystemClock>();
  std::unique_ptr<kube::ApiClient> client;
  std::string name_space;  // That of -n, or of the kubeconfig's context.
};

// By --kubeconfig, --context and --namespace.
Result<ClusterConnection> ConnectToCluster(const Arguments& arguments);

// The options that OpenCluster reads.
const std::vector<OptionSpec>& ClusterOptions();

// Operands are further dumps, so that --from may be followed by several.
Result<ClusterSource> OpenCluster(const Arguments& arguments);

// Of --application, or the draft of one where none is given.
Result<std::shared_ptr<const Application>> ApplicationOf(const Arguments& arguments,
                                                         const ClusterSource& source,
                                                         CallsInFile calls = CallsInFile::kNeeded);

}  // namespace rudderfish
