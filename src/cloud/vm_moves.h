// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cloud/openstack_vms.h"

// VMs that are to leave the hosts they are on: by live migration those that run, by cold migration
// those that are shut off. Each turn looks where they are and sends what is missing, so that it
// does not matter which answers were lost. One thread.

namespace rudderfish {

struct VmMoveGoal {
  std::string vm_id;
  std::string from;      // The host to leave.
  std::string to;        // Empty: Nova's scheduler chooses.
  bool is_cold = false;  // Shut down for it, even if it runs.
};

struct VmMoveLimits {
  int at_once = 4;  // Moves under way.
  int tries = 3;    // Of each VM.
};

struct VmMoveStep {
  std::string vm_id, vm, from;
  bool is_confirmation = false;  // Of a cold migration that is done.
  VmRequest request;
};

struct VmMovePlan {
  std::vector<VmMoveStep> steps;
  int moved = 0, moving = 0, waiting = 0;
  std::vector<std::string> given_up;  // "shop-3: ...", each a line.

  bool is_settled() const { return steps.empty() && moving + waiting == 0; }
};

// The host that a cold migration took the VM away from, if that is still to be confirmed, as after
// a process was killed; empty: there is none. A resize is not one: only who wants it confirms it.
Result<std::string> ToConfirmFrom(OpenStackVms* cloud, const Vm& vm);

class VmMoves {
 public:
  VmMoves(std::vector<VmMoveGoal> goals, VmMoveLimits limits)
      : goals_(std::move(goals)), limits_(limits) {}

  // What is to be done now, where all VMs of the project are `vms`.
  VmMovePlan Plan(const std::vector<Vm>& vms) const;

  Result<VmMovePlan> Look(OpenStackVms* cloud);
  // Requests that Nova refuses count as tries; the error is of what makes all others futile.
  Result<void> Carry(OpenStackVms* cloud, const VmMovePlan& plan);

 private:
  std::vector<VmMoveGoal> goals_;
  VmMoveLimits limits_;
  std::map<std::string, int> tries_;             // [VM's id]
  std::map<std::string, std::string> refusals_;  // [VM's id] The last one.
};

}  // namespace rudderfish
