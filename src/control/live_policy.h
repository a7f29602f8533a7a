// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/live_cluster.h"
#include "control/node_scorer.h"
#include "policy/placement_policy.h"
#include "policy/policy_spec.h"

// A policy of the task place (policy/policy_table.h) on a live cluster: kube-default,
// least-allocated, most-allocated and round-robin as control/node_scorer.h has them, all others by
// the same code as in the simulator.
//
// In a mix `kube-default` is the total of kube-scheduler's default profile, with all that a pod
// prefers; no other score looks at that.
//
// What is learned brings its objective and what it believes of node types and pods along. Where
// something is not known that a policy looks at, it is refused rather than guessed. Immutable; any
// thread may ask for scorers of its own.

namespace rudderfish {

// That there is such a policy, and it means something on a live cluster.
Result<void> CheckLivePolicy(const PolicySpec& spec);

// As far outside of what training has shown as that was wide (policy/familiarity.h).
inline constexpr double kStrangenessMax = 1;

struct LivePolicyOptions {
  std::string policy = "kube-default";
  std::optional<Objective> objective;  // Of what is not learned; absent: balance.
  std::string type_label = std::string(kNodeTypeLabel);
  double strangeness_max = kStrangenessMax;  // Above it kube-default chooses.
};

class LivePolicy {
 public:
  // kFailedPrecondition where a checkpoint does not fit; of a learned policy's objective, only that
  // it is another than the one given: kConflict.
  static Result<LivePolicy> Load(const LivePolicyOptions& options);

  // What journals call it: of a learned one with the beginning of its checkpoint's digest, so that
  // evidence of one is not taken for another's.
  const std::string& name() const { return name_; }
  const Objective& objective() const { return objective_; }
  const PlacementFacts& facts() const { return *facts_; }
  const std::string& type_label() const { return type_label_; }
  bool is_learned() const { return is_learned_; }
  bool IsLookahead() const { return policy_ && policy_->lookahead; }

  std::unique_ptr<NodeScorer> NewScorer() const;
  // A view of the cluster for judging by the objective.
  std::unique_ptr<LiveCluster> NewCluster() const {
    return std::make_unique<LiveCluster>(*facts_, type_label_);
  }

  // What it takes for granted that the cluster does not say, for people; empty: nothing.
  std::string Beliefs() const;

 private:
  LivePolicy() = default;
  Result<void> LoadLearned(const PolicySpec& spec);
  Result<void> CheckScores() const;
  Result<void> CheckBudget() const;

  std::string name_, type_label_;
  double strangeness_max_ = kStrangenessMax;
  Objective objective_;
  std::shared_ptr<const PlacementFacts> facts_;
  std::optional<PlacementPolicy> policy_;  // None: a NodeScorer of that name.
  bool is_learned_ = false;
  bool is_mixed_ = false;
};

}  // namespace rudderfish
