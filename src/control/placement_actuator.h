// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "cluster/scheduling_observer.h"

// How a Scheduler acts upon a cluster, and what people are told of it. Over a real API server:
// run/placement_actuator.h.

namespace rudderfish {

enum class BindingOutcome {
  kBound,
  kGone,      // There is no such pod.
  kConflict,  // It has a node, or ends, or is another one of that name.
  kUnclear,   // Nothing was heard: it may be bound.
  kRefused,   // Not allowed, not valid.
};

// How the cluster is acted upon.
class PlacementActuator {
 public:
  using OnDone = std::function<void(BindingOutcome outcome, const std::string& why)>;
  using OnFound = std::function<void(const Result<PodStanding>& pod)>;

  virtual ~PlacementActuator() = default;

  // `done` is called later, not from within.
  virtual void Bind(const PodIdentity& pod, const std::string& node, OnDone done) = 0;

  // Where the pod is, as the API server knows it now. An error: it was not heard. `found` is called
  // later, not from within.
  virtual void LookUp(const PodIdentity& pod, OnFound found) = 0;

  // For people and cluster-autoscaler: what was done; why a pod still waits, each time it is found,
  // whether the reason is new or not; that a pod no longer waits, whatever the outcome.
  virtual void TellPlaced(const PodIdentity& pod, const std::string& node) = 0;
  virtual void TellWaiting(const PodIdentity& pod, const std::string& message) = 0;
  virtual void TellWaitsNoLonger(const PodIdentity& pod) = 0;

  // A node holds more than it has.
  virtual void TellOvercommitted(const std::string& node, const std::string& message) = 0;

  // Somebody else serves the name by which pods ask for us, and has placed this one.
  virtual void TellNameShared(const PodIdentity& pod, const std::string& message) = 0;
};

}  // namespace rudderfish
