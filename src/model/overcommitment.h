// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/scheduling_rules.h"

// What a node holds more of than it has: two schedulers have raced for it, or it has shrunk. Every
// resource that some pod holds, the number of pods, host ports that pods hold against each other,
// and volumes that CSI drivers attach for pods. A look at the pods of one node; a pure function of
// the rules' state.

namespace rudderfish {

// "cpu (1200m of 1)", "nvidia.com/gpu (3 of 2)", "host port 8080/TCP (by 2 pods)",
// "volumes of ebs.csi.aws.com (26 of 25)"; none: it is not.
std::vector<std::string> OvercommittedOn(const SchedulingRules& rules, NodeId node);

}  // namespace rudderfish
