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
#include "cloud/weighted_object.h"
#include "run/other_cluster.h"

// The section `decisions.routing.capacity` of rudderfish.yaml: regions whose nodes are VMs of a
// fleet or whose pods are those of a Deployment, and what makes there be as many as decided. A part
// of run/routing_config.h.

namespace rudderfish {

inline constexpr int kMostCapacity = 1000;

struct CapacityConfig {
  std::string region;
  std::string service;  // Of several that share nodes: whose pods these are; VMs are of all.
  // VMs:
  std::string cloud_name;
  std::filesystem::path clouds;  // Empty: where OpenStack's clients look.
  OpenStackCloud cloud;          // Once it was read.
  std::string fleet, flavor, image, network, zone;
  // Or pods of a Deployment:
  ObjectChoice deployment;
  std::optional<OtherCluster> cluster;
  int least = 1, most = 1;
  int step = 2;   // Largest change of the number at one decision.
  YamlNode node;  // For messages.

  bool has_pods() const { return cluster.has_value(); }
  std::string Unit(int count) const;  // "3 VMs"
  std::string Subject() const;        // As journals call it: "capacity/eu", "capacity/eu/web".
  std::string Target() const;         // For people.
};

// "eu: {cloud: eu, fleet: shop, ...}" or "eu: {deployment: shop/web, ...}", and "eu/web" where
// several services share nodes. Relative paths are relative to `folder`. Looks at no file.
Result<std::vector<CapacityConfig>> ParseCapacity(const YamlNode& node,
                                                  const std::filesystem::path& folder);

// Reads the clouds of fleets and the kubeconfigs of Deployments, and refuses two that are one.
Result<void> ReadClouds(std::vector<CapacityConfig>* fleets);

struct FleetNeed {
  int standing = 0, wanted = 0;
  bool is_healthy = true;  // Its region.
};
// How many VMs or pods there are to be. A region that is not healthy loses none: policies want
// nothing where nothing is served now, and it may be back at once. A Deployment without pods was
// switched off by a person, and stays so.
int AllowedCapacity(const CapacityConfig& config, const FleetNeed& need);

// What there is.
struct CapacitySight {
  int ready = 0, starting = 0, failed = 0;
  int standing = 0;         // That there would be if nothing were changed.
  bool is_settled = false;  // As many as are aimed at serve, and no step is left.
};

class CapacitySource;

// Fleets, each on a thread of its own, so that no decision waits for a cloud or a cluster. Thread
// safe.
class CapacityDriver {
 public:
  struct Standing {
    std::optional<CapacitySight> sight;  // None: it was never looked at.
    std::optional<int> sight_of;         // The aim that it was looked at for.
    Instant at;                          // When it was.
    std::optional<int> aim;
    std::string trouble;  // Why it could not be looked at or changed; empty: it could.
  };

  CapacityDriver(std::vector<CapacityConfig> fleets, const Clock* clock);
  ~CapacityDriver();
  CapacityDriver(const CapacityDriver&) = delete;

  // How many there are to be, until then: who leads may change, and who decides may hang.
  void Aim(size_t fleet, int count, Instant until);
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
  Result<bool> Turn(size_t index, CapacitySource* source);
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
