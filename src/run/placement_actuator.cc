// SPDX-License-Identifier: Apache-2.0
#include "run/placement_actuator.h"

#include <fmt/format.h>

#include <utility>

#include "kube/pod_lookup.h"
#include "kube/pod_writer.h"

namespace rudderfish {
namespace {

// One Event a pod: as many as Bindings, and all of them are kept until they are written.
constexpr size_t kEventsMax = 50'000;
constexpr double kEventsPerSecond = 2000;
// Requests at a time that tell people something.
constexpr int kTellingBesideBindings = 2, kTellingAlone = 16;

kube::ObjectReference ReferenceTo(const PodIdentity& pod) {
  return {.api_version = "v1",
          .kind = "Pod",
          .name_space = pod.object_namespace,
          .name = pod.name,
          .uid = pod.uid};
}

}  // namespace

PlacementActuatorOfKube::PlacementActuatorOfKube(kube::ApiClient* binding, kube::ApiClient* telling,
                                                 std::string controller, std::string identity,
                                                 std::function<bool()> may_bind)
    : binding_(binding),
      telling_(telling),
      events_(telling, {.controller = std::move(controller),
                        .instance = std::move(identity),
                        .queue_max = kEventsMax,
                        .series_max = kEventsMax + kEventsMax / 8,
                        .in_flight_max = kTellingAlone,
                        .burst = kEventsPerSecond,
                        .per_second = kEventsPerSecond}),
      conditions_(telling, may_bind),
      may_bind_(std::move(may_bind)) {
  telling_->SetRequestsMax(kTellingAlone);
}

BindingOutcome OutcomeOf(const kube::ApiAnswer& answer) {
  if (answer.ok()) return BindingOutcome::kBound;
  const int code = answer.status.code;
  if (code == 404) return BindingOutcome::kGone;
  if (code == 409) return BindingOutcome::kConflict;
  // Not heard, or nothing was done for want of time or room.
  if (code == 0 || code == 429 || code >= 500) return BindingOutcome::kUnclear;
  return BindingOutcome::kRefused;
}

void PlacementActuatorOfKube::Bind(const PodIdentity& pod, const std::string& node, OnDone done) {
  if (++bindings_ == 1) telling_->SetRequestsMax(kTellingBesideBindings);
  conditions_.Withdraw(pod);
  kube::BindPod(binding_, pod, node, may_bind_,
                [this, done = std::move(done)](const kube::ApiAnswer& answer) {
                  if (--bindings_ == 0) telling_->SetRequestsMax(kTellingAlone);
                  done(OutcomeOf(answer), answer.ok() ? "" : answer.outcome.error().message);
                });
}

void PlacementActuatorOfKube::LookUp(const PodIdentity& pod, OnFound found) {
  kube::LookUpPod(binding_, pod, std::move(found));
}

void PlacementActuatorOfKube::TellPlaced(const PodIdentity& pod, const std::string& node) {
  events_.Record({.regarding = ReferenceTo(pod),
                  .kind = kube::EventKind::kNormal,
                  .reason = "Scheduled",
                  .action = "Binding",
                  .note = fmt::format("Successfully assigned {} to {}", pod.Key(), node)});
}

void PlacementActuatorOfKube::TellWaiting(const PodIdentity& pod, const std::string& message) {
  events_.Record({.regarding = ReferenceTo(pod),
                  .kind = kube::EventKind::kWarning,
                  .reason = "FailedScheduling",
                  .action = "Scheduling",
                  .note = message,
                  .again = kube::Again::kAnotherNote});
  conditions_.Write(pod, message);
}

// By its name in place of its uid, as kubelets do: `kubectl describe node` shows both.
void PlacementActuatorOfKube::TellOvercommitted(const std::string& node,
                                                const std::string& message) {
  events_.Record({.regarding = {.api_version = "v1", .kind = "Node", .name = node, .uid = node},
                  .kind = kube::EventKind::kWarning,
                  .reason = "Overcommitted",
                  .action = "Scheduling",
                  .note = fmt::format("Node {} {}", node, message)});
}

void PlacementActuatorOfKube::TellNameShared(const PodIdentity& pod, const std::string& message) {
  events_.Record({.regarding = ReferenceTo(pod),
                  .kind = kube::EventKind::kWarning,
                  .reason = "SchedulerNameShared",
                  .action = "Scheduling",
                  .note = message});
}

void PlacementActuatorOfKube::TellAdvice(const PlacementComparison& advice) {
  constexpr double kPartsPerMillion = 1e6;
  const std::string better =
      advice.policy_node == advice.baseline_node
          ? "as kube-scheduler's scores would"
          : fmt::format("{:.3g} ppm of {} better than {}, where kube-scheduler's scores would",
                        advice.gain() * kPartsPerMillion, advice.objective, advice.baseline_node);
  events_.Record({.regarding = ReferenceTo(advice.pod),
                  .kind = kube::EventKind::kNormal,
                  .reason = "PreferredNode",
                  .action = "Advising",
                  .note = fmt::format("{} would put it on {}, of {} nodes that may take it; {}",
                                      advice.policy, advice.policy_node, advice.feasible, better)});
}

void PlacementActuatorOfKube::TellCanaryEnded(const PodIdentity& pod, const std::string& why) {
  events_.Record({.regarding = ReferenceTo(pod),
                  .kind = kube::EventKind::kWarning,
                  .reason = "CanaryEnded",
                  .action = "Demoting",
                  .note = fmt::format("placement is back in shadow: {}", why)});
}

}  // namespace rudderfish
