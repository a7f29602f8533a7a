// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <unordered_map>

#include "base/result.h"
#include "kube/fields.h"
#include "kube/objects.h"
#include "kube/pod.h"

// Objects from the JSON of the API server or of `kubectl get -o json`. An object that is malformed
// in what is read of it is an error of one line that names it: "pod default/web-1:
// spec.containers[0].resources.requests.cpu: expected a quantity ...". Nothing is guessed.

namespace rudderfish::kube {

// Keeps one PodShape for all pods that are alike. Not thread safe.
class PodShapes {
 public:
  std::shared_ptr<const PodShape> Shared(PodShape shape);

  size_t size() const { return shapes_.size(); }

 private:
  void Sweep();

  std::unordered_multimap<size_t, std::weak_ptr<const PodShape>> shapes_;
  size_t sweep_at_ = 1024;
};

Result<Node> ReadNode(const Element& object);
Result<Pod> ReadPod(const Element& object, PodShapes* shapes);
Result<PodController> ReadPodController(const Element& object);
Result<PersistentVolume> ReadPersistentVolume(const Element& object);
Result<PersistentVolumeClaim> ReadPersistentVolumeClaim(const Element& object);
Result<Namespace> ReadNamespace(const Element& object);
Result<Usage> ReadNodeMetrics(const Element& object);
Result<Usage> ReadPodMetrics(const Element& object);

// Only who it is: what a deletion needs to say.
Result<ObjectKey> ReadKey(const Element& object);

// A pod taken off its ReplicaSet keeps serving its Deployment, which this annotation then names:
// "Deployment/web".
inline constexpr std::string_view kDetachedFrom = "rudderfish.io/detached-from";

namespace internal {

// Parts that reader files share.
Result<Metadata> ReadMetadata(const Fields& object);
Result<ObjectRef> ReadController(const Fields& object);
Result<LabelSelector> ReadSelector(const Fields& object, std::string_view path);

// "kind ns/name: message".
tl::unexpected<Error> Blame(std::string_view kind, const Element& object, const Error& error);

}  // namespace internal

}  // namespace rudderfish::kube
