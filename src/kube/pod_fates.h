// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cluster/scheduling_observer.h"
#include "kube/object_sink.h"
#include "kube/objects.h"

// Passes on the pods that have not ended: one that has takes no room, and is as if it were gone.
// Tells of each pod that failed, once, as far as failed pods are watched.

namespace rudderfish::kube {

class PodFates final : public ObjectSink {
 public:
  using OnFailed = std::function<void(const PodIdentity& pod, const std::string& reason)>;

  // REQUIRES: `live` outlives this.
  PodFates(ObjectSink* live, OnFailed on_failed) : live_(live), on_failed_(std::move(on_failed)) {}

  void BeginList() override;
  Result<void> Listed(const simdjson::dom::element& object) override;
  void EndList() override;
  Result<void> Changed(const simdjson::dom::element& object) override;
  Result<void> Deleted(const simdjson::dom::element& object) override;

 private:
  using Failed = std::map<ObjectKey, std::string>;  // And their uids.

  Result<void> NoteEnded(const simdjson::dom::element& object, Failed* failed);

  ObjectSink* live_;
  OnFailed on_failed_;
  Failed failed_, listed_;
};

}  // namespace rudderfish::kube
