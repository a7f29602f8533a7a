// SPDX-License-Identifier: Apache-2.0
#include "kube/resource.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace rudderfish::kube {
namespace {

constexpr ResourceName kNames[kResourceCount] = {
    {"", "v1", "nodes", "Node", false},
    {"", "v1", "pods", "Pod", true},
    {"apps", "v1", "replicasets", "ReplicaSet", true},
    {"apps", "v1", "deployments", "Deployment", true},
    {"apps", "v1", "statefulsets", "StatefulSet", true},
    {"apps", "v1", "daemonsets", "DaemonSet", true},
    {"batch", "v1", "jobs", "Job", true},
    {"", "v1", "persistentvolumes", "PersistentVolume", false},
    {"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true},
    {"", "v1", "namespaces", "Namespace", false},
    {"metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", false},
    {"metrics.k8s.io", "v1beta1", "pods", "PodMetrics", true},
    {"", "v1", "services", "Service", true},
    {"", "v1", "replicationcontrollers", "ReplicationController", true},
    {"storage.k8s.io", "v1", "csinodes", "CSINode", false},
    {"storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", false},
    {"storage.k8s.io", "v1", "storageclasses", "StorageClass", false},
};

}  // namespace

const ResourceName& NameOf(Resource resource) { return kNames[static_cast<int>(resource)]; }

std::optional<Resource> ResourceOfKind(std::string_view kind) {
  const auto at = std::find_if(std::begin(kNames), std::end(kNames),
                               [&](const ResourceName& name) { return name.kind == kind; });
  if (at == std::end(kNames)) return std::nullopt;
  return static_cast<Resource>(at - std::begin(kNames));
}

std::string PathOf(Resource resource) {
  const ResourceName& name = NameOf(resource);
  return name.group.empty()
             ? fmt::format("/api/{}/{}", name.version, name.resource)
             : fmt::format("/apis/{}/{}/{}", name.group, name.version, name.resource);
}

std::string TextOf(Resource resource) {
  const ResourceName& name = NameOf(resource);
  return name.group.empty() ? std::string(name.resource)
                            : fmt::format("{}.{}", name.resource, name.group);
}

}  // namespace rudderfish::kube
