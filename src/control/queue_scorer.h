// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "control/live_cluster.h"
#include "control/node_scorer.h"
#include "policy/lookahead_placement.h"

// Look-ahead over the queue (policy/lookahead_placement.h) on a live cluster, by the same search as
// in the simulator. Which nodes each pod of the queue may have the rules say, as the cluster is
// now: what pods of one plan do to each other beside the room they take (spread, affinity between
// them) is not looked at until their turn comes.
//
// Scores of nodes are minus the objective with the pod there, as greedy's; the node that the best
// plan begins with is 1 above the best of them. If no pod waits behind this one, they are greedy's.

namespace rudderfish {

// REQUIRES: the objective is of terms that `cluster` knows.
std::unique_ptr<NodeScorer> MakeQueueScorer(std::string name, const Objective& objective,
                                            const QueueLookaheadOptions& options,
                                            std::unique_ptr<LiveCluster> cluster);

}  // namespace rudderfish
