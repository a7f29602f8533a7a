// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/call_graph.h"
#include "cluster/ids.h"

// A call graph seen as sums and maxima: which calls add up, and where the slowest of several sums
// counts.
//
// A branch is a set of calls that run one after another. The calls of an endpoint's root branch,
// and of each group of a call that has several groups, form one; a call with a single group leaves
// its callees in its own branch. A call with several groups is a fork of its branch. A branch costs
// the sum of its calls and of its forks, a fork costs its slowest branch. Branches stand parents
// first.
//
// For each workload it lists which branches a move of one of its pods changes: those it touches, as
// the callee or the caller of a call, and those around them. It is an index, built once per call
// graph.

namespace rudderfish {

class CallBranches {
 public:
  struct Span {
    int32_t begin = 0;
    int32_t end = 0;
  };
  // A branch changed by moves of a workload. `flows` lists what its hops depend on: workload u for
  // a call that u makes to it, workload_count + v for a call that it makes to v.
  struct Affected {
    int32_t branch = 0;
    bool touched = false;    // By calls of the workload, not only through a branch within.
    Span own_calls;          // Into own_calls(): calls that run on it.
    Span flows;              // Into flows().
    int32_t self_calls = 0;  // Calls it makes to itself.
    Span forks;  // Into affected_forks(): forks of the branch that hold another affected one.
  };
  struct AffectedFork {
    int32_t fork = 0;
    Span inside;  // Into positions(): positions of its affected branches in the workload's list.
  };

  // Allocates only for a larger graph than before.
  void Build(const CallGraph& calls, int workload_count);

  int branch_count() const { return static_cast<int>(parent_.size()); }
  int fork_count() const { return static_cast<int>(forks_.size()); }
  int32_t branch_of(CallId call) const { return branch_of_[call]; }
  int32_t parent(int32_t branch) const { return parent_[branch]; }
  // Branches of a fork; forks of a branch; calls of a branch (by CallAt).
  Span BranchesOf(int32_t fork) const { return forks_[fork]; }
  Span ForksOf(int32_t branch) const { return {fork_begin_[branch], fork_begin_[branch + 1]}; }
  Span CallsOf(int32_t branch) const { return {call_begin_[branch], call_begin_[branch + 1]}; }
  CallId CallAt(int32_t position) const { return calls_[position]; }

  // Branches that moves of the workload change, inner ones first.
  Span AffectedBy(WorkloadId workload) const {
    return {affected_begin_[workload], affected_begin_[workload + 1]};
  }
  const Affected& affected(int32_t position) const { return affected_[position]; }
  const AffectedFork& affected_fork(int32_t position) const { return affected_forks_[position]; }
  int32_t position(int32_t index) const { return positions_[index]; }
  CallId own_call(int32_t index) const { return own_calls_[index]; }
  int32_t flow(int32_t index) const { return flows_[index]; }
  int affected_count() const { return static_cast<int>(affected_.size()); }
  int affected_fork_count() const { return static_cast<int>(affected_forks_.size()); }

  // Calls that run on the workload or that it makes.
  Span CallsTouching(WorkloadId workload) const {
    return {touching_begin_[workload], touching_begin_[workload + 1]};
  }
  CallId TouchingAt(int32_t index) const { return touching_[index]; }

 private:
  void AssignBranches(const CallGraph& calls);
  void SortByBranch(const CallGraph& calls);
  void ListTouching(const CallGraph& calls, int workload_count);
  void ListAffected(const CallGraph& calls, WorkloadId workload, int workload_count);
  void ListWhatChanges(const CallGraph& calls, WorkloadId workload, int workload_count,
                       Affected* affected);
  void ListForks(int32_t first, Affected* affected);

  std::vector<int32_t> branch_of_;    // [call]
  std::vector<int32_t> parent_;       // [branch], kNone for roots
  std::vector<int32_t> fork_of_;      // [branch], kNone for roots
  std::vector<int32_t> fork_branch_;  // [fork] branch it is in
  std::vector<Span> forks_;           // [fork], by branch
  std::vector<int32_t> fork_begin_;   // [branch + 1]
  std::vector<int32_t> call_begin_;   // [branch + 1]
  std::vector<CallId> calls_;
  std::vector<int32_t> touching_begin_;
  std::vector<CallId> touching_;
  std::vector<int32_t> affected_begin_;
  std::vector<Affected> affected_;
  std::vector<AffectedFork> affected_forks_;
  std::vector<int32_t> positions_, own_calls_, flows_;
  std::vector<int32_t> order_;   // Scratch.
  std::vector<uint8_t> marked_;  // Scratch, [branch].
};

}  // namespace rudderfish
