// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kube/object_sink.h"
#include "kube/resource.h"

// One who reads what a ClusterFeed watches: it says of which resources it must be told and which it
// would like, and has a sink for each.

namespace rudderfish::kube {

class ClusterFeed;

class FeedFollower {
 public:
  virtual ~FeedFollower() = default;

  // The same at all times, each resource once.
  virtual std::span<const ResourceNeed> Needs() const = 0;
  virtual ObjectSink* SinkOf(Resource resource) = 0;  // Of each that it needs.
  virtual size_t Count(Resource resource) const = 0;  // Of its objects.

  // All that has come has been told.
  virtual void Polled(const ClusterFeed& feed) = 0;
};

}  // namespace rudderfish::kube
