// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cluster/scheduling.h"

// Random volumes of CSI drivers, few enough that pods share them, and nodes that take few of them.

namespace rudderfish::testing {

// Of the second, nodes attach volumes of an in-tree type, too.
inline constexpr const char* kCsiDrivers[] = {"fast.csi.example.com", "ebs.csi.aws.com"};
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

  // Claims of volumes, seldom; by their names what is attached.
  void AddTo(PodClass* pod) {
    if (!Chance(0.25)) return;
    do {
      const int driver = static_cast<int>(rng_.Below(2));
      const int number = static_cast<int>(rng_.Below(kVolumesOfADriver));
      pod->claims.push_back(ClaimOfVolume(driver, number));
      pod->attached.push_back(AttachedVolume(driver, number));
    } while (Chance(0.5));
    KeepEachOnce(&pod->claims);
    KeepEachOnce(&pod->attached);
  }

  // What VolumeAttachments say of a node.
  std::vector<CsiVolume> Attached() {
    std::vector<CsiVolume> all;
    while (Chance(0.5))
      all.push_back(AttachedVolume(static_cast<int>(rng_.Below(2)),
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
