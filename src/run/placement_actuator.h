// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "control/placement_actuator.h"
#include "control/placement_comparison.h"
#include "kube/api_client.h"
#include "kube/condition_writer.h"
#include "kube/events.h"

// A Scheduler's word carried to the API server: Bindings; Events and conditions in the words of
// kube-scheduler's. What people are told goes its own way, over connections of its own: over few of
// them while Bindings are under way, which are not kept waiting by it, and over many as soon as
// there are none. One thread.

namespace rudderfish {

class PlacementActuatorOfKube final : public PlacementActuator {
 public:
  // Both outlive it, and call nothing back after its end. `telling` may be the client of nothing
  // else. `may_bind` is asked right before a Binding goes out, each time that it does: while it
  // says no, none does that still waits for room, for a connection or for its repetition. It holds
  // conditions back, too.
  PlacementActuatorOfKube(kube::ApiClient* binding, kube::ApiClient* telling,
                          std::string controller, std::string identity,
                          std::function<bool()> may_bind);

  void Bind(const PodIdentity& pod, const std::string& node, OnDone done) override;
  void LookUp(const PodIdentity& pod, OnFound found) override;
  void TellPlaced(const PodIdentity& pod, const std::string& node) override;
  void TellWaiting(const PodIdentity& pod, const std::string& message) override;
  void TellWaitsNoLonger(const PodIdentity& pod) override { conditions_.Forget(pod); }
  void TellOvercommitted(const std::string& node, const std::string& message) override;
  void TellNameShared(const PodIdentity& pod, const std::string& message) override;

  // Where it had better go, while it waits for another scheduler.
  void TellAdvice(const PlacementComparison& advice);
  // A canary has ended, by the outcomes of its pods, of which this is the last.
  void TellCanaryEnded(const PodIdentity& pod, const std::string& why);

  const kube::EventCounts& event_counts() const { return events_.counts(); }
  const kube::ConditionCounts& condition_counts() const { return conditions_.counts(); }
  size_t conditions_unwritten() const { return conditions_.unwritten(); }
  bool is_telling() const { return !events_.is_idle(); }

 private:
  kube::ApiClient* binding_;
  kube::ApiClient* telling_;
  kube::EventRecorder events_;
  kube::ConditionWriter conditions_;
  std::function<bool()> may_bind_;
  int bindings_ = 0;  // Under way.
};

// What an answer to a Binding means.
BindingOutcome OutcomeOf(const kube::ApiAnswer& answer);

}  // namespace rudderfish
