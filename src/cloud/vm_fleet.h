// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cloud/openstack_vms.h"

// A number of VMs that are alike: the capacity of a region. Each turn looks at what there is and
// sends what is missing, so that it does not matter which answers were lost or when a process was
// killed. No slot has two VMs for good, and none stays empty:
//
//   * A VM that was asked for and is not listed yet is waited for, as its answer may be lost.
//   * Of two VMs of a slot one is deleted, the less useful one, then the younger.
//   * A VM that failed before it ever ran is deleted, and its slot is filled again, later each
//     time. One that has run is left to people, unless it is not needed any more.
//   * A VM that runs is shut down before it is deleted, so that what it does can end.
//
// Only VMs with the fleet's mark are ever touched. One thread.

namespace rudderfish {

struct VmFleetSpec {
  std::string name;
  VmFlavor flavor;
  std::string image_id;
  std::string network = "none";  // none, auto, or an id.
  std::string zone;              // Empty: the cloud's own.
  std::string host;              // Empty: Nova's scheduler chooses.
};

// A name of a fleet begins the names of its VMs: as those of hosts, at most 50 letters.
Result<void> CheckFleetName(std::string_view name);

struct VmFleetLimits {
  int vms_max = 1000;
  int steps_per_turn = 20;
  Duration listed_within = std::chrono::seconds(30);  // After which a VM that is not listed is not.
  Duration retry_first = std::chrono::seconds(2), retry_last = std::chrono::minutes(10);
};

struct VmFleetStep {
  enum class Kind { kCreate, kStart, kStop, kDelete };
  Kind kind = Kind::kCreate;
  int slot = 0;
  std::string vm;   // Name of it.
  std::string why;  // It goes: "not needed", "failed", "slot 3 has another VM".
  VmRequest request;
  bool is_failed = false;  // The VM that is deleted.
};

struct VmFleetPlan {
  std::vector<VmFleetStep> steps;
  int ready = 0, starting = 0, failed = 0, doubled = 0, going = 0;
  int waits = 0;           // Slots that are not to be filled yet: asked for, or failed.
  int without_room = 0;    // Slots that no host has room for.
  std::string last_fault;  // Of a VM that failed.

  bool is_settled(int wanted) const {
    return steps.empty() && ready == wanted && starting + failed + doubled + going + waits == 0;
  }
};

class VmFleet {
 public:
  VmFleet(VmFleetSpec spec, VmFleetLimits limits, const Clock* clock)
      : spec_(std::move(spec)), limits_(limits), clock_(clock) {}

  // What is to be done now to have `wanted` VMs, where all VMs of the project are `vms`. `room`:
  // how many more there is room for; nothing: not known. REQUIRES: 0 <= wanted <= vms_max.
  VmFleetPlan Plan(const std::vector<Vm>& vms, int wanted, std::optional<int64_t> room);

  // Looks at the cloud and plans.
  Result<VmFleetPlan> Look(OpenStackVms* cloud, int wanted);

  // Sends the plan's steps. An error is of the first that was refused or may be lost; those after
  // it are not sent.
  Result<void> Carry(OpenStackVms* cloud, const VmFleetPlan& plan);

  const VmFleetSpec& spec() const { return spec_; }

 private:
  struct Failure {
    int times = 0;
    Instant next;  // When the slot may be filled again.
  };

  VmFleetStep Creation(int slot) const;
  void Fill(const std::map<int, std::vector<const Vm*>>& slots, int missing,
            std::optional<int64_t> room, int steps, VmFleetPlan* plan) const;
  // What is known of slots, from what is listed.
  void Learn(const std::map<int, std::vector<const Vm*>>& slots, Instant now);
  void NoteFailure(int slot, Instant now);

  VmFleetSpec spec_;
  VmFleetLimits limits_;
  const Clock* clock_;
  std::map<int, Instant> asked_;     // [slot] Not listed since.
  std::map<int, Failure> failures_;  // [slot]
  std::string last_fault_;           // Of one of them.
};

}  // namespace rudderfish
