// SPDX-License-Identifier: Apache-2.0
#include "model/move_gains.h"

#include <algorithm>

#include "base/quad.h"
#include "model/evaluator.h"

namespace rudderfish {
namespace {

constexpr float kNever = -1e30f;  // Less than any time.

// Rows of `width` lanes, a multiple of kQuad.
void Fill(float value, int width, float* row) {
  for (int lane = 0; lane < width; lane += kQuad) StoreQuad(AllOf(value), row + lane);
}
void Add(const float* from, int width, float* row) {
  for (int lane = 0; lane < width; lane += kQuad) {
    StoreQuad(LoadQuad(row + lane) + LoadQuad(from + lane), row + lane);
  }
}
void AddScaled(const float* from, float factor, int width, float* row) {
  for (int lane = 0; lane < width; lane += kQuad) {
    StoreQuad(LoadQuad(row + lane) + LoadQuad(from + lane) * factor, row + lane);
  }
}

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
        per_endpoint_(1.0f / static_cast<float>(std::max<size_t>(1, calls_.endpoints.size()))),
        g_(*gains) {}

  void Run() {
    const bool new_world = g_.world_ != model_.world();
    if (new_world) {
      PrepareKinds();
      PrepareWorkloads();
      PrepareCallsOfWorld();
      g_.world_ = model_.world();
    }
    const bool others_changed = PrepareMeanHops();
    if (new_world || others_changed) Settle();
    PrepareCalls();
    for (const WorkloadId w : g_.movers_) {
      if (MayHaveChanged(w)) GainsOf(w, g_.gains_.data() + w * g_.lanes_);
    }
    GainsOfEverything();
  }

 private:
  // What follows is done once a world.

  void PrepareKinds() {
    const Catalog& catalog = *model_.state().catalog;
    const int kinds = placement_.kind_count();
    g_.kind_count_ = kinds;
    g_.kind_stride_ = RoundUpToQuads(kinds);
    g_.target_of_.assign(kinds, -1);
    g_.targets_.clear();
    for (KindId kind = 0; kind < kinds; ++kind) {
      if (!catalog.layers[catalog.kinds[kind].layer].accepts_moves) continue;
      g_.target_of_[kind] = static_cast<int>(g_.targets_.size());
      g_.targets_.push_back(kind);
    }
    g_.target_count_ = static_cast<int>(g_.targets_.size());
    g_.stride_ = RoundUpToQuads(g_.target_count_);
    g_.lanes_ = (kinds + 1) * g_.stride_;
    g_.targets_.resize(g_.stride_, 0);
    g_.everything_.resize(g_.stride_);
    g_.times_.resize(g_.kind_stride_);
    g_.call_times_.resize(g_.kind_stride_);
    g_.hop_.assign(static_cast<size_t>(kinds) * g_.kind_stride_, 0.0f);
    g_.hop_back_.assign(static_cast<size_t>(kinds) * g_.kind_stride_, 0.0f);
    for (KindId a = 0; a < kinds; ++a) {
      for (KindId b = 0; b < kinds; ++b) {
        g_.hop_[a * g_.kind_stride_ + b] = g_.hop_back_[b * g_.kind_stride_ + a] =
            static_cast<float>(model_.HopMsBetween(a, b));
      }
    }
  }

  void PrepareWorkloads() {
    const Catalog& catalog = *model_.state().catalog;
    const int workloads = placement_.workload_count();
    const size_t per_kind = static_cast<size_t>(workloads) * g_.kind_stride_;
    g_.gains_.assign(static_cast<size_t>(workloads) * g_.lanes_, 0.0f);
    g_.mean_hops_.assign(2 * per_kind, 0.0f);
    g_.seen_on_kind_.assign(per_kind, 0);
    g_.changed_.assign(workloads + 1, 1);
    g_.moves_.resize(workloads);
    g_.share_.resize(workloads);
    g_.movers_.clear();
    for (WorkloadId w = 0; w < workloads; ++w) {
      const int replicas = placement_.replicas(w);
      g_.share_[w] = replicas > 0 ? 1.0f / static_cast<float>(replicas) : 0.0f;
      g_.moves_[w] = catalog.workloads[w].movable;
      if (g_.moves_[w] && replicas > 0) g_.movers_.push_back(w);
    }
  }

  void PrepareCallsOfWorld() {
    const int calls = calls_.call_count();
    g_.sojourn_.resize(static_cast<size_t>(calls) * g_.kind_stride_);
    g_.hop_stays_.resize(calls);
    g_.settled_.resize(static_cast<size_t>(calls) * g_.stride_);
    g_.as_seen_.resize(calls);
    g_.subtree_.resize(static_cast<size_t>(calls) * g_.lanes_);
    g_.mark_.assign(calls, 0);
    g_.mark_now_ = 0;
    g_.adds_up_.assign(static_cast<size_t>(placement_.workload_count()) * g_.kind_stride_, 0.0f);
    for (CallId call = 0; call < calls; ++call) {
      float* sojourn = g_.sojourn_.data() + call * g_.kind_stride_;
      for (KindId kind = 0; kind < g_.kind_count_; ++kind) {
        sojourn[kind] = static_cast<float>(model_.SojournMs(call, kind));
      }
      const WorkloadId caller = model_.CallerOf(call);
      g_.hop_stays_[call] =
          caller != kNone && !g_.moves_[caller] && !g_.moves_[calls_.calls[call].workload];
    }
    PrepareCallsThatAddUp();
  }

  // What a workload's calls take on each kind is, where calls only add up, its own time there,
  // which stays, and mean hops of those it talks to.
  void PrepareCallsThatAddUp() {
    const int workloads = placement_.workload_count();
    g_.hops_begin_.assign(1, 0);
    g_.hops_of_.clear();
    g_.path_begin_.assign(1, 0);
    g_.path_.clear();
    g_.calls_itself_.clear();
    g_.depends_begin_.assign(1, 0);
    g_.depends_on_.clear();
    for (WorkloadId w = 0; w < workloads; ++w) {
      g_.depends_on_.push_back(w);
      for (const CallId call : model_.CallsTouching(w)) {
        const WorkloadId caller = model_.CallerOf(call);
        const WorkloadId callee = calls_.calls[call].workload;
        if (!model_.IsSequential(model_.EndpointOf(call))) {
          g_.depends_on_.push_back(workloads);
          continue;
        }
        g_.depends_on_.push_back(callee);
        if (callee == w) {
          Add(g_.sojourn_.data() + call * g_.kind_stride_, g_.kind_stride_,
              g_.adds_up_.data() + w * g_.kind_stride_);
        }
        if (caller == kNone) continue;
        g_.depends_on_.push_back(caller);
        if (callee == w) g_.hops_of_.push_back(2 * caller);
        if (caller == w) g_.hops_of_.push_back(2 * callee + 1);
        if (caller == w && callee == w) g_.calls_itself_.push_back(call);
      }
      g_.hops_begin_.push_back(static_cast<int32_t>(g_.hops_of_.size()));
      ListPaths(w);
      g_.path_begin_.push_back(static_cast<int32_t>(g_.path_.size()));
      g_.depends_begin_.push_back(static_cast<int32_t>(g_.depends_on_.size()));
    }
  }

  // From a workload's calls in endpoints that are no sums up to their roots, callees first.
  void ListPaths(WorkloadId w) {
    ++g_.mark_now_;
    const std::span<const CallId> touching = model_.CallsTouching(w);
    for (size_t i = 0; i < touching.size(); ++i) {  // Ascending, so by endpoint.
      const int endpoint = model_.EndpointOf(touching[i]);
      if (model_.IsSequential(endpoint)) continue;
      for (CallId up = touching[i]; up != kNone && g_.mark_[up] != g_.mark_now_;
           up = calls_.calls[up].caller) {
        g_.mark_[up] = g_.mark_now_;
      }
      if (i + 1 < touching.size() && model_.EndpointOf(touching[i + 1]) == endpoint) continue;
      for (CallId call = touching[i]; call >= calls_.endpoints[endpoint].root; --call) {
        if (g_.mark_[call] != g_.mark_now_) continue;
        const bool changes = calls_.calls[call].workload == w || model_.CallerOf(call) == w;
        g_.path_.push_back({call, changes});
      }
    }
  }

  // What follows is done whenever gains are asked for.

  // Of the workloads that run on other kinds of node than when they were last looked at. Says
  // whether any of them may not move.
  bool PrepareMeanHops() {
    const int workloads = placement_.workload_count(), kinds = g_.kind_count_;
    bool others = false;
    for (WorkloadId w = 0; w < workloads; ++w) {
      int32_t* seen = g_.seen_on_kind_.data() + w * g_.kind_stride_;
      const int32_t* now = placement_.on_kinds(w);
      int difference = 0;
      for (KindId kind = 0; kind < kinds; ++kind) difference |= seen[kind] ^ now[kind];
      g_.changed_[w] = difference != 0;
      if (difference == 0) continue;
      std::copy_n(now, kinds, seen);
      MeanHopsOf(w);
      others |= !g_.moves_[w];
    }
    return others;
  }

  // Of the way from the workload to each kind, and of the way back.
  float* Incoming(WorkloadId w) { return g_.mean_hops_.data() + 2 * w * g_.kind_stride_; }
  float* Outgoing(WorkloadId w) { return Incoming(w) + g_.kind_stride_; }
  const float* Incoming(WorkloadId w) const {
    return g_.mean_hops_.data() + 2 * w * g_.kind_stride_;
  }
  const float* Outgoing(WorkloadId w) const { return Incoming(w) + g_.kind_stride_; }

  void MeanHopsOf(WorkloadId w) {
    float *incoming = Incoming(w), *outgoing = Outgoing(w);
    Fill(0, g_.kind_stride_, incoming);
    Fill(0, g_.kind_stride_, outgoing);
    for (KindId other = 0; other < g_.kind_count_; ++other) {
      const float share = static_cast<float>(placement_.on_kind(w, other)) * g_.share_[w];
      AddScaled(g_.hop_.data() + other * g_.kind_stride_, share, g_.kind_stride_, incoming);
      AddScaled(g_.hop_back_.data() + other * g_.kind_stride_, share, g_.kind_stride_, outgoing);
    }
  }

  // Where calls only add up, a workload's gains depend on where it and those it talks to run.
  bool MayHaveChanged(WorkloadId w) const {
    uint8_t any = 0;
    for (int i = g_.depends_begin_[w]; i < g_.depends_begin_[w + 1]; ++i) {
      any |= g_.changed_[g_.depends_on_[i]];
    }
    return any != 0;
  }

  // Calls in parallel are weighed against each other by what their callers wait for them now.
  void PrepareCalls() {
    for (size_t endpoint = 0; endpoint < calls_.endpoints.size(); ++endpoint) {
      if (model_.IsSequential(static_cast<int>(endpoint))) continue;
      const Endpoint& e = calls_.endpoints[endpoint];
      for (CallId call = e.end - 1; call >= e.root; --call) {
        g_.as_seen_[call] = SlowestGroup(call) + Now(call);
      }
    }
  }

  // What a call takes now, without those it makes.
  float Now(CallId call) const {
    const auto& cost = model_.cost(call);
    return static_cast<float>(cost.execution_ms + cost.queueing_ms + cost.hop_ms +
                              cost.transfer_ms);
  }

  float SlowestGroup(CallId call) const {
    const Call& c = calls_.calls[call];
    float slowest = 0;
    for (int g = c.first_group; g < c.last_group; ++g) {
      float sum = 0;
      for (int i = calls_.groups[g].first; i < calls_.groups[g].last; ++i)
        sum += g_.as_seen_[calls_.sequence[i]];
      slowest = g == c.first_group ? sum : std::max(slowest, sum);
    }
    return slowest;
  }

  // Sums the changes of all endpoints, then turns them into gains.
  void GainsOf(WorkloadId w, float* row) {
    const int stride = g_.kind_stride_;
    float* sum = g_.times_.data();  // Of all calls that only add up.
    std::copy_n(g_.adds_up_.data() + w * stride, stride, sum);
    for (int i = g_.hops_begin_[w]; i < g_.hops_begin_[w + 1]; ++i) {
      Add(g_.mean_hops_.data() + g_.hops_of_[i] * stride, stride, sum);
    }
    Change<false>(w, sum, row);
    FollowPaths(w, row);
    for (const CallId call : g_.calls_itself_) AddCrossTerm(call, w, row);
    for (int lane = 0; lane < g_.lanes_; lane += kQuad) {
      StoreQuad(LoadQuad(row + lane) * -per_endpoint_, row + lane);
    }
    for (int target = 0; target < g_.target_count_; ++target) {
      row[g_.targets_[target] * g_.stride_ + target] = 0;
    }
  }

  // Adds what a call takes if the workload's replica is on each kind: its time there and the way
  // in, or the way out.
  void AddTimes(CallId call, WorkloadId w, float* times) const {
    const int stride = g_.kind_stride_;
    const WorkloadId caller = model_.CallerOf(call);
    const WorkloadId callee = calls_.calls[call].workload;
    if (callee == w) {
      Add(g_.sojourn_.data() + call * stride, stride, times);
      if (caller != kNone) Add(Incoming(caller), stride, times);
    }
    if (caller == w) Add(Outgoing(callee), stride, times);
  }

  // Writes, or adds, times[to] - times[from] for each lane: a replica's share of it for a move, all
  // of it from the mean for all pods.
  template <bool kAdds>
  void Change(WorkloadId w, const float* times, float* row) const {
    const auto put = [](const Quad& change, float* lanes) {
      StoreQuad(kAdds ? LoadQuad(lanes) + change : change, lanes);
    };
    const float share = g_.share_[w];
    const int32_t* pods = placement_.on_kinds(w);
    float mean = 0;
    for (KindId kind = 0; kind < g_.kind_count_; ++kind) {
      mean += static_cast<float>(pods[kind]) * times[kind];
    }
    mean *= share;
    for (int block = 0; block < g_.stride_; block += kQuad) {
      const KindId* to = g_.targets_.data() + block;
      const Quad there{times[to[0]], times[to[1]], times[to[2]], times[to[3]]};
      float* lanes = row + block;
      for (KindId from = 0; from < g_.kind_count_; ++from, lanes += g_.stride_) {
        put((there - times[from]) * share, lanes);
      }
      put(there - mean, lanes);
    }
  }

  // A workload that calls itself moves both ends of the hop: the difference is quadratic. What the
  // linear part, way in plus way out, misses.
  void AddCrossTerm(CallId call, WorkloadId w, float* row) const {
    if (calls_.calls[call].workload != w || model_.CallerOf(call) != w) return;
    const int kinds = g_.kind_count_, stride = g_.kind_stride_;
    const float* hop = g_.hop_.data();
    const float *in = Incoming(w), *out = Outgoing(w);
    const float share = g_.share_[w];
    float now = 0;
    for (KindId kind = 0; kind < kinds; ++kind)
      now += static_cast<float>(placement_.on_kind(w, kind)) * in[kind] * share;
    for (int target = 0; target < g_.target_count_; ++target) {
      const KindId b = g_.targets_[target];
      for (KindId a = 0; a < kinds; ++a) {
        row[a * g_.stride_ + target] += (hop[b * stride + b] - hop[a * stride + b] -
                                         hop[b * stride + a] + hop[a * stride + a]) *
                                        share * share;
      }
      row[kinds * g_.stride_ + target] += hop[b * stride + b] - in[b] - out[b] + now;
    }
  }

  float* Subtree(CallId call) { return g_.subtree_.data() + static_cast<size_t>(call) * g_.lanes_; }

  // Adds how the latency of endpoints that are no sums changes.
  void FollowPaths(WorkloadId w, float* row) {
    ++g_.mark_now_;
    for (int i = g_.path_begin_[w]; i < g_.path_begin_[w + 1]; ++i) {
      const auto [call, changes] = g_.path_[i];
      g_.mark_[call] = g_.mark_now_;
      float* total = Subtree(call);
      SlowestGroupLanes(calls_.calls[call], g_.lanes_, Now(call), total);
      if (changes) {
        float* times = g_.call_times_.data();
        Fill(0, g_.kind_stride_, times);
        AddTimes(call, w, times);
        Change<true>(w, times, total);
        AddCrossTerm(call, w, total);
      }
      if (calls_.calls[call].caller != kNone) continue;
      const float now = g_.as_seen_[call];
      for (int lane = 0; lane < g_.lanes_; lane += kQuad) {
        StoreQuad(LoadQuad(row + lane) + (LoadQuad(total + lane) - now), row + lane);
      }
    }
  }

  // The call's wait for its callees, plus `own`. Adds up their lanes in place: nothing else reads
  // them.
  void SlowestGroupLanes(const Call& c, int width, float own, float* total) {
    float others = c.first_group == c.last_group ? 0 : kNever;  // Groups in which nothing changes.
    bool any_changed = false;
    for (int g = c.first_group; g < c.last_group; ++g) {
      float same = 0;
      float* changed = nullptr;
      for (int i = calls_.groups[g].first; i < calls_.groups[g].last; ++i) {
        const CallId callee = calls_.sequence[i];
        if (g_.mark_[callee] != g_.mark_now_) {
          same += g_.as_seen_[callee];
        } else if (changed == nullptr) {
          changed = Subtree(callee);
        } else {
          Add(Subtree(callee), width, changed);
        }
      }
      if (changed == nullptr) {
        others = std::max(others, same);
        continue;
      }
      for (int lane = 0; lane < width; lane += kQuad) {
        const Quad group = LoadQuad(changed + lane) + same;
        StoreQuad(any_changed ? Max(LoadQuad(total + lane), group) : group, total + lane);
      }
      any_changed = true;
    }
    if (!any_changed) return Fill(others + own, width, total);
    for (int lane = 0; lane < width; lane += kQuad) {
      StoreQuad(Max(LoadQuad(total + lane), AllOf(others)) + own, total + lane);
    }
  }

  // What calls take on each target if all that may move is there, but for what Drift() says.
  // Depends only on where those are that may not move.
  void Settle() {
    g_.settled_sum_.resize(g_.stride_);
    for (int target = 0; target < g_.stride_; ++target) {
      double sum = 0;
      for (CallId call = 0; call < calls_.call_count(); ++call) {
        const float settled = SettledMs(call, g_.targets_[target]);
        g_.settled_[static_cast<size_t>(call) * g_.stride_ + target] = settled;
        if (model_.IsSequential(model_.EndpointOf(call))) sum += settled;
      }
      g_.settled_sum_[target] = static_cast<float>(sum);
    }
  }

  float SettledMs(CallId call, KindId kind) const {
    const int stride = g_.kind_stride_;
    const WorkloadId callee = calls_.calls[call].workload;
    const WorkloadId caller = model_.CallerOf(call);
    if (placement_.replicas(callee) == 0) return 0;
    const auto& cost = model_.cost(call);
    const float own = g_.moves_[callee] ? g_.sojourn_[call * stride + kind]
                                        : static_cast<float>(cost.execution_ms + cost.queueing_ms);
    if (caller == kNone || placement_.replicas(caller) == 0 || g_.hop_stays_[call]) return own;
    if (!g_.moves_[callee]) return own + Outgoing(callee)[kind];
    return own + (g_.moves_[caller] ? g_.hop_[kind * stride + kind] : Incoming(caller)[kind]);
  }

  // What moves may change in a call even when it is settled where its ends are: who shares their
  // nodes.
  float Drift(CallId call) const {
    const auto& cost = model_.cost(call);
    return static_cast<float>(cost.transfer_ms) +
           (g_.hop_stays_[call] ? static_cast<float>(cost.hop_ms) : 0.0f);
  }

  void GainsOfEverything() {
    float* sum = g_.everything_.data();
    std::copy(g_.settled_sum_.begin(), g_.settled_sum_.end(), sum);
    float drift = 0;
    for (size_t endpoint = 0; endpoint < calls_.endpoints.size(); ++endpoint) {
      const Endpoint& e = calls_.endpoints[endpoint];
      if (model_.IsSequential(static_cast<int>(endpoint))) {
        for (CallId call = e.root; call < e.end; ++call) drift += Drift(call);
        continue;
      }
      ++g_.mark_now_;
      for (CallId call = e.end - 1; call >= e.root; --call) {
        g_.mark_[call] = g_.mark_now_;
        SlowestGroupLanes(calls_.calls[call], g_.stride_, Drift(call), Subtree(call));
        Add(g_.settled_.data() + static_cast<size_t>(call) * g_.stride_, g_.stride_, Subtree(call));
      }
      Add(Subtree(e.root), g_.stride_, sum);
    }
    const float now = static_cast<float>(model_.Now().latency_ms);
    for (int lane = 0; lane < g_.stride_; lane += kQuad) {
      StoreQuad(now - (LoadQuad(sum + lane) + drift) * per_endpoint_, sum + lane);
    }
  }

  const Evaluator& model_;
  const Placement& placement_;
  const CallGraph& calls_;
  const float per_endpoint_;
  MoveGains& g_;
};

void ComputeGains(const Evaluator& evaluator, MoveGains* gains) {
  GainComputation(evaluator, gains).Run();
}

}  // namespace rudderfish
