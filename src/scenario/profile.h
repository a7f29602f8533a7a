// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "scenario/scenario.h"

// The cluster as it was seen, as a world to train on: its nodes with their names and what they
// have, its workloads with the replicas, requests and layers seen, its network and its calls. What
// was the same in all states is a constant; of what was not, every value seen may be drawn. The
// states themselves can be started from: the simulator then has the cluster as it was, to the bit.

namespace rudderfish {

enum class ProfileNames { kKept, kAnonymous };  // The latter: node-1, workload-1, layer-1 ...

struct Profile {
  Scenario scenario;
  std::vector<State> starts;  // Of the scenario.
  int left_out = 0;           // States with other nodes than the last.
};

// REQUIRES: at least one state, all of one application: the same layers, kinds, workloads, calls.
// kFailedPrecondition if no scenario can be made of them, for instance because a workload fits on
// no node that it was not already on.
Result<Profile> MakeProfile(std::vector<State> states, std::string name, std::string law,
                            ProfileNames names);

}  // namespace rudderfish
