// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/node_terms.h"

// What kube-scheduler looks at of volumes when it places a pod: where each may be used, and how
// many of them a CSI driver attaches to a node. Plain values.

namespace rudderfish {

// A claim's volume, once it is bound.
struct BoundVolume {
  struct Zone {
    std::string key;                  // A label of zones or regions, also the beta ones.
    std::vector<std::string> values;  // Sorted.

    bool operator==(const Zone&) const = default;
  };
  using Affinity = std::optional<std::vector<NodeTerm>>;

  // A volume of an in-tree type, on nodes where a CSI driver has taken its place.
  struct Migrated {
    std::string plugin;      // kubernetes.io/aws-ebs
    Affinity node_affinity;  // By the driver's own labels.

    bool operator==(const Migrated&) const = default;
  };

  Affinity node_affinity;
  std::vector<Zone> zones;
  std::optional<Migrated> migrated;  // Nothing: its affinity is the same on all nodes.

  bool operator==(const BoundVolume&) const = default;
};

// What a CSI driver attaches to nodes. Volumes are the same if both are.
struct CsiVolume {
  std::string driver, handle;

  auto operator<=>(const CsiVolume&) const = default;  // NOLINT(modernize-use-nullptr)
};

// How many volumes a CSI driver can attach to a node.
struct VolumeLimit {
  std::string driver;
  int64_t volumes_max = 0;

  bool operator==(const VolumeLimit&) const = default;
};

}  // namespace rudderfish
