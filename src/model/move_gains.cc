// SPDX-License-Identifier: Apache-2.0
#include "model/move_gains.h"

#include <algorithm>

#include "model/evaluator.h"

namespace rudderfish {
namespace {

// Alternatives computed at once; the compiler splits them where registers are smaller.
constexpr int kLanes = 16;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

using KindLanes =
    int32_t __attribute__((vector_size(kLanes * sizeof(int32_t)), aligned(4), may_alias));

KindLanes LoadKinds(const int32_t* from) { return *reinterpret_cast<const KindLanes*>(from); }
Lanes Load(const float* from) { return *reinterpret_cast<const Lanes*>(from); }
void Store(const Lanes& lanes, float* to) { *reinterpret_cast<Lanes*>(to) = lanes; }
Lanes Max(const Lanes& a, const Lanes& b) { return a > b ? a : b; }

}  // namespace

// Moving pods of one workload changes its calls' execution and the hops to and from them, each by a
// difference of two numbers that depend on a kind of node: v[to] - v[from], a replica's share of
// it. Where an endpoint has no parallel calls its latency is a sum, and so is the change. Elsewhere
// the recursion of latency.h is followed, every lane another alternative, from the changed calls to
// the root.
class GainComputation {
 public:
  GainComputation(const Evaluator& evaluator, MoveGains* gains)
      : model_(evaluator),
        placement_(evaluator.placement()),
        calls_(evaluator.calls()),
        g_(*gains) {}

  void Run() {
    if (g_.world_ != model_.world()) {  // Kinds and hops stay until the evaluator is reset.
      PrepareLanes();
      PrepareHops();
      ForgetMeanHops();
      g_.world_ = model_.world();
    }
    PrepareMeanHops();
    PrepareCalls();
    for (WorkloadId w = 0; w < placement_.workload_count(); ++w) {
      if (!model_.state().catalog->workloads[w].movable || placement_.replicas(w) == 0) continue;
      if (!MayHaveChanged(w)) continue;
      float* row = g_.gains_.data() + w * g_.lanes_;
      std::fill(row, row + g_.lanes_, 0.0f);
      GainsOf(w, row);
    }
    for (int target = 0; target < g_.target_count_; ++target) {
      g_.everything_[target] =
          static_cast<float>(model_.Now().latency_ms) - LatencyOfEverythingOn(g_.targets_[target]);
    }
  }

 private:
  void PrepareLanes() {
    const Catalog& catalog = *model_.state().catalog;
    const int kinds = placement_.kind_count();
    g_.kind_count_ = kinds;
    g_.target_of_.assign(kinds, -1);
    g_.targets_.clear();
    for (KindId kind = 0; kind < kinds; ++kind) {
      if (!catalog.layers[catalog.kinds[kind].layer].accepts_moves) continue;
      g_.target_of_[kind] = static_cast<int>(g_.targets_.size());
      g_.targets_.push_back(kind);
    }
    const int targets = static_cast<int>(g_.targets_.size());
    g_.target_count_ = targets;
    g_.lanes_ = ((kinds + 1) * targets + kLanes - 1) / kLanes * kLanes;
    g_.everything_.resize(targets);
    g_.gains_.assign(static_cast<size_t>(placement_.workload_count()) * g_.lanes_, 0.0f);
    g_.per_kind_.resize(kinds + 1);
    g_.call_times_.resize(kinds + 1);
    g_.as_seen_.resize(calls_.call_count());
    g_.mark_.assign(calls_.call_count(), 0);
    g_.mark_now_ = 0;
    g_.subtree_.resize(static_cast<size_t>(calls_.call_count()) * kLanes);
    // Lanes that are not used move from a kind to itself: nothing.
    g_.lane_from_.assign(g_.lanes_, 0);
    g_.lane_to_.assign(g_.lanes_, 0);
    for (int from = 0; from <= kinds; ++from) {
      for (int target = 0; target < targets; ++target) {
        g_.lane_from_[from * targets + target] = from;
        g_.lane_to_[from * targets + target] = g_.targets_[target];
      }
    }
  }

  void PrepareHops() {
    const int kinds = placement_.kind_count();
    g_.hop_.resize(kinds * kinds);
    g_.hop_back_.resize(kinds * kinds);
    for (KindId a = 0; a < kinds; ++a) {
      for (KindId b = 0; b < kinds; ++b) {
        g_.hop_[a * kinds + b] = g_.hop_back_[b * kinds + a] =
            static_cast<float>(model_.HopMsBetween(a, b));
      }
    }
  }

  void ForgetMeanHops() {
    const size_t per_kind =
        static_cast<size_t>(placement_.workload_count()) * placement_.kind_count();
    g_.incoming_.assign(per_kind, 0.0f);
    g_.outgoing_.assign(per_kind, 0.0f);
    g_.seen_on_kind_.assign(per_kind, 0);
    g_.changed_.resize(placement_.workload_count());
  }

  // Of the workloads that run on other kinds of node than when they were last looked at.
  void PrepareMeanHops() {
    const int kinds = placement_.kind_count();
    for (WorkloadId w = 0; w < placement_.workload_count(); ++w) {
      int32_t* seen = g_.seen_on_kind_.data() + w * kinds;
      int difference = 0;
      for (KindId kind = 0; kind < kinds; ++kind) {
        difference |= seen[kind] ^ placement_.on_kind(w, kind);
        seen[kind] = placement_.on_kind(w, kind);
      }
      g_.changed_[w] = difference != 0;
      if (difference != 0) MeanHopsOf(w);
    }
  }

  void MeanHopsOf(WorkloadId w) {
    const int kinds = placement_.kind_count();
    float* incoming = g_.incoming_.data() + w * kinds;
    float* outgoing = g_.outgoing_.data() + w * kinds;
    const float share = 1.0f / placement_.replicas(w);
    std::fill(incoming, incoming + kinds, 0.0f);
    std::fill(outgoing, outgoing + kinds, 0.0f);
    for (KindId other = 0; other < kinds; ++other) {
      const int here = placement_.on_kind(w, other);
      if (here == 0) continue;
      for (KindId kind = 0; kind < kinds; ++kind) {
        incoming[kind] += here * share * g_.hop_[other * kinds + kind];
        outgoing[kind] += here * share * g_.hop_back_[other * kinds + kind];
      }
    }
  }

  // Where calls only add up, a workload's gains depend on where it and those it talks to run.
  bool MayHaveChanged(WorkloadId w) const {
    if (g_.changed_[w] != 0) return true;
    for (const CallId call : model_.CallsTouching(w)) {
      const WorkloadId caller = model_.CallerOf(call);
      if (!model_.IsSequential(model_.EndpointOf(call))) return true;
      if (g_.changed_[calls_.calls[call].workload] != 0) return true;
      if (caller != kNone && g_.changed_[caller] != 0) return true;
    }
    return false;
  }

  // Calls in parallel are weighed against each other by what their callers wait for them now.
  void PrepareCalls() {
    for (size_t endpoint = 0; endpoint < calls_.endpoints.size(); ++endpoint) {
      if (model_.IsSequential(static_cast<int>(endpoint))) continue;
      const Endpoint& e = calls_.endpoints[endpoint];
      for (CallId call = e.end - 1; call >= e.root; --call) {
        const auto& cost = model_.cost(call);
        g_.as_seen_[call] = SlowestGroup(call, g_.as_seen_.data()) +
                            static_cast<float>(cost.execution_ms + cost.queueing_ms + cost.hop_ms +
                                               cost.transfer_ms);
      }
    }
  }

  float SlowestGroup(CallId call, const float* as_seen) const {
    const Call& c = calls_.calls[call];
    float slowest = 0;
    for (int g = c.first_group; g < c.last_group; ++g) {
      float sum = 0;
      for (int i = calls_.groups[g].first; i < calls_.groups[g].last; ++i)
        sum += as_seen[calls_.sequence[i]];
      slowest = g == c.first_group ? sum : std::max(slowest, sum);
    }
    return slowest;
  }

  void GainsOf(WorkloadId w, float* row) {
    const float per_endpoint = 1.0f / calls_.endpoints.size();
    std::fill(g_.per_kind_.begin(), g_.per_kind_.end(), 0.0f);
    const std::span<const CallId> touching = model_.CallsTouching(w);  // Ascending, so by endpoint.
    bool any_sum = false;
    for (size_t first = 0; first < touching.size();) {
      const int endpoint = model_.EndpointOf(touching[first]);
      size_t last = first;
      while (last < touching.size() && model_.EndpointOf(touching[last]) == endpoint) ++last;
      const auto touched = touching.subspan(first, last - first);
      if (model_.IsSequential(endpoint)) {
        any_sum = true;
        for (CallId call : touched) AddTimes(call, w, g_.per_kind_.data());
      } else {
        for (int lane = 0; lane < g_.lanes_; lane += kLanes) {
          Store(Load(row + lane) - FollowToRoot(w, endpoint, touched, lane) * per_endpoint,
                row + lane);
        }
      }
      first = last;
    }
    if (any_sum) {
      for (int lane = 0; lane < g_.lanes_; lane += kLanes) {
        Lanes change = Change(w, lane, g_.per_kind_.data());
        for (CallId call : touching) {
          if (model_.IsSequential(model_.EndpointOf(call))) change += CrossTerm(call, w, lane);
        }
        Store(Load(row + lane) - change * per_endpoint, row + lane);
      }
    }
    for (int target = 0; target < g_.target_count_; ++target)
      row[g_.targets_[target] * g_.target_count_ + target] = 0;
    std::fill(row + (g_.kind_count_ + 1) * g_.target_count_, row + g_.lanes_, 0.0f);
  }

  // Adds what a call takes if the workload's replica is on each kind: its time there and the way
  // in, or the way out.
  void AddTimes(CallId call, WorkloadId w, float* per_kind) const {
    const int kinds = g_.kind_count_;
    const WorkloadId caller = model_.CallerOf(call);
    const WorkloadId callee = calls_.calls[call].workload;
    if (callee == w) {
      for (KindId kind = 0; kind < kinds; ++kind)
        per_kind[kind] += static_cast<float>(model_.SojournMs(call, kind));
      if (caller != kNone) {
        for (KindId kind = 0; kind < kinds; ++kind)
          per_kind[kind] += g_.incoming_[caller * kinds + kind];
      }
    }
    if (caller == w) {
      for (KindId kind = 0; kind < kinds; ++kind)
        per_kind[kind] += g_.outgoing_[callee * kinds + kind];
    }
  }

  // v[to] - v[from] for each lane: a replica's share of it for a move, all of it from the mean for
  // all pods.
  Lanes Change(WorkloadId w, int first_lane, float* per_kind) const {
    const int kinds = g_.kind_count_;
    float mean = 0;
    for (KindId kind = 0; kind < kinds; ++kind)
      mean += placement_.on_kind(w, kind) * per_kind[kind];
    const float share = 1.0f / placement_.replicas(w);
    per_kind[kinds] = mean * share;
    const int32_t* from = g_.lane_from_.data() + first_lane;
    const int32_t* to = g_.lane_to_.data() + first_lane;
    float lanes[kLanes];
    for (int i = 0; i < kLanes; ++i) lanes[i] = per_kind[to[i]] - per_kind[from[i]];
    return Load(lanes) * (LoadKinds(from) == kinds ? Lanes{} + 1.0f : Lanes{} + share);
  }

  // A workload that calls itself moves both ends of the hop: the difference is quadratic. What the
  // linear part, way in plus way out, misses.
  Lanes CrossTerm(CallId call, WorkloadId w, int first_lane) const {
    Lanes none{};
    if (calls_.calls[call].workload != w || model_.CallerOf(call) != w) return none;
    const int kinds = g_.kind_count_;
    const float* hop = g_.hop_.data();
    const float* in = g_.incoming_.data() + w * kinds;
    const float* out = g_.outgoing_.data() + w * kinds;
    const float share = 1.0f / placement_.replicas(w);
    float now = 0;
    for (KindId kind = 0; kind < kinds; ++kind)
      now += placement_.on_kind(w, kind) * in[kind] * share;
    float lanes[kLanes] = {};
    for (int i = 0; i < kLanes; ++i) {
      const int a = g_.lane_from_[first_lane + i], b = g_.lane_to_[first_lane + i];
      lanes[i] = a == kinds ? hop[b * kinds + b] - in[b] - out[b] + now
                            : (hop[b * kinds + b] - hop[a * kinds + b] - hop[b * kinds + a] +
                               hop[a * kinds + a]) *
                                  share * share;
    }
    return Load(lanes);
  }

  // Change of one endpoint's latency if `touched` calls change.
  Lanes FollowToRoot(WorkloadId w, int endpoint, std::span<const CallId> touched, int first_lane) {
    ++g_.mark_now_;
    const Endpoint& e = calls_.endpoints[endpoint];
    for (CallId call : touched) {
      for (CallId up = call; up != kNone && g_.mark_[up] != g_.mark_now_;
           up = calls_.calls[up].caller) {
        g_.mark_[up] = g_.mark_now_;
      }
    }
    const CallId last = touched.back();  // Callees come after their callers.
    for (CallId call = last; call >= e.root; --call) {
      if (g_.mark_[call] != g_.mark_now_) continue;
      const Call& c = calls_.calls[call];
      const auto& cost = model_.cost(call);
      Lanes total = SlowestGroupLanes(c) + static_cast<float>(cost.execution_ms + cost.queueing_ms +
                                                              cost.hop_ms + cost.transfer_ms);
      if (c.workload == w || model_.CallerOf(call) == w) {
        float* times = g_.call_times_.data();
        std::fill(times, times + g_.kind_count_ + 1, 0.0f);
        AddTimes(call, w, times);
        total += Change(w, first_lane, times) + CrossTerm(call, w, first_lane);
      }
      Store(total, g_.subtree_.data() + static_cast<size_t>(call) * kLanes);
    }
    return Load(g_.subtree_.data() + static_cast<size_t>(e.root) * kLanes) - g_.as_seen_[e.root];
  }

  Lanes SlowestGroupLanes(const Call& c) const {
    Lanes slowest{};
    for (int g = c.first_group; g < c.last_group; ++g) {
      Lanes sum{};
      for (int i = calls_.groups[g].first; i < calls_.groups[g].last; ++i) {
        const CallId callee = calls_.sequence[i];
        if (g_.mark_[callee] == g_.mark_now_) {
          sum += Load(g_.subtree_.data() + static_cast<size_t>(callee) * kLanes);
        } else {
          sum += g_.as_seen_[callee];
        }
      }
      slowest = g == c.first_group ? sum : Max(slowest, sum);
    }
    return slowest;
  }

  float LatencyOfEverythingOn(KindId kind) {
    const Catalog& catalog = *model_.state().catalog;
    const int kinds = g_.kind_count_;
    float* as_seen = g_.subtree_.data();
    float sum = 0;
    const auto moves = [&](WorkloadId w) { return catalog.workloads[w].movable; };
    for (const Endpoint& e : calls_.endpoints) {
      for (CallId call = e.end - 1; call >= e.root; --call) {
        const WorkloadId callee = calls_.calls[call].workload;
        const WorkloadId caller = model_.CallerOf(call);
        const auto& cost = model_.cost(call);
        const bool present = placement_.replicas(callee) > 0;
        float total = SlowestGroup(call, as_seen);
        if (present) {
          total += static_cast<float>(moves(callee) ? model_.SojournMs(call, kind)
                                                    : cost.execution_ms + cost.queueing_ms);
        }
        if (present && caller != kNone && placement_.replicas(caller) > 0) {
          total += static_cast<float>(cost.transfer_ms);
          total += moves(callee)   ? moves(caller) ? g_.hop_[kind * kinds + kind]
                                                   : g_.incoming_[caller * kinds + kind]
                     : moves(caller) ? g_.outgoing_[callee * kinds + kind]
                                   : static_cast<float>(cost.hop_ms);
        }
        as_seen[call] = total;
      }
      sum += as_seen[e.root];
    }
    return sum / std::max<size_t>(1, calls_.endpoints.size());
  }

  const Evaluator& model_;
  const Placement& placement_;
  const CallGraph& calls_;
  MoveGains& g_;
};

void ComputeGains(const Evaluator& evaluator, MoveGains* gains) {
  GainComputation(evaluator, gains).Run();
}

}  // namespace rudderfish
