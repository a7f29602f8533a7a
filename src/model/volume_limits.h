// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cluster/ids.h"
#include "cluster/scheduling.h"

// How many volumes CSI drivers have attached to each node, and how many they can: what
// kube-scheduler's NodeVolumeLimits asks. A volume counts once on a node, however many pods there
// use it. What a VolumeAttachment says is attached counts, too; to a pod that comes such a volume
// is nevertheless a new one, and counted twice, unless a pod there uses it.
//
// A pod more or less costs its volumes. Rows of volumes and drivers stay until Reset. One thread.

namespace rudderfish {

struct Feasibility;

class VolumeLimits {
 public:
  void Reset(std::span<const SchedulingNode> nodes);
  void ReplaceNode(NodeId id, const SchedulingNode& node);

  // Rows of these volumes, those of one driver together. Made on first use.
  std::vector<int> RowsOf(std::span<const CsiVolume> volumes);

  // A pod that uses these has come to the node (1), or has left it (-1).
  void Change(std::span<const int> volumes, NodeId node, int sign);
  // The same, of a pod whose attached volumes are unknown.
  void ChangeUnknown(NodeId node, int sign);

  // What VolumeAttachments say, in place of what they said before. Sorted, each once.
  void SetAttached(NodeId node, std::span<const CsiVolume> volumes);

  // Rejects, of the nodes that are feasible still, those that cannot take these volumes, too.
  void Filter(std::span<const int> volumes, Feasibility* out) const;

  // Rejects those of which it is not known, because of a pod there.
  void FilterUnknown(std::span<const int> volumes, Feasibility* out) const;

 private:
  static constexpr int64_t kNoLimit = -1;

  struct Driver {
    std::vector<int64_t> volumes_max;  // [node]
    std::vector<int32_t> attached;     // [node] Volumes.
  };
  struct Use {  // Of a volume on one node.
    NodeId node = kNone;
    int32_t pods = 0;
    bool is_attached = false;  // A VolumeAttachment says so.

    bool is_any() const { return pods > 0 || is_attached; }
  };
  struct Volume {
    int driver = kNone;
    std::vector<Use> uses;  // By node.
  };

  int DriverRow(const std::string& name);
  int RowOf(const CsiVolume& volume);
  template <class Edit>
  void EditUse(int volume, NodeId node, Edit edit);

  int nodes_ = 0;
  std::map<std::string, int> driver_rows_;
  std::map<CsiVolume, int> volume_rows_;
  std::vector<Driver> drivers_;
  std::vector<Volume> volumes_;
  std::vector<std::vector<int>> attached_;  // [node] What VolumeAttachments say.
  std::vector<int32_t> has_limit_;          // [node] Drivers that have one.
  std::vector<int32_t> unknown_;            // [node] Pods.
  int64_t unknown_pods_ = 0;
};

}  // namespace rudderfish
