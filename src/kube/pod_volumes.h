// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/scheduling.h"
#include "kube/fields.h"
#include "kube/objects.h"
#include "kube/volume_reader.h"

// The volumes that pods name, and what their claims bring along: where the pod may run, or why it
// may run nowhere, and what CSI drivers attach for it. As kube-scheduler's VolumeRestrictions,
// NodeVolumeLimits, VolumeBinding and VolumeZone look at them.

namespace rudderfish::kube {

// What claims refer to.
struct VolumeReferences {
  std::map<ObjectKey, SchedulingClaim> claims;
  std::map<std::string, SchedulingVolume, std::less<>> volumes;
  std::map<std::string, StorageClass, std::less<>> storage_classes;
  // Why limits of nodes, and storage classes, are not known; empty: they are.
  std::string limits_unknown;
};

// As the pod's text says, whatever these are bound to.
struct PodVolumes {
  struct Claim {
    std::string name;          // In the pod's namespace.
    std::string of_ephemeral;  // Made for this volume of the pod; empty: by its name.
  };
  std::vector<Claim> claims;
  std::vector<CsiVolume> disks;   // Of in-tree types, named in the pod itself.
  bool has_unknown_disk = false;  // One that cannot be told to its CSI driver.
  std::vector<std::string> odd;  // Those of which more is asked than is modelled: "name of type x".

  std::vector<std::string> ClaimNames() const;
  bool empty() const { return claims.empty() && disks.empty() && !has_unknown_disk; }
};

Result<PodVolumes> ReadPodVolumes(const Fields& pod);

// A pod, to find what is its own.
struct PodOwner {
  std::string_view object_namespace, name, uid;
};

// Sets what is attached for the pod.
void SetAttached(const PodVolumes& volumes, const PodOwner& pod, const VolumeReferences& references,
                 PodClass* made);

// That, and all else that volumes and claims mean for a pod that waits. REQUIRES: the namespace of
// `made` is read.
void AddVolumes(const PodVolumes& volumes, const PodOwner& pod, const VolumeReferences& references,
                PodClass* made);

}  // namespace rudderfish::kube
