// SPDX-License-Identifier: Apache-2.0
#include "model/kind_evaluator.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/quad.h"
#include "model/evaluator.h"

namespace rudderfish {

void KindEvaluator::Reset(const Evaluator& evaluator) {
  const Placement& placement = evaluator.placement();
  kinds_ = placement.kind_count();
  stride_ = RoundUpToQuads(kinds_);
  const bool same_calls =
      calls_ == evaluator.state().calls && workloads_ == placement.workload_count();
  workloads_ = placement.workload_count();
  calls_ = evaluator.state().calls;
  if (!same_calls) branches_.Build(*calls_, workloads_);
  const int calls = calls_->call_count();

  hop_ms_.assign(kinds_ * stride_, 0);
  for (KindId from = 0; from < kinds_; ++from) {
    for (KindId to = 0; to < kinds_; ++to)
      hop_ms_[from * stride_ + to] = evaluator.HopMsBetween(from, to);
  }
  counts_.assign(workloads_ * stride_, 0);
  share_.assign(workloads_, 0);
  for (WorkloadId w = 0; w < workloads_; ++w) {
    for (KindId kind = 0; kind < kinds_; ++kind)
      counts_[w * stride_ + kind] = placement.on_kind(w, kind);
    if (placement.replicas(w) > 0) share_[w] = 1.0 / placement.replicas(w);
  }
  fraction_.assign(workloads_ * stride_, 0);
  into_.assign(workloads_ * stride_, 0);
  flow_.assign(2 * workloads_ * stride_, 0);
  sojourn_ms_.assign(calls * stride_, 0);
  caller_.resize(calls);
  for (CallId call = 0; call < calls; ++call) {
    caller_[call] = evaluator.CallerOf(call);
    for (KindId kind = 0; kind < kinds_; ++kind) {
      sojourn_ms_[call * stride_ + kind] = evaluator.SojournMs(call, kind);
    }
  }
  own_sojourn_.assign(branches_.affected_count() * stride_, 0);
  for (int32_t i = 0; i < branches_.affected_count(); ++i) {
    const CallBranches::Span own = branches_.affected(i).own_calls;
    for (int32_t c = own.begin; c < own.end; ++c) {
      const double* sojourn = sojourn_ms_.data() + branches_.own_call(c) * stride_;
      for (int k = 0; k < kinds_; ++k)
        own_sojourn_[i * stride_ + k] += static_cast<float>(sojourn[k]);
    }
  }

  call_ms_.assign(calls, 0);
  held_ms_.assign(calls, 0);
  series_ms_.assign(branches_.branch_count(), 0);
  value_ms_.assign(branches_.branch_count(), 0);
  fork_ms_.assign(branches_.fork_count(), 0);
  is_marked_.assign(branches_.branch_count(), 0);
  is_dirty_.assign(workloads_, 1);
  dirty_.clear();
  for (WorkloadId w = 0; w < workloads_; ++w) dirty_.push_back(w);
  for (WorkloadId w = 0; w < workloads_; ++w) RefreshWorkload(w);
  for (CallId call = 0; call < calls; ++call) {
    const Evaluator::CallCost& cost = evaluator.cost(call);
    held_ms_[call] =
        cost.execution_ms + cost.queueing_ms + cost.hop_ms + cost.transfer_ms - CallMs(call);
  }
  rest_.resize(branches_.affected_fork_count());
  gains_.resize(stride_);
  prepared_ = kNone;
  HoldDistributions(evaluator);
}

// What the distribution of replies adds where calls run in parallel stays as it is.
void KindEvaluator::HoldDistributions(const Evaluator& evaluator) {
  held_latency_ms_ = 0;
  bool needs = false;
  for (size_t e = 0; e < calls_->endpoints.size(); ++e)
    needs = needs || evaluator.NeedsDistributions(static_cast<int>(e));
  if (!needs) return;
  held_latency_ms_ = evaluator.Now().latency_ms - LatencyMs();
  latency_ms_ += held_latency_ms_;
}

void KindEvaluator::Apply(WorkloadId workload, KindId from, KindId to) {
  int32_t* counts = counts_.data() + workload * stride_;
  CHECK_GT(counts[from], 0);
  --counts[from];
  ++counts[to];
  prepared_ = kNone;
  if (is_dirty_[workload]) return;
  is_dirty_[workload] = 1;
  dirty_.push_back(workload);
}

double KindEvaluator::LatencyMs() {
  if (!dirty_.empty()) Refresh();
  return latency_ms_;
}

// Sums are always taken over the same terms in the same order, so that they do not remember the
// moves before.
void KindEvaluator::Refresh() {
  for (WorkloadId w : dirty_) RefreshWorkload(w);
  for (WorkloadId w : dirty_) {
    const CallBranches::Span touching = branches_.CallsTouching(w);
    for (int32_t i = touching.begin; i < touching.end; ++i) {
      const CallId call = branches_.TouchingAt(i);
      call_ms_[call] = CallMs(call) + held_ms_[call];
      is_marked_[branches_.branch_of(call)] = 1;
    }
    is_dirty_[w] = 0;
  }
  dirty_.clear();
  SumMarkedBranches();
  ValueBranches();
}

void KindEvaluator::RefreshWorkload(WorkloadId workload) {
  const int row = workload * stride_;
  const double share = share_[workload];
  double* into = into_.data() + row;
  float* flow_into = flow_.data() + row;
  float* flow_out = flow_.data() + workloads_ * stride_ + row;
  for (int k = 0; k < kinds_; ++k) fraction_[row + k] = counts_[row + k] * share;
  for (int k = 0; k < stride_; ++k) into[k] = 0;
  for (int from = 0; from < kinds_; ++from) {
    const double fraction = fraction_[row + from];
    if (fraction == 0) continue;
    for (int k = 0; k < stride_; ++k) into[k] += fraction * hop_ms_[from * stride_ + k];
  }
  for (int k = 0; k < kinds_; ++k) {
    double out = 0;
    for (int to = 0; to < kinds_; ++to) out += fraction_[row + to] * hop_ms_[k * stride_ + to];
    flow_out[k] = static_cast<float>(out);
    flow_into[k] = static_cast<float>(into[k]);
  }
}

// Mean sojourn and hop of a call, by kinds.
double KindEvaluator::CallMs(CallId call) const {
  const double* fraction = fraction_.data() + calls_->calls[call].workload * stride_;
  const double* sojourn = sojourn_ms_.data() + call * stride_;
  double sum = 0;
  if (caller_[call] == kNone) {
    for (int k = 0; k < kinds_; ++k) sum += fraction[k] * sojourn[k];
    return sum;
  }
  const double* into = into_.data() + caller_[call] * stride_;
  for (int k = 0; k < kinds_; ++k) sum += fraction[k] * (sojourn[k] + into[k]);
  return sum;
}

void KindEvaluator::SumMarkedBranches() {
  for (int32_t branch = 0; branch < branches_.branch_count(); ++branch) {
    if (!is_marked_[branch]) continue;
    is_marked_[branch] = 0;
    const CallBranches::Span calls = branches_.CallsOf(branch);
    double sum = 0;
    for (int32_t i = calls.begin; i < calls.end; ++i) sum += call_ms_[branches_.CallAt(i)];
    series_ms_[branch] = sum;
  }
}

void KindEvaluator::ValueBranches() {
  double total = 0;
  for (int32_t branch = branches_.branch_count() - 1; branch >= 0; --branch) {
    double value = series_ms_[branch];
    const CallBranches::Span forks = branches_.ForksOf(branch);
    for (int32_t fork = forks.begin; fork < forks.end; ++fork) {
      const CallBranches::Span inside = branches_.BranchesOf(fork);
      const auto slowest =
          std::max_element(value_ms_.begin() + inside.begin, value_ms_.begin() + inside.end);
      fork_ms_[fork] = *slowest;
      value += *slowest;
    }
    value_ms_[branch] = value;
    if (branches_.parent(branch) == kNone) total += value;
  }
  latency_ms_ = total / std::max<size_t>(1, calls_->endpoints.size()) + held_latency_ms_;
}

// The time of a branch is linear in where the workload's pods are, but for calls to itself: its
// potential at a kind is what the branch would take, up to a constant, if all of them were there.
void KindEvaluator::Prepare(WorkloadId workload) {
  if (!dirty_.empty()) Refresh();
  if (prepared_ == workload) return;
  prepared_ = workload;
  const CallBranches::Span list = branches_.AffectedBy(workload);
  const size_t size = static_cast<size_t>(list.end - list.begin) * stride_;
  if (potential_.size() < size) {
    potential_.resize(size);
    change_.resize(size);
  }
  for (int32_t i = list.begin; i < list.end; ++i) {
    const CallBranches::Affected& affected = branches_.affected(i);
    if (affected.touched) {
      float* potential = potential_.data() + (i - list.begin) * stride_;
      for (int lane = 0; lane < stride_; lane += kQuad) {
        Quad sum = LoadQuad(own_sojourn_.data() + i * stride_ + lane);
        for (int32_t f = affected.flows.begin; f < affected.flows.end; ++f) {
          sum += LoadQuad(flow_.data() + branches_.flow(f) * stride_ + lane);
        }
        StoreQuad(sum, potential + lane);
      }
    }
    for (int32_t f = affected.forks.begin; f < affected.forks.end; ++f) {
      const CallBranches::AffectedFork& fork = branches_.affected_fork(f);
      const CallBranches::Span all = branches_.BranchesOf(fork.fork);
      double rest = -1e300;
      for (int32_t branch = all.begin; branch < all.end; ++branch) {
        bool changes = false;
        for (int32_t p = fork.inside.begin; p < fork.inside.end; ++p) {
          changes |= branches_.affected(list.begin + branches_.position(p)).branch == branch;
        }
        if (!changes) rest = std::max(rest, value_ms_[branch]);
      }
      rest_[f] = static_cast<float>(std::max(rest - fork_ms_[fork.fork], -1e30));
    }
  }
}

const float* KindEvaluator::GainsFrom(WorkloadId workload, KindId from) {
  Prepare(workload);
  const CallBranches::Span list = branches_.AffectedBy(workload);
  const Quad share = Quad{} + static_cast<float>(share_[workload]);
  const Quad zero{};
  const float scale = -1.0f / std::max<size_t>(1, calls_->endpoints.size());
  for (int lane = 0; lane < stride_; lane += kQuad) StoreQuad(zero, gains_.data() + lane);
  for (int32_t i = list.begin; i < list.end; ++i) {
    const CallBranches::Affected& affected = branches_.affected(i);
    float* change = change_.data() + (i - list.begin) * stride_;
    const float* potential = potential_.data() + (i - list.begin) * stride_;
    for (int lane = 0; lane < stride_; lane += kQuad) {
      StoreQuad(affected.touched ? (LoadQuad(potential + lane) - potential[from]) * share : zero,
                change + lane);
    }
    if (affected.self_calls > 0) {  // Both ends of the call move.
      const double both = affected.self_calls * share_[workload] * share_[workload];
      for (int k = 0; k < kinds_; ++k) {
        const double twist = hop_ms_[k * stride_ + k] - hop_ms_[from * stride_ + k] -
                             hop_ms_[k * stride_ + from] + hop_ms_[from * stride_ + from];
        change[k] += static_cast<float>(both * twist);
      }
    }
    for (int32_t f = affected.forks.begin; f < affected.forks.end; ++f) {
      const CallBranches::AffectedFork& fork = branches_.affected_fork(f);
      for (int lane = 0; lane < stride_; lane += kQuad) {
        Quad slowest = zero + rest_[f];  // All relative to what the fork takes now.
        for (int32_t p = fork.inside.begin; p < fork.inside.end; ++p) {
          const int32_t inner = branches_.position(p);
          const double slack =
              value_ms_[branches_.affected(list.begin + inner).branch] - fork_ms_[fork.fork];
          slowest = Max(slowest, LoadQuad(change_.data() + inner * stride_ + lane) +
                                     static_cast<float>(slack));
        }
        StoreQuad(LoadQuad(change + lane) + slowest, change + lane);
      }
    }
    if (branches_.parent(affected.branch) == kNone) {
      for (int lane = 0; lane < stride_; lane += kQuad) {
        StoreQuad(LoadQuad(gains_.data() + lane) + LoadQuad(change + lane) * scale,
                  gains_.data() + lane);
      }
    }
  }
  return gains_.data();
}

double KindErrorMs(const Evaluator& evaluator) {
  const Catalog& catalog = *evaluator.state().catalog;
  const LatencyLaw& law = evaluator.law();
  const CallGraph& calls = evaluator.calls();
  double narrowest = 1e300, loopback_ms = 0;
  for (KindId kind = 0; kind < catalog.kind_count(); ++kind) {
    narrowest = std::min(narrowest, catalog.kinds[kind].bandwidth_mbytes_per_s);
    loopback_ms =
        std::max(loopback_ms, std::abs(evaluator.HopMsBetween(kind, kind) - 2 * kLoopbackMs));
  }
  const double slowest_ms = law.transfer_ms_per_mbyte / (narrowest * kBandwidthFloor);  // For 1 MB.
  for (size_t e = 0; e < calls.endpoints.size(); ++e) {
    if (evaluator.NeedsDistributions(static_cast<int>(e))) return 1e300;
  }
  double sum_ms = 0;
  for (const Call& call : calls.calls) {
    if (call.caller != kNone)
      sum_ms += call.data_mbytes * slowest_ms + (law.loopback ? loopback_ms : 0);
  }
  const double endpoints = std::max<size_t>(1, calls.endpoints.size());
  const double rounding_ms = 2 * 6e-8 * (calls.call_count() + 16) * evaluator.Now().latency_ms;
  return sum_ms / endpoints + rounding_ms;
}

}  // namespace rudderfish
