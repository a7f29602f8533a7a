// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api_client.h"

// Whether a node would take one pod more that is like a running one, by kube-scheduler's rules
// (model/scheduling_rules.h), with all that the cluster holds now.

namespace rudderfish {

// Why the node does not take it, in kube-scheduler's words; empty: it does. kNotFound: there is no
// such pod or node. The pod's own room stays taken: it goes on until its replacement serves.
Result<std::string> WhyTargetRefuses(kube::ApiClient* client, const std::string& pod_key,
                                     const std::string& node, Duration limit);

}  // namespace rudderfish
