// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/application.h"
#include "cluster/state.h"
#include "scenario/manifests.h"
#include "scenario/scenario.h"

// An episode of a scenario as an application on real nodes: one node for each of the episode's,
// called LAYER-1, LAYER-2, ... as a testbed of layers calls them. Latencies and replicas are as
// they were drawn; what a node has is the real node's. Any thread.

namespace rudderfish {

struct PlayedEpisode {
  Application application;  // Of the law `physical`: real answers travel and real pods queue.
  std::vector<PlayedWorkload> workloads;                   // As in ManifestPlan.
  std::vector<std::pair<std::string, KindId>> node_names;  // As in ManifestPlan.
  std::string layers;  // cloud:2,edge:4 for the testbed's --layers,
  std::string links;   // and the table for its --delays.
};

// kInvalidArgument if pods come and go in the scenario, or a name in it cannot be one in
// Kubernetes.
Result<PlayedEpisode> PlayedEpisodeOf(const Scenario& scenario, const State& state);

}  // namespace rudderfish
