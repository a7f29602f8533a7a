// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/application.h"
#include "kube/mirror.h"
#include "telemetry/spans.h"
#include "telemetry/traced_request.h"

// Which workload each source of spans is of and what its node computes by: by its pod, as the
// cluster knows it; by the pod's name, where the pod is gone; by the name of its service, where it
// tells no pod. Speeds are cpu_types of the application. Pure functions.

namespace rudderfish {

// Each cpu_type once, in the order of the kinds of node.
std::vector<std::string> CpuTypes(const Catalog& catalog);

// [source]; the names of the services that were found to be of no workload go to `unknown`.
SpanPlaces PlacesOf(const SpanSet& set, const Application& application, const kube::Mirror& mirror,
                    std::vector<std::string>* unknown);

}  // namespace rudderfish
