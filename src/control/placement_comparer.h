// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cluster/scheduling_observer.h"
#include "control/advice_queue.h"
#include "control/followed_pods.h"
#include "control/live_cluster.h"
#include "control/node_scorer.h"
#include "control/placement_comparison.h"
#include "control/scheduler.h"
#include "model/kube_scores.h"

// Compares the choices of other schedulers with ours. It stands before a Scheduler, which it tells
// all that it is told, so that it judges a pod that another scheduler has bound on the state right
// before. It finds what our policy would have chosen, what the Model says of both, whether our
// rules allow the other's node and, later, the outcome of the pod. The Scheduler tells it its own
// choices while a canary runs.
//
// Other schedulers count on what they have decided a moment before the cluster shows it; we do not
// see that. Where our rules forbid a node, pods that were bound since this one was seen are taken
// away and the rules are asked again.
//
// One thread.

namespace rudderfish {

enum class Comparing { kNothing, kShadow, kAdvise };

// Why a pod waits, on the state as it is now.
struct PendingStory {
  struct Group {
    std::string reason;  // kube-scheduler's words.
    std::vector<std::string> nodes;
  };
  PodIdentity pod;
  std::string scheduler;
  double waited_ms = 0;
  int nodes = 0, feasible = 0;
  std::string message;        // As kube-scheduler puts it; empty: some node may take it.
  std::vector<Group> groups;  // Most nodes first.
  std::string choice;         // Where our policy would put it; empty: nowhere.
  std::vector<std::string> gates, unmodelled;
  bool is_opted_out = false;  // Then no policy is asked.
};

class PlacementComparer final : public SchedulingObserver {
 public:
  struct Options {
    std::string scheduler_name;  // Ours; pods of other names are others'.
    Objective objective;         // Of terms that are known live.
    std::string objective_text;
    std::string cluster;                         // In rows of the journal.
    Duration settle = std::chrono::seconds(30);  // Until a choice is measured.
    Duration flush = std::chrono::milliseconds(500);
    size_t nodes_told = 3;  // Of each comparison, beside the two chosen.
  };

  // All outlive it; `next` is told what this is told. `cluster`: what the objective is asked of.
  PlacementComparer(Options options, const Clock* clock, std::unique_ptr<NodeScorer> policy,
                    std::unique_ptr<LiveCluster> cluster, Scheduler* next, ComparisonSink* sink);

  void NodeSeen(const SchedulingNode& node) override;
  void NodeGone(const std::string& name) override {
    node_changed_at_.erase(name);
    next_->NodeGone(name);
  }
  void AttachmentsSeen(const std::string& node, const std::vector<CsiVolume>& volumes) override {
    node_changed_at_[node] = clock_->Now();
    next_->AttachmentsSeen(node, volumes);
  }
  void NamespaceSeen(const std::string& name, const Labels& labels) override {
    next_->NamespaceSeen(name, labels);
  }
  void NamespaceGone(const std::string& name) override { next_->NamespaceGone(name); }
  void PodSeen(const ObservedPod& pod) override;
  void PodGone(const std::string& key) override;
  void PodFailed(const PodIdentity& pod, const std::string& reason) override;

  // Goes on with what an earlier process has left, before anything is seen; and once all that there
  // is has been seen.
  void Resume(std::span<const UnendedComparison> rows, UnixMillis now) {
    followed_.Resume(rows, now);
  }
  void EndUnseen();

  // Pods that wait when advice begins are advised, too.
  void SetComparing(Comparing what);

  // Told of each advice once it is written.
  void OnAdvice(std::function<void(const PlacementComparison&)> callback) {
    on_advice_ = std::move(callback);
  }

  // The Scheduler has chosen for a pod of its own; again, where its Binding was not done: only what
  // was chosen last is followed.
  void NoteOwnChoice(const OwnChoice& choice);

  // Measures what is due, advises, writes. An error is the journal's.
  Result<void> Turn();
  Result<void> Flush();

  // Nothing: no pod of that name ("namespace/name") waits.
  std::optional<PendingStory> Explain(const std::string& key);

  // How many pods wait for other schedulers and for ours.
  struct Waiting {
    size_t others = 0, ours = 0;
  };
  Waiting CountWaiting() const;

 private:
  struct Seen {
    PodIdentity id;
    std::shared_ptr<const PodClass> shape;
    Instant since;
    bool is_opted_out = false;
    std::string nominated;  // By its status; empty: no node.
    std::string advised;    // Of which node, last.
  };
  struct Placed {
    Instant at;
    std::string key, node;
  };

  bool IsOurs(const PodClass& shape) const { return shape.scheduler == options_.scheduler_name; }
  void CompareOther(const ObservedPod& pod, const Seen& seen);
  PlacementComparison NewRow(const PodIdentity& pod, const PodClass& shape, double waited_ms) const;
  double WaitedMs(const Seen& seen) const;
  bool IsToBeAdvised(const Seen& seen) const {
    return comparing_ == Comparing::kAdvise && !seen.is_opted_out && !IsOurs(*seen.shape);
  }
  void Advise(const std::string& key);
  // Where a scorer would put it; of equals `rather`, if it is one of them.
  NodeId BestBy(const std::vector<double>& scores, NodeId rather) const;
  double Cost(const ClusterTerms& terms) const { return options_.objective.Cost(terms); }
  // Where our scheduler would put it: there, unless another feasible node is nominated for it.
  NodeId PolicyNode(const SchedulingRules& rules, const Seen& seen, NodeId rather) const;
  static PodChange OneMore(const SchedulingRules& rules, PodClassId pod, NodeId node);
  // `queue`: the pod, and those that wait behind it.
  void ScoreByPolicy(const SchedulingRules& rules, std::span<const PodClassId> queue);
  std::vector<PodClassId> QueueFrom(const Seen& seen, PodClassId pod, SchedulingRules* rules) const;
  void ScoreByKube(const SchedulingRules& rules, PodClassId pod);
  void Judge(const SchedulingRules& rules, PodClassId pod, NodeId policy, NodeId baseline,
             PlacementComparison* row);
  std::string DetailOf(const SchedulingRules& rules, PodClassId pod,
                       std::initializer_list<NodeId> chosen);
  RulesVerdict CheckRules(const SchedulingRules& rules, const Seen& seen, PodClassId pod,
                          const std::string& node, NodeId at, std::string* reason);
  void Measure(const FollowedPods::Pod& pod);

  Options options_;
  const Clock* clock_;
  std::unique_ptr<NodeScorer> policy_;
  Scheduler* next_;
  ComparisonSink* sink_;
  std::function<void(const PlacementComparison&)> on_advice_;
  Comparing comparing_ = Comparing::kNothing;
  std::unordered_map<std::string, Seen> waits_;
  FollowedPods followed_;
  std::unordered_map<std::string, Instant> node_changed_at_;
  std::deque<Placed> recent_;
  AdviceQueue to_advise_;
  std::vector<PlacementComparison> rows_;
  Instant flushed_;
  std::unique_ptr<LiveCluster> cluster_;
  Feasibility feasibility_;
  KubeScores kube_;
  std::vector<double> policy_scores_, kube_scores_;
};

}  // namespace rudderfish
