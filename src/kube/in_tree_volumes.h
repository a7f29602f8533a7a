// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/scheduling_volumes.h"
#include "kube/fields.h"

// Volumes of types that Kubernetes once attached itself, as the CSI drivers know them that have
// taken over: k8s.io/csi-translation-lib of v0.36, as far as kube-scheduler's NodeVolumeLimits and
// VolumeBinding ask it. vsphereVolume and azureFile are not among them: kube-scheduler takes these
// as they are.

namespace rudderfish::kube {

struct InTreeVolume {
  std::string_view plugin;          // kubernetes.io/aws-ebs
  std::optional<CsiVolume> volume;  // Nothing: it is not to be translated.
};

// `source`: the spec of a persistent volume, whose labels come along, or a volume of a pod, without
// labels. Nothing: it is of another type.
Result<std::optional<InTreeVolume>> TranslateInTree(const Fields& source, const Labels& labels);

// Where such a persistent volume may be used, by the labels of its driver. `terms`: its own.
BoundVolume::Affinity TranslateAffinity(std::string_view plugin, const Labels& labels,
                                        BoundVolume::Affinity terms);

// The driver for which kube-scheduler counts a volume that this provisioner is to make; empty: it
// counts none.
std::string_view DriverOfProvisioner(std::string_view provisioner);

}  // namespace rudderfish::kube
