// SPDX-License-Identifier: Apache-2.0
#include "model/call_branches.h"

#include <algorithm>

#include "base/check.h"

namespace rudderfish {

void CallBranches::Build(const CallGraph& calls, int workload_count) {
  AssignBranches(calls);
  SortByBranch(calls);
  ListTouching(calls, workload_count);
  affected_begin_.assign(workload_count + 1, 0);
  affected_.clear();
  affected_forks_.clear();
  positions_.clear();
  own_calls_.clear();
  flows_.clear();
  for (WorkloadId w = 0; w < workload_count; ++w) {
    ListAffected(calls, w, workload_count);
    affected_begin_[w + 1] = static_cast<int32_t>(affected_.size());
  }
}

// Calls stand in preorder, so a caller's branch is known before its callees'. The branches of a
// fork are made together and so stand in a row.
void CallBranches::AssignBranches(const CallGraph& calls) {
  branch_of_.assign(calls.call_count(), kNone);
  parent_.clear();
  fork_of_.clear();
  fork_branch_.clear();
  forks_.clear();
  for (CallId id = 0; id < calls.call_count(); ++id) {
    const Call& call = calls.calls[id];
    if (call.caller == kNone) {
      branch_of_[id] = branch_count();
      parent_.push_back(kNone);
      fork_of_.push_back(kNone);
    }
    const int32_t own = branch_of_[id];
    CHECK_NE(own, kNone);
    const bool forks = call.last_group - call.first_group > 1;
    if (forks) {
      const int32_t first = branch_count();
      forks_.push_back({first, first + call.last_group - call.first_group});
      fork_branch_.push_back(own);
      parent_.resize(forks_.back().end, own);
      fork_of_.resize(forks_.back().end, fork_count() - 1);
    }
    for (int g = call.first_group; g < call.last_group; ++g) {
      const int32_t branch = forks ? forks_.back().begin + g - call.first_group : own;
      for (int i = calls.groups[g].first; i < calls.groups[g].last; ++i)
        branch_of_[calls.sequence[i]] = branch;
    }
  }
}

void CallBranches::SortByBranch(const CallGraph& calls) {
  const int branches = branch_count();
  call_begin_.assign(branches + 1, 0);
  for (int32_t branch : branch_of_) ++call_begin_[branch + 1];
  for (int b = 0; b < branches; ++b) call_begin_[b + 1] += call_begin_[b];
  calls_.resize(calls.call_count());
  order_.assign(call_begin_.begin(), call_begin_.end());
  for (CallId call = 0; call < calls.call_count(); ++call)
    calls_[order_[branch_of_[call]]++] = call;

  // A fork's branches keep their numbers; only the forks themselves are put in the order of the
  // branches they are in.
  order_.resize(forks_.size());
  for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int32_t>(i);
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    return fork_branch_[a] != fork_branch_[b] ? fork_branch_[a] < fork_branch_[b] : a < b;
  });
  fork_begin_.assign(branches + 1, 0);
  for (int32_t branch : fork_branch_) ++fork_begin_[branch + 1];
  for (int b = 0; b < branches; ++b) fork_begin_[b + 1] += fork_begin_[b];
  positions_.clear();
  for (int32_t from : order_) {
    positions_.push_back(forks_[from].begin);
    positions_.push_back(forks_[from].end);
  }
  for (size_t i = 0; i < order_.size(); ++i) {
    forks_[i] = {positions_[2 * i], positions_[2 * i + 1]};
    for (int32_t b = forks_[i].begin; b < forks_[i].end; ++b) fork_of_[b] = static_cast<int32_t>(i);
  }
}

void CallBranches::ListTouching(const CallGraph& calls, int workload_count) {
  touching_begin_.assign(workload_count + 1, 0);
  touching_.clear();
  for (WorkloadId w = 0; w < workload_count; ++w) {
    for (CallId id = 0; id < calls.call_count(); ++id) {
      const Call& call = calls.calls[id];
      if (call.workload == w || (call.caller != kNone && calls.calls[call.caller].workload == w)) {
        touching_.push_back(id);
      }
    }
    touching_begin_[w + 1] = static_cast<int32_t>(touching_.size());
  }
}

void CallBranches::ListAffected(const CallGraph& calls, WorkloadId workload, int workload_count) {
  enum Mark : uint8_t { kUntouched, kAround, kTouched };
  marked_.assign(branch_count(), kUntouched);
  const Span touching = CallsTouching(workload);
  for (int32_t i = touching.begin; i < touching.end; ++i) {
    const int32_t touched = branch_of_[touching_[i]];
    for (int32_t b = parent_[touched]; b != kNone && marked_[b] == kUntouched; b = parent_[b])
      marked_[b] = kAround;
    marked_[touched] = kTouched;
  }
  const int32_t first = static_cast<int32_t>(affected_.size());
  for (int32_t branch = branch_count() - 1; branch >= 0; --branch) {
    if (marked_[branch] == kUntouched) continue;
    Affected affected{.branch = branch, .touched = marked_[branch] == kTouched};
    ListWhatChanges(calls, workload, workload_count, &affected);
    ListForks(first, &affected);
    affected_.push_back(affected);
  }
}

void CallBranches::ListWhatChanges(const CallGraph& calls, WorkloadId workload, int workload_count,
                                   Affected* affected) {
  affected->own_calls.begin = static_cast<int32_t>(own_calls_.size());
  affected->flows.begin = static_cast<int32_t>(flows_.size());
  const Span touching = CallsTouching(workload);
  for (int32_t i = touching.begin; i < touching.end; ++i) {
    const CallId id = touching_[i];
    if (branch_of_[id] != affected->branch) continue;
    const Call& call = calls.calls[id];
    const WorkloadId caller = call.caller == kNone ? kNone : calls.calls[call.caller].workload;
    if (call.workload == workload) {
      own_calls_.push_back(id);
      if (caller != kNone) flows_.push_back(caller);
    }
    if (caller == workload) flows_.push_back(workload_count + call.workload);
    affected->self_calls += caller == workload && call.workload == workload;
  }
  affected->own_calls.end = static_cast<int32_t>(own_calls_.size());
  affected->flows.end = static_cast<int32_t>(flows_.size());
}

void CallBranches::ListForks(int32_t first, Affected* affected) {
  affected->forks.begin = affected_fork_count();
  const Span forks = ForksOf(affected->branch);
  for (int32_t fork = forks.begin; fork < forks.end; ++fork) {
    AffectedFork entry{.fork = fork};
    entry.inside.begin = static_cast<int32_t>(positions_.size());
    for (int32_t position = first; position < affected_count(); ++position) {
      if (fork_of_[affected_[position].branch] == fork) positions_.push_back(position - first);
    }
    entry.inside.end = static_cast<int32_t>(positions_.size());
    if (entry.inside.end > entry.inside.begin) affected_forks_.push_back(entry);
  }
  affected->forks.end = affected_fork_count();
}

}  // namespace rudderfish
