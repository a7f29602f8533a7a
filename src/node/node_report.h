// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/node_counters.h"
#include "node/prober.h"

// What a node agent shows Prometheus, as the text of one scrape: counters of the node, and the
// round trips to peers and users. All of it has the label `node`, as the cluster calls it.

namespace rudderfish {

struct NodeReport {
  std::string node;
  double ticks_per_second = 100;  // Of CpuTimes.
  std::optional<NodeCounters> counters;
  size_t peers = 0;         // That are known.
  size_t peers_probed = 0;  // By this agent.
  // Of peers and of users. Two addresses of one node, as after its agent was replaced, are shown as
  // the one that answered last.
  std::vector<std::shared_ptr<Prober::Target>> peer_targets, user_targets;
};

std::string NodeReportText(const NodeReport& report, Instant now);

}  // namespace rudderfish
