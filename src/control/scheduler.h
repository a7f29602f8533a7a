// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "cluster/scheduling_observer.h"
#include "control/cluster_events.h"
#include "control/name_watch.h"
#include "control/node_scorer.h"
#include "control/own_choice.h"
#include "control/placement_actuator.h"
#include "control/placement_journal.h"
#include "control/pod_refusals.h"
#include "control/scheduling_queue.h"
#include "control/scheduling_tables.h"
#include "control/sent_bindings.h"

// A scheduler for the pods that name it (spec.schedulerName): which node each gets, one pod after
// another, by kube-scheduler's rules and a NodeScorer.
//
// A pod that was given a node is assumed there from then on; many bindings are under way at once.
// What became of one is what the API server says: bound, and then the watch is awaited; refused;
// unclear, because the server was not heard, and then the same binding is sent again until it says;
// anything else (a conflict, no such pod), and then the server is asked where the pod is. Until
// there is such a word the pod keeps its room, however long that takes: what may be taken is given
// to nobody else. So no pod is bound twice, and none is lost when this is killed at any time: who
// starts anew sees in the cluster what was done.
//
// Not thread safe. All happens within Turn and the calls of the observer and of the actuator.

namespace rudderfish {

struct SchedulerOptions {
  std::string name = "rudderfish";  // As pods name it. Empty: it places nothing, and looks on.
  std::string cluster;              // In rows of the journal.
  SchedulingQueueOptions queue;
  int bindings_max = 64;  // Under way at once.
  int batch_max = 32;     // Decided before any is sent.
  // For the watch to show a binding; then the API server is asked.
  Duration confirmation_limit = std::chrono::minutes(1);
  Duration repeat = std::chrono::seconds(1);  // Of what was not answered.
  // Of a binding: then the API server is asked, and it is decided anew if it is not done.
  Duration unclear_limit = std::chrono::seconds(30);
  int alternatives_kept = 3;  // In the journal.
  int enforced_told = 20;     // A second, while the policy places all.
  uint64_t seed = 1;          // Of who is taken among equals.
};

struct SchedulerCounts {
  int64_t decisions = 0;   // Nodes given.
  int64_t bound = 0;       // As the API server answered.
  int64_t waiting = 0;     // Attempts that found no node.
  int64_t unmodelled = 0;  // Attempts on pods that are left waiting for that.
  int64_t conflicts = 0, unclear = 0, refused = 0, gone = 0;
  int64_t unconfirmed = 0;      // Times that the watch did not show a binding in time.
  int64_t bound_elsewhere = 0;  // Our pods that somebody else gave a node.
  int64_t name_shared = 0;      // Of those that were ours alone to place.
  int64_t lost_races = 0;       // Times that a node was found to hold more than it has.
  int64_t by_policy = 0;        // Choices that were the policy's to make; of them:
  std::array<int64_t, kStepBackNames.size()> stepped_back{};
};

class Scheduler final : public SchedulingObserver {
 public:
  // All outlive it. `leads` is asked right before anything is done.
  Scheduler(SchedulerOptions options, const Clock* clock, std::unique_ptr<NodeScorer> scorer,
            PlacementActuator* actuator, PlacementJournal* journal, std::function<bool()> leads);

  void NodeSeen(const SchedulingNode& node) override;
  void NodeGone(const std::string& name) override;
  void AttachmentsSeen(const std::string& node, const std::vector<CsiVolume>& volumes) override {
    if (tables_.PutAttachments(node, volumes) != SchedulingTables::Attachments::kFewer) return;
    events_.NoteOn(node, kMayEndByDetaching);
    refusals_.NoteFreed();
  }
  void NamespaceSeen(const std::string& name, const Labels& labels) override;
  void NamespaceGone(const std::string& name) override;
  void PodSeen(const ObservedPod& pod) override;
  void PodGone(const std::string& key) override;

  // Told of each pod that somebody else has given a node.
  void OnPlacedByOthers(std::function<void(const PodIdentity&)> callback) {
    on_placed_by_others_ = std::move(callback);
  }

  // The policy places this share of the pods, kube-default the others and those that are opted out.
  // Between 0 and 1 that is a canary, of whose choices `on_choice` is told; at 1 of some.
  void SetShare(double share) { share_ = share; }
  void OnChoice(std::function<void(const OwnChoice&)> callback) {
    on_choice_ = std::move(callback);
  }
  void TellChoices() { untold_.Tell(&tables_, on_choice_); }  // Of the last turn.

  // Decides about some pods, and has them bound. True: there is more to decide at once. An error
  // is the journal's: nothing was done.
  Result<bool> Turn();

  // How long nothing needs to be done unless the cluster tells something.
  Duration UntilDue() const;

  // Writes down what is not written yet of what came of decisions.
  Result<void> WriteEnds();
  bool is_idle() const { return bindings_.empty(); }
  SchedulingTables& tables() { return tables_; }
  const SchedulingQueue& queue() const { return queue_; }
  const SchedulerCounts& counts() const { return counts_; }
  size_t bindings() const { return bindings_.size(); }
  std::string_view policy() const { return scorer_->name(); }
  const std::string& name() const { return options_.name; }

 private:
  struct Waiting {
    PodIdentity id;
    std::shared_ptr<const PodClass> shape;
    Instant since;
    std::string told;                  // Why it waits, as it was said last,
    std::string refusal;               // and that without what is said of preemption.
    std::string kinds;                 // Of the reasons in it, as they were written last.
    std::vector<std::string> sent_to;  // Nodes that a Binding was sent for.
    bool is_opted_out = false;
    std::string nominated;  // By its status; empty: no node.
  };
  void Want(const ObservedPod& pod, const std::string& key);
  void Settle(const ObservedPod& pod, const std::string& key);
  void NoteOtherHold(std::string_view node);
  void EndWaiting(const std::string& key);
  void LookForSharedName(const ObservedPod& pod, const Waiting& waiting);
  bool Leads();
  void Free(const std::string& key);
  void Unassume(const std::string& key);
  void LookForLostRaces();
  void LookAtBindings(Instant now);
  bool Decide(const std::string& key, PlacementRow* row);
  bool Refuse(const std::string& key, const PodRefusal& refusal, PlacementRow* row);
  NodeId NominatedOf(const Waiting& waiting, const SchedulingRules& rules) const;
  NodeId Choose(SchedulingRules* rules, PodClassId pod, const Waiting& waiting, PlacementRow* row);
  void LookAtQueue(int pods, SchedulingRules* rules);
  ChoiceGroup GroupOf(const Waiting& waiting);
  void Send(const std::string& key);
  void Answered(const std::string& key, int64_t row, BindingOutcome outcome,
                const std::string& why);
  void Ask(const std::string& key);
  void Found(const std::string& key, int64_t row, const Result<PodStanding>& pod);
  void NotBound(const std::string& key);
  void BoundElsewhere(SentBinding* binding, const std::string& node);
  void Forget(const std::string& key);
  void End(SentBinding* binding, Fate fate, const std::string& failure = "");
  void Placed(SentBinding* binding);

  SchedulerOptions options_;
  const Clock* clock_;
  std::unique_ptr<NodeScorer> scorer_, baseline_;
  double share_ = 1;
  PlacementActuator* actuator_;
  PlacementJournal* journal_;
  std::function<bool()> leads_;
  std::function<void(const PodIdentity&)> on_placed_by_others_;
  std::function<void(const OwnChoice&)> on_choice_;
  SchedulingTables tables_;
  SchedulingQueue queue_;
  NameWatch name_watch_;
  std::unordered_map<std::string, Waiting> waiting_;
  SentBindings bindings_;
  ClusterEvents events_;  // Since the last turn.
  PodRefusals refusals_;
  Instant bindings_looked_at_;
  std::set<std::string> to_look_at_;  // Nodes that somebody else has put a pod on.
  std::vector<PlacementEnd> ends_;
  std::vector<PlacementRow> batch_;
  UntoldChoices untold_;
  Rng rng_;
  Instant told_since_;  // A second's beginning,
  int told_ = 0;        // and how many enforced choices were told in it.
  Feasibility feasibility_;
  std::vector<PodClassId> looked_at_;                    // Of the queue, the pod in hand first.
  std::vector<std::shared_ptr<const PodClass>> behind_;  // The others.
  std::vector<double> scores_;
  SchedulerCounts counts_;
};

}  // namespace rudderfish
