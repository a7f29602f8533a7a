// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/wall_time.h"
#include "cluster/scheduling_observer.h"

// One pod, two choices: where our policy would put it and where somebody else would (kube-scheduler
// in shadow, kube-default in a canary), both judged by the Model on the state in which it waited,
// and its outcome. What promotions rest on. docs/journal.md describes the table.
//
// A pod has one comparison, that of its newest choice: where a Binding was not done and the pod is
// chosen for again, what was compared before is replaced. Advice comes on top.

namespace rudderfish {

// Whose choice was carried out.
enum class ComparisonGroup {
  kShadow,    // Another scheduler's.
  kAdvice,    // None yet: the pod waits, and its owner is told of our choice.
  kCanary,    // The policy's.
  kControl,   // kube-default's, by us, beside a canary.
  kEnforced,  // The policy's, which places all.
};

// Whether our rules allow the node that another scheduler chose.
enum class RulesVerdict {
  kEqual,
  kDifferent,
  kUnclear,     // The node has changed meanwhile, or is not known.
  kUnmodelled,  // The pod has what we do not model: nothing is claimed.
};

std::string_view NameOf(ComparisonGroup group);
std::string_view NameOf(RulesVerdict verdict);
ComparisonGroup ComparisonGroupNamed(std::string_view name);  // Of any other: kControl.
RulesVerdict RulesVerdictNamed(std::string_view name);        // Of any other: kUnmodelled.

struct PlacementComparison {
  PodIdentity pod;
  std::string cluster;  // By its name in the configuration; empty: the configuration's own.
  ComparisonGroup group = ComparisonGroup::kShadow;
  std::string scheduler;  // As the pod names it.
  std::string policy, objective;
  std::string node;           // Where it was put; empty: nowhere yet.
  std::string policy_node;    // Where the policy would; empty: it was not asked.
  std::string baseline_node;  // Where the other would.
  // By how much the pod changes the objective there, in fractions of the worst; less is better.
  double policy_change = 0, baseline_change = 0;
  RulesVerdict rules = RulesVerdict::kEqual;
  std::string reason;  // Why rules are not equal.
  int nodes = 0, feasible = 0;
  double waited_ms = 0;
  std::string detail = "{}";  // JSON: the nodes considered, scores and terms.

  double gain() const { return baseline_change - policy_change; }
};

// The outcome of a pod's comparison, the later word over the earlier one; but that it failed or was
// evicted is the last. "elsewhere": the choice was not carried out, as somebody else has put the
// pod on another node; it counts as no evidence.
struct PlacementOutcome {
  std::string uid;
  std::string fate;     // started, ended, gone, elsewhere, evicted, failed; empty: as it was.
  std::string failure;  // Why.
  // The Model's answers on the state some time later: what the choice is worth there, and by how
  // much the pod changes the objective where it runs.
  std::optional<double> measured_gain, measured_change;
};

// A comparison that waits for further words of its pod, as an earlier process has left it.
struct UnendedComparison {
  PodIdentity pod;
  ComparisonGroup group = ComparisonGroup::kShadow;
  std::string node, policy_node, baseline_node;
  UnixMillis written_at = 0;
  bool is_started = false, is_measured = false;
};

class ComparisonSink {
 public:
  virtual ~ComparisonSink() = default;

  // All or none. What was kept of a pod's earlier choice goes.
  virtual Result<void> AppendComparisons(std::span<const PlacementComparison> rows,
                                         std::span<const PlacementOutcome> outcomes) = 0;
};

}  // namespace rudderfish
