// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/scheduling_observer.h"
#include "control/name_watch.h"
#include "control/own_chooser.h"
#include "control/placement_actuator.h"
#include "control/placement_journal.h"
#include "control/scheduling_room.h"
#include "control/sent_bindings.h"
#include "control/waiting_pods.h"

// A scheduler for the pods that name it (spec.schedulerName): which node each gets, one pod after
// another, by kube-scheduler's rules and a NodeScorer.
//
// A pod that was given a node is assumed there from then on; many bindings are under way at once.
// The API server's answer is the outcome of each: bound, and the scheduler waits for the watch;
// refused; unclear, as no answer came, and it sends the same binding again until one comes; or
// anything else (a conflict, no such pod), and it asks the server where the pod is. Until such an
// answer the pod keeps its room, however long that takes: no other pod gets room that may be taken.
// So no pod is bound twice, and none is lost if the process is killed at any time: after a restart
// the scheduler sees in the cluster what was done.
//
// Not thread safe. All happens within Turn and the calls of the observer and of the actuator.

namespace rudderfish {

struct SchedulerOptions {
  std::string name = "rudderfish";  // As pods name it. Empty: it places nothing, and only watches.
  std::string cluster;              // In rows of the journal.
  SchedulingQueueOptions queue;
  int bindings_max = 64;  // Under way at once.
  int batch_max = 32;     // Decided before any is sent.
  // For the watch to show a binding; then the API server is asked.
  Duration confirmation_limit = std::chrono::minutes(1);
  Duration repeat = std::chrono::seconds(1);  // Of what was not answered.
  // Of a binding: then the API server is asked, and it is decided again if it is not done.
  Duration unclear_limit = std::chrono::seconds(30);
  int alternatives_kept = 3;  // In the journal.
  int enforced_told = 20;     // A second, while the policy places all.
  uint64_t seed = 1;          // Of who is taken among equals.
};

struct SchedulerCounts : BindingCounts, ChoiceCounts {
  int64_t decisions = 0;    // Nodes given.
  int64_t waiting = 0;      // Attempts that found no node.
  int64_t unmodelled = 0;   // Attempts on pods that are left waiting for that.
  int64_t name_shared = 0;  // Of those that were ours alone to place.
  int64_t lost_races = 0;   // Times that a node was found to hold more than it has.
};

class Scheduler final : public SchedulingObserver {
 public:
  // All outlive it. `leads` is asked right before anything is done.
  Scheduler(SchedulerOptions options, const Clock* clock, std::unique_ptr<NodeScorer> scorer,
            PlacementActuator* actuator, PlacementJournal* journal, std::function<bool()> leads);

  void NodeSeen(const SchedulingNode& node) override { room_.PutNode(node); }
  void NodeGone(const std::string& name) override { room_.RemoveNode(name); }
  void AttachmentsSeen(const std::string& node, const std::vector<CsiVolume>& volumes) override {
    room_.PutAttachments(node, volumes);
  }
  void NamespaceSeen(const std::string& name, const Labels& labels) override {
    room_.PutNamespace(name, labels);
  }
  void NamespaceGone(const std::string& name) override { room_.RemoveNamespace(name); }
  void PodSeen(const ObservedPod& pod) override;
  void PodGone(const std::string& key) override;

  // Told of each pod that somebody else has given a node.
  void OnPlacedByOthers(std::function<void(const PodIdentity&)> callback) {
    on_placed_by_others_ = std::move(callback);
  }

  // The policy places this share of the pods, kube-default the others and those that are opted out.
  // Between 0 and 1 that is a canary, of whose choices `on_choice` is told; at 1 of some.
  void SetShare(double share) { chooser_.SetShare(share); }
  void OnChoice(std::function<void(const OwnChoice&)> callback) {
    chooser_.OnChoice(std::move(callback));
  }
  void TellChoices() { chooser_.Tell(&room_.tables()); }  // Of the last turn.

  // Decides about some pods, and has them bound. True: there is more to decide at once. An error
  // is the journal's: nothing was done.
  Result<bool> Turn();

  // How long nothing needs to be done unless the cluster tells something.
  Duration UntilDue() const;

  // Writes down the outcomes of decisions that are not written yet.
  Result<void> WriteEnds();
  bool is_idle() const { return bindings_.size() == 0; }
  SchedulingTables& tables() { return room_.tables(); }
  const SchedulingQueue& queue() const { return waiting_.queue(); }
  const SchedulerCounts& counts() const { return counts_; }
  size_t bindings() const { return bindings_.size(); }
  std::string_view policy() const { return chooser_.policy(); }
  const std::string& name() const { return options_.name; }

 private:
  void Want(const ObservedPod& pod, const std::string& key);
  void Settle(const ObservedPod& pod, const std::string& key);
  void Hear(const std::string& key, BindingNews news, const std::string& what);
  void LookForSharedName(const ObservedPod& pod, const WaitingPod& waiting);
  void LookForLostRaces();
  bool Leads();
  bool Decide(const std::string& key, PlacementRow* row);
  bool Refuse(const std::string& key, const PodRefusal& refusal, PlacementRow* row);

  SchedulerOptions options_;
  const Clock* clock_;
  PlacementActuator* actuator_;
  PlacementJournal* journal_;
  std::function<bool()> leads_;
  std::function<void(const PodIdentity&)> on_placed_by_others_;
  SchedulingRoom room_;
  SchedulerCounts counts_;
  std::vector<PlacementEnd> ends_;  // Not written yet.
  OwnChooser chooser_;
  WaitingPods waiting_;
  SentBindings bindings_;
  NameWatch name_watch_;
  std::vector<PlacementRow> batch_;
  Feasibility feasibility_;
};

}  // namespace rudderfish
