// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "control/node_scorer.h"
#include "control/own_choice.h"
#include "control/placement_journal.h"
#include "control/waiting_pods.h"

// Which of the nodes that may take a pod a Scheduler gives it: the one that was nominated for it,
// or the best by the policy or by kube-default, whose turn it is by the share; among equals any.
// Choices are kept until they are told of. One thread.

namespace rudderfish {

struct ChoiceCounts {
  int64_t by_policy = 0;  // Choices that were the policy's to make; of them:
  std::array<int64_t, kStepBackNames.size()> stepped_back{};
};

class OwnChooser {
 public:
  struct Options {
    int alternatives_kept, enforced_told;  // As SchedulerOptions has them.
    uint64_t seed;
  };

  // The clock and the counts outlive it.
  OwnChooser(const Options& options, const Clock* clock, std::unique_ptr<NodeScorer> scorer,
             ChoiceCounts* counts);

  void SetShare(double share) { share_ = share; }
  void OnChoice(std::function<void(const OwnChoice&)> callback) {
    on_choice_ = std::move(callback);
  }

  // What stands in the row of it: who chose, the best nodes, the chosen one first, and its reason.
  // REQUIRES: a node is feasible, by what `rules` says now.
  NodeId Choose(const WaitingPod& waiting, PodClassId pod, const WaitingPods& others,
                const Feasibility& feasibility, SchedulingRules* rules, PlacementRow* row);

  UntoldChoices& untold() { return untold_; }
  const UntoldChoices& untold() const { return untold_; }
  void Tell(SchedulingTables* tables) { untold_.Tell(tables, on_choice_); }
  std::string_view policy() const { return scorer_->name(); }

 private:
  ChoiceGroup GroupOf(const WaitingPod& waiting);
  void LookAtQueue(int pods, const WaitingPods& waiting, SchedulingRules* rules);

  Options options_;
  const Clock* clock_;
  std::unique_ptr<NodeScorer> scorer_, baseline_;
  ChoiceCounts* counts_;
  double share_ = 1;
  std::function<void(const OwnChoice&)> on_choice_;
  UntoldChoices untold_;
  Rng rng_;
  Instant told_since_;                 // A second's beginning,
  int told_ = 0;                       // and how many enforced choices were told in it.
  std::vector<PodClassId> looked_at_;  // Of the queue, the pod in hand first.
  std::vector<std::shared_ptr<const PodClass>> behind_;  // The others.
  std::vector<double> scores_;
};

}  // namespace rudderfish
