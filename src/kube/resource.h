// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

// The resources of the API server that are watched: what something reads, and no more.

namespace rudderfish::kube {

// The order of the table in resource.cc.
enum class Resource {
  kNodes,
  kPods,
  kReplicaSets,
  kDeployments,
  kStatefulSets,
  kDaemonSets,
  kJobs,
  kPersistentVolumes,
  kPersistentVolumeClaims,
  kNamespaces,
  kNodeMetrics,
  kPodMetrics,
  kServices,
  kReplicationControllers,
  kCsiNodes,
  kVolumeAttachments,
  kStorageClasses,
};
inline constexpr int kResourceCount = 17;

// What the API server calls it.
struct ResourceName {
  std::string_view group;  // "" is core.
  std::string_view version;
  std::string_view resource;  // Plural, as in paths and RBAC rules.
  std::string_view kind;
  bool namespaced;
};

const ResourceName& NameOf(Resource resource);
std::optional<Resource> ResourceOfKind(std::string_view kind);

std::string PathOf(Resource resource);  // /apis/apps/v1/deployments
std::string TextOf(Resource resource);  // deployments.apps

// Whether a process needs a resource that it asks for, or goes on without it where the API server
// refuses or does not serve it.
enum class Need { kNeeded, kWanted };

struct ResourceNeed {
  Resource resource;
  Need need;
};

}  // namespace rudderfish::kube
