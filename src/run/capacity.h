// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/yaml.h"
#include "cloud/openstack_cloud.h"
#include "cloud/vm_fleet.h"

// The section `decisions.routing.capacity` of rudderfish.yaml: regions whose nodes are VMs of a
// fleet, and what makes there be as many as decided. A part of run/routing_config.h.

namespace rudderfish {

struct CapacityConfig {
  std::string region;
  std::string cloud_name;
  std::filesystem::path clouds;  // Empty: where OpenStack's clients look.
  OpenStackCloud cloud;          // Once it was read.
  std::string fleet, flavor, image, network, zone;
  int vms_min = 1, vms_max = 1;
  int step = 2;   // Largest change of the number at one decision.
  YamlNode node;  // For messages.
};

// "eu: {cloud: eu, fleet: shop, ...}". Relative paths are relative to `folder`. Looks at no file.
Result<std::vector<CapacityConfig>> ParseCapacity(const YamlNode& node,
                                                  const std::filesystem::path& folder);

// Reads the clouds of fleets, and refuses two fleets that are one.
Result<void> ReadClouds(std::vector<CapacityConfig>* fleets);

struct FleetNeed {
  int standing = 0, wanted = 0;
  bool is_healthy = true;  // Its region.
};
// How many VMs there are to be. A region that is not healthy loses none: policies want nothing
// where nothing is served now, and it may be back at once.
int AllowedVms(const CapacityConfig& config, const FleetNeed& need);

// Fleets, each on a thread of its own, so that no decision waits for a cloud. Thread safe.
class CapacityDriver {
 public:
  struct Standing {
    std::optional<VmFleetPlan> plan;  // None: it was never looked at.
    Instant at;                       // When it was.
    int vms = 0;                      // Ready and starting.
    std::optional<int> aim;
    std::string trouble;  // Why it could not be looked at or changed; empty: it could.
  };

  CapacityDriver(std::vector<CapacityConfig> fleets, const Clock* clock);
  ~CapacityDriver();
  CapacityDriver(const CapacityDriver&) = delete;

  // How many VMs there are to be, until then: who leads may change, and who decides may hang.
  void Aim(size_t fleet, int vms, Instant until);
  // From now on fleets are only looked at.
  void DropAims();

  Standing Get(size_t fleet) const;
  const std::vector<CapacityConfig>& fleets() const { return fleets_; }

 private:
  struct Fleet {
    Standing standing;
    Instant until;  // Of the aim.
    bool is_new = false;
  };

  void Work(size_t index);
  // Returns whether there is more to do soon.
  Result<bool> Turn(size_t index, OpenStackVms* cloud, VmFleet* fleet);
  std::optional<int> AimOf(size_t index) const;

  const std::vector<CapacityConfig> fleets_;
  const Clock* clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Fleet> states_;
  std::atomic<bool> is_ending_ = false;
  std::vector<std::thread> threads_;  // Last: they use the others.
};

}  // namespace rudderfish
