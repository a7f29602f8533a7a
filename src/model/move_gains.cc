// SPDX-License-Identifier: Apache-2.0
#include "model/move_gains.h"

#include <algorithm>

#include "model/evaluator.h"

namespace rudderfish {
namespace {

// One vector register's worth of alternatives; the compiler splits it where registers are smaller.
constexpr int kLanes = 16;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

Lanes Load(const float* from) { return *reinterpret_cast<const Lanes*>(from); }
void Store(const Lanes& lanes, float* to) { *reinterpret_cast<Lanes*>(to) = lanes; }
Lanes Max(const Lanes& a, const Lanes& b) { return a > b ? a : b; }

}  // namespace

// One pass over the endpoints of a workload with every lane another alternative: the recursion of latency.h, with the
// workload's own execution times and the hops to and from it changed as the alternative says.
class GainComputation {
 public:
  GainComputation(const Evaluator& evaluator, MoveGains* gains)
      : evaluator_(evaluator), placement_(evaluator.placement()), calls_(evaluator.calls()), gains_(*gains) {}

  void Run() {
    Prepare();
    for (WorkloadId w = 0; w < placement_.workload_count(); ++w) {
      float* row = gains_.gains_.data() + w * gains_.lanes_;
      std::fill(row, row + gains_.lanes_, 0.0f);
      if (!evaluator_.state().catalog->workloads[w].movable || placement_.replicas(w) == 0) continue;
      int32_t done = -1;
      for (CallId call : evaluator_.CallsTouching(w)) {
        const int32_t endpoint = EndpointOf(call);
        if (endpoint == done) continue;
        done = endpoint;
        for (int lane = 0; lane < gains_.lanes_; lane += kLanes) AddEndpoint(w, endpoint, lane, row + lane);
      }
      ClearUnused(row);
    }
    for (int target = 0; target < gains_.target_count_; ++target) {
      gains_.everything_[target] = static_cast<float>(evaluator_.Now().latency_ms) - LatencyOfEverythingOn(target);
    }
  }

 private:
  void Prepare() {
    const Catalog& catalog = *evaluator_.state().catalog;
    const int kinds = placement_.kind_count();
    gains_.kind_count_ = kinds;
    gains_.target_of_.assign(kinds, -1);
    gains_.targets_.clear();
    for (KindId kind = 0; kind < kinds; ++kind) {
      if (!catalog.layers[catalog.kinds[kind].layer].accepts_moves) continue;
      gains_.target_of_[kind] = static_cast<int>(gains_.targets_.size());
      gains_.targets_.push_back(kind);
    }
    const int targets = static_cast<int>(gains_.targets_.size());
    gains_.target_count_ = targets;
    gains_.lanes_ = ((kinds + 1) * targets + kLanes - 1) / kLanes * kLanes;
    gains_.gains_.resize(static_cast<size_t>(placement_.workload_count()) * gains_.lanes_);
    gains_.everything_.resize(targets);
    gains_.subtree_.resize(static_cast<size_t>(calls_.call_count()) * kLanes);
    gains_.incoming_.resize(static_cast<size_t>(placement_.workload_count()) * kinds);
    gains_.outgoing_.resize(gains_.incoming_.size());
    for (WorkloadId w = 0; w < placement_.workload_count(); ++w) {
      const float share = 1.0f / std::max(1, placement_.replicas(w));
      for (KindId kind = 0; kind < kinds; ++kind) {
        double in = 0, out = 0;
        for (KindId other = 0; other < kinds; ++other) {
          const int here = placement_.on_kind(w, other);
          if (here == 0) continue;
          in += here * evaluator_.HopMsBetween(other, kind);
          out += here * evaluator_.HopMsBetween(kind, other);
        }
        gains_.incoming_[w * kinds + kind] = static_cast<float>(in) * share;
        gains_.outgoing_[w * kinds + kind] = static_cast<float>(out) * share;
      }
    }
  }

  int32_t EndpointOf(CallId call) const {
    const auto& endpoints = calls_.endpoints;
    const auto at = std::upper_bound(endpoints.begin(), endpoints.end(), call,
                                     [](CallId c, const Endpoint& e) { return c < e.end; });
    return static_cast<int32_t>(at - endpoints.begin());
  }

  // Calls value(from, to) for the lanes of this block that stand for moves, and all(to) for those of all pods.
  template <class Value, class All>
  Lanes Fill(int first_lane, Value value, All all) const {
    float lanes[kLanes] = {};
    const int kinds = placement_.kind_count();
    const int targets = gains_.target_count_;
    const int used = std::min(kLanes, (kinds + 1) * targets - first_lane);
    int from = first_lane / targets;
    int to = first_lane % targets;
    for (int lane = 0; lane < used; ++lane) {
      lanes[lane] = from < kinds ? value(from, gains_.targets_[to]) : all(gains_.targets_[to]);
      if (++to == targets) to = 0, ++from;
    }
    return Load(lanes);
  }

  // Change of the mean sojourn time of a call of `w`.
  Lanes SojournChange(CallId call, WorkloadId w, int lane) const {
    const float share = 1.0f / placement_.replicas(w);
    const float now = static_cast<float>(evaluator_.cost(call).execution_ms + evaluator_.cost(call).queueing_ms);
    float sojourn[64];
    const int kinds = std::min(64, placement_.kind_count());
    for (KindId kind = 0; kind < kinds; ++kind) sojourn[kind] = static_cast<float>(evaluator_.SojournMs(call, kind));
    return Fill(
        lane, [&](KindId from, KindId to) { return (sojourn[to] - sojourn[from]) * share; },
        [&](KindId to) { return sojourn[to] - now; });
  }

  // Change of the mean hop of a call that `w` makes, takes, or both.
  Lanes HopChange(CallId call, WorkloadId w, int lane) const {
    const int kinds = placement_.kind_count();
    const WorkloadId caller = evaluator_.CallerOf(call);
    const WorkloadId callee = calls_.calls[call].workload;
    const float* into = gains_.incoming_.data() + caller * kinds;
    const float* out_of = gains_.outgoing_.data() + callee * kinds;
    const float share = 1.0f / placement_.replicas(w);
    if (caller == callee) {
      const auto hop = [&](KindId a, KindId b) { return static_cast<float>(evaluator_.HopMsBetween(a, b)); };
      const float now = MeanOver(w, into);
      return Fill(
          lane,
          [&](KindId from, KindId to) {
            const float both = hop(to, to) - hop(from, to) - hop(to, from) + hop(from, from);
            return (into[to] - into[from] + out_of[to] - out_of[from]) * share + both * share * share;
          },
          [&](KindId to) { return hop(to, to) - now; });
    }
    const float* hops = callee == w ? into : out_of;
    const float now = MeanOver(w, hops);
    return Fill(
        lane, [&](KindId from, KindId to) { return (hops[to] - hops[from]) * share; },
        [&](KindId to) { return hops[to] - now; });
  }

  float MeanOver(WorkloadId w, const float* per_kind) const {
    float sum = 0;
    for (KindId kind = 0; kind < placement_.kind_count(); ++kind) sum += placement_.on_kind(w, kind) * per_kind[kind];
    return sum / placement_.replicas(w);
  }

  void AddEndpoint(WorkloadId w, int32_t endpoint, int lane, float* row) {
    const Endpoint& e = calls_.endpoints[endpoint];
    float* subtree = gains_.subtree_.data();
    for (CallId call = e.end - 1; call >= e.root; --call) {
      const Call& c = calls_.calls[call];
      const auto& cost = evaluator_.cost(call);
      Lanes total = Lanes{} + static_cast<float>(cost.execution_ms + cost.queueing_ms);
      if (c.workload == w) total += SojournChange(call, w, lane);
      Lanes slowest{};
      for (int g = c.first_group; g < c.last_group; ++g) {
        Lanes sum{};
        for (int i = calls_.groups[g].first; i < calls_.groups[g].last; ++i) {
          sum += Load(subtree + static_cast<size_t>(calls_.sequence[i]) * kLanes);
        }
        slowest = g == c.first_group ? sum : Max(slowest, sum);
      }
      total += slowest;
      if (call == e.root) {
        const float before = static_cast<float>(evaluator_.EndpointLatencyMs(endpoint));
        const float share = 1.0f / calls_.endpoints.size();
        Store(Load(row) + (before - total) * share, row);
      } else {  // What the caller waits for: the way there too.
        total += static_cast<float>(cost.hop_ms + cost.transfer_ms);
        if (c.workload == w || evaluator_.CallerOf(call) == w) total += HopChange(call, w, lane);
        Store(total, subtree + static_cast<size_t>(call) * kLanes);
      }
    }
  }

  float LatencyOfEverythingOn(int target) {
    const KindId kind = gains_.targets_[target];
    const Catalog& catalog = *evaluator_.state().catalog;
    const int kinds = placement_.kind_count();
    float* subtree = gains_.subtree_.data();
    float sum = 0;
    for (const Endpoint& e : calls_.endpoints) {
      for (CallId call = e.end - 1; call >= e.root; --call) {
        const Call& c = calls_.calls[call];
        const auto& cost = evaluator_.cost(call);
        const bool moves = catalog.workloads[c.workload].movable && placement_.replicas(c.workload) > 0;
        float total = static_cast<float>(moves ? evaluator_.SojournMs(call, kind)
                                               : cost.execution_ms + cost.queueing_ms);
        float slowest = 0;
        for (int g = c.first_group; g < c.last_group; ++g) {
          float group = 0;
          for (int i = calls_.groups[g].first; i < calls_.groups[g].last; ++i) group += subtree[calls_.sequence[i]];
          slowest = std::max(slowest, group);
        }
        total += slowest;
        const WorkloadId caller = evaluator_.CallerOf(call);
        if (caller == kNone) {
          sum += total;
          continue;
        }
        const bool caller_moves = catalog.workloads[caller].movable && placement_.replicas(caller) > 0;
        if (placement_.replicas(caller) == 0 || placement_.replicas(c.workload) == 0) {
          subtree[call] = total;  // Nobody calls or nobody answers: no way to go.
          continue;
        }
        if (moves && caller_moves) {
          total += static_cast<float>(evaluator_.HopMsBetween(kind, kind));
        } else if (moves) {
          total += gains_.incoming_[caller * kinds + kind];
        } else if (caller_moves) {
          total += gains_.outgoing_[c.workload * kinds + kind];
        } else {
          total += static_cast<float>(cost.hop_ms);
        }
        subtree[call] = total + static_cast<float>(cost.transfer_ms);
      }
    }
    return sum / std::max<size_t>(1, calls_.endpoints.size());
  }

  // A move within a kind changes nothing; unused lanes hold rounding noise of the subtraction above.
  void ClearUnused(float* row) {
    const int targets = gains_.target_count_;
    for (int target = 0; target < targets; ++target) row[gains_.targets_[target] * targets + target] = 0;
    std::fill(row + (gains_.kind_count_ + 1) * targets, row + gains_.lanes_, 0.0f);
  }

  const Evaluator& evaluator_;
  const Placement& placement_;
  const CallGraph& calls_;
  MoveGains& gains_;
};

void ComputeGains(const Evaluator& evaluator, MoveGains* gains) { GainComputation(evaluator, gains).Run(); }

}  // namespace rudderfish
