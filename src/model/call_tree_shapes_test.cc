// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "model/call_branches.h"
#include "tests/support/small_world.h"

// The branches of random call trees against the trees themselves.

namespace rudderfish {
namespace {

using testing::RandomWorld;

struct Tree {
  explicit Tree(const State& state)
      : calls(*state.calls), workloads(state.catalog->workload_count()) {}

  bool Forks(CallId call) const {
    return calls.calls[call].last_group - calls.calls[call].first_group > 1;
  }
  int GroupOf(CallId call) const {
    const Call& caller = calls.calls[calls.calls[call].caller];
    for (int g = caller.first_group; g < caller.last_group; ++g) {
      for (int i = calls.groups[g].first; i < calls.groups[g].last; ++i) {
        if (calls.sequence[i] == call) return g;
      }
    }
    ADD_FAILURE() << "call " << call << " is in no group of its caller";
    return -1;
  }
  // The branch of a call: the group of the nearest fork above it, or what stands for its root.
  int BranchOf(CallId call) const {
    const CallId caller = calls.calls[call].caller;
    if (caller == kNone) return -1 - call;
    return Forks(caller) ? GroupOf(call) : BranchOf(caller);
  }
  WorkloadId CallerOf(CallId call) const {
    const CallId caller = calls.calls[call].caller;
    return caller == kNone ? kNone : calls.calls[caller].workload;
  }
  bool Touches(CallId call, WorkloadId w) const {
    return calls.calls[call].workload == w || CallerOf(call) == w;
  }

  const CallGraph& calls;
  int workloads;
};

void ExpectBranches(const CallBranches& branches, const Tree& tree) {
  std::map<int, int32_t> seen;
  int fork_count = 0, branch_count = 0;
  for (CallId call = 0; call < tree.calls.call_count(); ++call) {
    const Call& c = tree.calls.calls[call];
    const auto at = seen.insert({tree.BranchOf(call), branches.branch_of(call)}).first;
    ASSERT_EQ(at->second, branches.branch_of(call));
    const auto same = [&](const auto& other) { return other.second == at->second; };
    ASSERT_EQ(std::count_if(seen.begin(), seen.end(), same), 1);
    if (c.caller == kNone) {
      ++branch_count;
      EXPECT_EQ(branches.parent(branches.branch_of(call)), kNone);
    } else if (tree.Forks(c.caller)) {
      EXPECT_EQ(branches.parent(branches.branch_of(call)), branches.branch_of(c.caller));
    }
    if (!tree.Forks(call)) continue;
    ++fork_count;
    branch_count += c.last_group - c.first_group;
    // One fork of the call's own branch holds the branches of its groups and no others.
    std::set<int32_t> inside;
    for (int g = c.first_group; g < c.last_group; ++g)
      inside.insert(branches.branch_of(tree.calls.sequence[tree.calls.groups[g].first]));
    const auto forks = branches.ForksOf(branches.branch_of(call));
    int found = 0;
    for (int32_t fork = forks.begin; fork < forks.end; ++fork) {
      std::set<int32_t> held;
      const auto of_fork = branches.BranchesOf(fork);
      for (int32_t branch = of_fork.begin; branch < of_fork.end; ++branch) held.insert(branch);
      found += held == inside;
    }
    EXPECT_EQ(found, 1);
  }
  EXPECT_EQ(branches.fork_count(), fork_count);
  EXPECT_EQ(branches.branch_count(), branch_count);
  int32_t forks = 0;
  for (int32_t branch = 0; branch < branches.branch_count(); ++branch) {
    EXPECT_LT(branches.parent(branch), branch);  // Parents first.
    forks += branches.ForksOf(branch).end - branches.ForksOf(branch).begin;
    std::vector<CallId> listed, expected;
    for (int32_t i = branches.CallsOf(branch).begin; i < branches.CallsOf(branch).end; ++i)
      listed.push_back(branches.CallAt(i));
    for (CallId call = 0; call < tree.calls.call_count(); ++call) {
      if (branches.branch_of(call) == branch) expected.push_back(call);
    }
    EXPECT_EQ(listed, expected);
  }
  EXPECT_EQ(forks, fork_count);
}

void ExpectAffected(const CallBranches& branches, const Tree& tree, WorkloadId w) {
  std::set<int32_t> touched, around;
  std::vector<CallId> touching;
  for (CallId call = 0; call < tree.calls.call_count(); ++call) {
    if (!tree.Touches(call, w)) continue;
    touching.push_back(call);
    touched.insert(branches.branch_of(call));
    for (int32_t b = branches.branch_of(call); b != kNone; b = branches.parent(b)) around.insert(b);
  }
  const auto span = branches.CallsTouching(w);
  std::vector<CallId> listed;
  for (int32_t i = span.begin; i < span.end; ++i) listed.push_back(branches.TouchingAt(i));
  EXPECT_EQ(listed, touching);

  const auto list = branches.AffectedBy(w);
  ASSERT_EQ(static_cast<size_t>(list.end - list.begin), around.size());
  std::map<int32_t, int32_t> position_of;
  for (int32_t i = list.begin; i < list.end; ++i) {
    const CallBranches::Affected& affected = branches.affected(i);
    const int32_t branch = affected.branch;
    if (i > list.begin) {  // Inner ones first.
      EXPECT_LT(branch, branches.affected(i - 1).branch);
    }
    EXPECT_EQ(around.count(branch), 1u);
    EXPECT_EQ(affected.touched, touched.count(branch) > 0);
    std::multiset<int32_t> own, flows, expected_own, expected_flows;
    int self_calls = 0;
    for (int32_t c = affected.own_calls.begin; c < affected.own_calls.end; ++c)
      own.insert(branches.own_call(c));
    for (int32_t f = affected.flows.begin; f < affected.flows.end; ++f)
      flows.insert(branches.flow(f));
    for (CallId call : touching) {
      if (branches.branch_of(call) != branch) continue;
      const WorkloadId caller = tree.CallerOf(call), callee = tree.calls.calls[call].workload;
      if (callee == w) expected_own.insert(call);
      if (callee == w && caller != kNone) expected_flows.insert(caller);
      if (caller == w) expected_flows.insert(tree.workloads + callee);
      self_calls += caller == w && callee == w;
    }
    EXPECT_EQ(own, expected_own);
    EXPECT_EQ(flows, expected_flows);
    EXPECT_EQ(affected.self_calls, self_calls);

    std::map<int32_t, std::set<int32_t>> inside, expected_inside;
    for (int32_t f = affected.forks.begin; f < affected.forks.end; ++f) {
      const CallBranches::AffectedFork& fork = branches.affected_fork(f);
      for (int32_t p = fork.inside.begin; p < fork.inside.end; ++p)
        inside[fork.fork].insert(branches.position(p));
    }
    const auto forks = branches.ForksOf(branch);
    for (int32_t fork = forks.begin; fork < forks.end; ++fork) {
      const auto held = branches.BranchesOf(fork);
      for (int32_t b = held.begin; b < held.end; ++b) {
        if (around.count(b) > 0) expected_inside[fork].insert(position_of.at(b));
      }
    }
    EXPECT_EQ(inside, expected_inside);
    EXPECT_EQ(static_cast<size_t>(affected.forks.end - affected.forks.begin), inside.size());
    position_of[branch] = i - list.begin;
  }
}

TEST(CallBranches, OfRandomTreesAreTheirGroupsAndWhatMovesOfAWorkloadChange) {
  CallBranches branches;  // One for all graphs: nothing of the one before is left.
  for (uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 16);
    const State state = RandomWorld(&rng);
    if (state.calls->call_count() > 150) continue;
    const Tree tree(state);
    branches.Build(*state.calls, tree.workloads);
    ExpectBranches(branches, tree);
    int affected = 0;
    for (WorkloadId w = 0; w < tree.workloads; ++w) {
      ExpectAffected(branches, tree, w);
      affected += branches.AffectedBy(w).end - branches.AffectedBy(w).begin;
    }
    EXPECT_EQ(branches.affected_count(), affected);
  }
}

}  // namespace
}  // namespace rudderfish
