// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "cluster/application.h"
#include "kube/mirror.h"

// What can be said of a cluster's workloads where nobody has described an application: layers from
// the nodes' zones, kinds of node from their instance types, one workload for each controller that
// has pods. Who calls whom is not known, so there are no calls: one endpoint whose client, outside,
// asks nobody. Every latency of it is 0, and no placement is better than another; what can be
// learnt is what the cluster looks like, not how to better it.

namespace rudderfish::kube {

// `namespaces`: whose workloads; empty: all but those that begin with "kube-". kFailedPrecondition
// if there are none, or more zones or kinds than a scenario may have.
Result<Application> DraftApplication(const Mirror& mirror, const std::set<std::string>& namespaces);

// What nodes of a draft are thought to send and receive: nothing depends on it without calls.
inline constexpr double kDraftBandwidthMbytesPerS = 125;

}  // namespace rudderfish::kube
