// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "cluster/application.h"
#include "kube/mirror.h"

// What can be said of a cluster's workloads if no application is described: layers from the nodes'
// zones, kinds of node from their instance types, one workload for each controller that has pods.
// Which workload calls which is not known, so there are no calls: one endpoint, whose client
// (outside) calls no workload. Its latency is always 0, and no placement is better than another.
// What can be learnt is what the cluster looks like, not how to improve it.

namespace rudderfish::kube {

// `namespaces`: whose workloads; empty: all but those that begin with "kube-". kFailedPrecondition
// if there are none, or more zones or kinds than a scenario may have.
Result<Application> DraftApplication(const Mirror& mirror, const std::set<std::string>& namespaces);

// What nodes of a draft are thought to send and receive: nothing depends on it without calls.
inline constexpr double kDraftBandwidthMbytesPerS = 125;

}  // namespace rudderfish::kube
