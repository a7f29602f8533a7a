// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/scheduling_observer.h"
#include "kube/scheduling_reader.h"

// The wire of kube-scheduler's extenders (ExtenderArgs, ExtenderFilterResult, HostPriorityList):
// JSON with Go's field names, capitalised.

namespace rudderfish::kube {

struct ExtenderArgs {
  PodIdentity pod;
  PodClass shape;
  std::vector<std::string_view> nodes;  // Within the parser, until it reads something else.
  bool is_opted_out = false;            // By its own label or annotation.
};

// Refuses what is no ExtenderArgs in one line that names the field. Only names of nodes are taken
// (nodeCacheCapable: true): whole nodes are megabytes a pod.
Result<ExtenderArgs> ReadExtenderArgs(std::string_view body, const SchedulingReferences& references,
                                      simdjson::dom::parser* parser);

// `reasons`: [i] of nodes[i], why not; empty: it stays. Preemption will not help there.
std::string FilterResultText(const std::vector<std::string_view>& nodes,
                             const std::vector<std::string>& reasons);

// Nodes of grade 0 are left out, as kube-scheduler takes those that are not named: it reads each
// pod's answer while the pod waits.
std::string HostPriorityText(const std::vector<std::string_view>& nodes,
                             const std::vector<int>& grades);

}  // namespace rudderfish::kube
