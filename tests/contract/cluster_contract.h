// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "cluster/cluster.h"

// The contract of every implementation of Cluster. A cluster under test is made from a start
// state; `settle` lets pass the time in which submitted intents finish.

namespace rudderfish {

struct ClusterUnderTest {
  std::unique_ptr<Cluster> cluster;
  std::function<void()> settle;
};

using ClusterMaker = std::function<ClusterUnderTest(const State& start)>;

// Plays the contract on starts drawn from `seed`, with GoogleTest expectations.
void CheckCluster(const ClusterMaker& make, uint64_t seed);

// The part of it that a cluster keeps which only shows itself: every move that is possible is
// refused as kFailedPrecondition, every stale one as kConflict, and nothing changes.
void CheckReadOnlyCluster(const ClusterMaker& make, uint64_t seed);

}  // namespace rudderfish
