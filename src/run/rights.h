// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/application.h"
#include "kube/access_review.h"
#include "run/config.h"

// Whether a configuration's live cluster lets us do what `run` would: asked of the cluster itself,
// which nothing is changed by.

namespace rudderfish {

// What the configuration's cluster says of rights. A cluster that is not there, or does not answer
// within `limit`, is no error: `not_reached` says why it was not asked. Credentials that it refuses
// are one, as is a kubeconfig that is wrong.
struct AllowedRights {
  std::string server;         // Its URL.
  std::string not_reached;    // Empty: it was asked,
  std::vector<bool> allowed;  // of each.
};

Result<AllowedRights> AskForRights(const Config& config, const std::vector<kube::Right>& rights,
                                   Duration limit);

// What a kind of decision asks of the cluster.
struct NeededRight {
  kube::Right right;
  const char* without = "";  // What is so without it, in words.
  bool is_needed = true;     // `run` does not start without it.
};

// What all kinds share: the Lease, the ConfigMap.
std::vector<NeededRight> HostRights(const Config& config);
// What migration asks for in this mode.
std::vector<NeededRight> MigrationRights(Mode mode,
                                         const std::vector<const Application*>& applications);
// What placing asks of a cluster.
std::vector<NeededRight> PlacementRights(Mode mode);
// What routing asks for, of the configuration's own cluster: rights in others are for those to say.
std::vector<NeededRight> RoutingRights(const RoutingConfig& config, Mode mode);

// What moving pods of a namespace needs; empty: of all namespaces.
std::vector<kube::Right> MoveRights(const std::string& name_space);

// An error that names the rules to add where one of MoveRights is missing: a move that is begun
// without them stops half way.
Result<void> CheckMoveRights(kube::ApiClient* client, const std::string& name_space,
                             Duration limit);

struct RightsReport {
  std::string text;                  // Lines for people.
  std::vector<std::string> missing;  // Rules to add without which `run` would not start.
  bool is_reached = true;            // The cluster answered.
};

// Asks for each right once. Errors as of AskForRights; a cluster that was not reached is a line.
Result<RightsReport> ReviewRights(const Config& config, const std::vector<NeededRight>& rights,
                                  Duration limit = std::chrono::seconds(10));

}  // namespace rudderfish
