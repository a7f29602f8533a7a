// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cluster/scheduling.h"

// Random volumes of CSI drivers, few enough that pods share them, and nodes that take few of them.

namespace rudderfish::testing {

// The second has taken over from an in-tree plugin; of the third, pods name disks themselves.
inline constexpr const char* kCsiDrivers[] = {"fast.csi.example.com", "ebs.csi.aws.com",
                                              "cinder.csi.openstack.org"};
inline constexpr int kDriversWithClaims = 2;
inline constexpr int kVolumesOfADriver = 8;
inline constexpr char kMigratedPlugin[] = "kubernetes.io/aws-ebs";
inline constexpr char kMigratedZoneKey[] = "topology.ebs.csi.aws.com/zone";

// By the same number: the name of the claim and of its volume, and what is attached.
inline std::string ClaimOfVolume(int driver, int number) {
  return (driver == 0 ? "fast-" : "ebs-") + std::to_string(number);
}
inline CsiVolume AttachedVolume(int driver, int number) {
  return {kCsiDrivers[driver], "vol-" + std::to_string(number)};
}

// Some are of the in-tree type that the second driver has taken over from.
inline bool IsInTree(int driver, int number) { return driver == 1 && number % 2 == 0; }
inline BoundVolume RulesOfVolume(int driver, int number) {
  const auto in = [](const char* key, std::vector<std::string> values) {
    NodeTerm term;
    term.expressions = {{key, NodeRequirement::Operator::kIn, std::move(values)}};
    return std::vector{term};
  };
  BoundVolume rules;
  const bool is_in_tree = IsInTree(driver, number);
  if (is_in_tree || number % 4 == 1) rules.zones = {{"topology.kubernetes.io/zone", {"a", "b"}}};
  if (is_in_tree) rules.migrated = {kMigratedPlugin, in(kMigratedZoneKey, {"a", "b"})};
  if (!is_in_tree && number % 4 == 0) rules.node_affinity = in("rack", {"r1", "r2", "r3"});
  return rules;
}

class RandomVolumes {
 public:
  explicit RandomVolumes(Rng rng) : rng_(rng) {}

  // Limits, a CSI driver in place of an in-tree plugin, and the label by which it knows zones.
  void AddTo(SchedulingNode* node) {
    for (const char* driver : kCsiDrivers) {
      if (Chance(0.7)) node->volume_limits.push_back({driver, rng_.Below(4)});
    }
    if (!node->volume_limits.empty() && Chance(0.5)) node->migrated_plugins = {kMigratedPlugin};
    if (Chance(0.5))
      node->labels.emplace_back(kMigratedZoneKey, std::string(1, "abc"[rng_.Below(3)]));
    std::sort(node->labels.begin(), node->labels.end());
  }

  // Claims of volumes and disks, seldom; by their names what is attached.
  void AddTo(PodClass* pod) {
    if (!Chance(0.25)) return;
    do {
      const int driver = static_cast<int>(rng_.Below(3));
      const int number = static_cast<int>(rng_.Below(kVolumesOfADriver));
      if (driver < kDriversWithClaims) {
        pod->claims.push_back(ClaimOfVolume(driver, number));
        pod->volumes.push_back(RulesOfVolume(driver, number));
      }
      pod->attached.push_back(AttachedVolume(driver, number));
    } while (Chance(0.5));
    KeepEachOnce(&pod->claims);
    KeepEachOnce(&pod->attached);
  }

  // What VolumeAttachments say of a node.
  std::vector<CsiVolume> Attached() {
    std::vector<CsiVolume> all;
    while (Chance(0.5))
      all.push_back(AttachedVolume(static_cast<int>(rng_.Below(kDriversWithClaims)),
                                   static_cast<int>(rng_.Below(kVolumesOfADriver))));
    KeepEachOnce(&all);
    return all;
  }

 private:
  bool Chance(double p) { return rng_.Uniform() < p; }

  template <class T>
  static void KeepEachOnce(std::vector<T>* all) {
    std::sort(all->begin(), all->end());
    all->erase(std::unique(all->begin(), all->end()), all->end());
  }

  Rng rng_;
};

}  // namespace rudderfish::testing
