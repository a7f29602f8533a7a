// SPDX-License-Identifier: Apache-2.0
#include "task/question_summary.h"

#include <cmath>

#include "base/quad.h"
#include "task/task.h"

namespace rudderfish {
namespace {

constexpr float kRoomMax = 2;
constexpr float kPerNothing = 1e6f;                // Pods in a unit of room that they do not use.
constexpr float kNothing = -1e9f;                  // Less than any gain,
constexpr float kAnything = 1e9f;                  // and more.
constexpr float kBarOf[] = {kNothing, kAnything};  // Caps gains: without pods, with pods.
void AddQuad(const Quad& quad, float* to) { StoreQuad(LoadQuad(to) + quad, to); }

float Inverse(int64_t x) { return x > 0 ? 1.0f / static_cast<float>(x) : 0.0f; }

}  // namespace

void QuestionSummary::Update(Evaluator* evaluator, const StepCosts& costs, const Question& question,
                             const MoveEnds& ends, std::span<const Candidate> candidates) {
  model = evaluator;
  placement = &evaluator->placement();
  gains = &evaluator->Gains();
  ends_ = &ends;
  step_cost_ms = costs.next_ms;
  growth_ms = costs.growth_ms;
  last_cost_ms = costs.last_ms;
  step = question.step;
  walk_ = question.walk;
  if (world_ != model->world()) {
    SummariseWorld();
    world_ = model->world();
  }
  SummariseRows();
  SummariseLayers();
  SummariseCalls();
  SummariseCandidates(candidates);
  SummariseMoves();
  SummariseEverything();
  SummariseNodes();
  PointToRows();
  SummariseContext();
  SummariseWalk();
}

void QuestionSummary::SummariseWorld() {
  nodes_ = placement->node_count();
  workloads_ = placement->workload_count();
  kinds_ = placement->kind_count();
  layers_ = model->state().catalog->layer_count();
  layer_stride_ = RoundUpToQuads(layers_);
  is_layer_.assign(static_cast<size_t>(kinds_) * layer_stride_, 0.0f);
  workload_.assign(workloads_, {});
  kind_.assign(kinds_, {});
  node_.assign(nodes_, {});
  for (auto* per_layer : {&on_layer_, &callers_, &callees_, &layer_room_}) {
    per_layer->assign(static_cast<size_t>(workloads_) * layer_stride_, 0.0f);
  }
  for (auto* per_kind : {&room_, &best_out_, &execution_}) {
    per_kind->assign(static_cast<size_t>(workloads_) * kinds_, 0.0f);
  }
  SummariseWorkloadsOfWorld();
  SummariseCallsOfWorld();
  SummariseKindsOfWorld();
  mover_stride_ = ends_->needs().stride();
  best_in_.assign(static_cast<size_t>(kinds_) * mover_stride_, 0.0f);
  BarMovesWithinKinds();
}

void QuestionSummary::BarMovesWithinKinds() {
  const int stride = gains->target_stride();
  bar_.assign(static_cast<size_t>(kinds_) * stride, kNothing);
  for (KindId from = 0; from < kinds_; ++from) {
    for (int target = 0; target < gains->target_count(); ++target) {
      if (gains->target(target) != from) bar_[from * stride + target] = kAnything;
    }
  }
}

void QuestionSummary::SummariseWorkloadsOfWorld() {
  const Catalog& catalog = *model->state().catalog;
  largest_ = {};
  int movable = 0;
  for (WorkloadId w = 0; w < workloads_; ++w) {
    WorkloadSummary& s = workload_[w];
    s.requests = placement->requests(w);
    s.need = RoomOf(s.requests);
    s.requests_millis = static_cast<float>(s.requests.cpu_millis);
    s.requests_bytes = static_cast<float>(s.requests.memory_bytes);
    s.replicas = placement->replicas(w);
    s.movable = catalog.workloads[w].movable;
    s.share = Inverse(s.replicas);
    s.per_cpu = s.requests.cpu_millis > 0 ? Inverse(s.requests.cpu_millis) : kPerNothing;
    s.per_byte = s.requests.memory_bytes > 0 ? Inverse(s.requests.memory_bytes) : kPerNothing;
    if (!s.movable) continue;
    ++movable;
    largest_.cpu_millis = std::max(largest_.cpu_millis, s.requests.cpu_millis);
    largest_.memory_bytes = std::max(largest_.memory_bytes, s.requests.memory_bytes);
  }
  const auto movers = ends_->movers();
  for (size_t i = 0; i < movers.size(); ++i) workload_[movers[i]].mover = static_cast<int>(i);
  per_movable_ = Inverse(movable);
}

void QuestionSummary::SummariseCallsOfWorld() {
  const CallGraph& calls = model->calls();
  const float per_endpoint = 1.0f / std::max<size_t>(1, calls.endpoints.size());
  calls_.clear();
  for (CallId call = 0; call < calls.call_count(); ++call) {
    const WorkloadId callee = calls.calls[call].workload;
    for (KindId kind = 0; kind < kinds_; ++kind) {
      execution_[callee * kinds_ + kind] +=
          static_cast<float>(model->SojournMs(call, kind)) * per_endpoint;
    }
    const WorkloadId caller = model->CallerOf(call);
    if (caller == kNone) continue;
    workload_[callee].calls += per_endpoint;
    calls_.push_back({caller, callee, per_endpoint});
  }
  // Workloads without pods are nowhere: shares are among the others.
  for (const GraphEdge& call : calls_) {
    workload_[call.b].callers += workload_[call.a].replicas > 0;
    workload_[call.a].callees += workload_[call.b].replicas > 0;
  }
  partners_.clear();
  for (const GraphEdge& call : calls_)
    partners_.push_back({Inverse(workload_[call.b].callers), Inverse(workload_[call.a].callees)});
  for (WorkloadId w = 0; w < workloads_; ++w) {
    const float* on_kind = execution_.data() + w * kinds_;
    workload_[w].execution_best = kinds_ > 0 ? *std::min_element(on_kind, on_kind + kinds_) : 0;
  }
}

void QuestionSummary::SummariseKindsOfWorld() {
  const State& state = model->state();
  const Catalog& catalog = *state.catalog;
  int64_t accepting_cpu = 0;
  per_cpu_.resize(nodes_);
  for (KindId kind = 0; kind < kinds_; ++kind) {
    kind_[kind].layer = catalog.kinds[kind].layer;
    is_layer_[kind * layer_stride_ + kind_[kind].layer] = 1;
    kind_[kind].accepts_moves = catalog.layers[kind_[kind].layer].accepts_moves ? 1 : 0;
  }
  for (NodeId node = 0; node < nodes_; ++node) {
    KindSummary& kind = kind_[placement->kind(node)];
    const int64_t cpu = state.nodes.allocatable[node].cpu_millis;
    per_cpu_[node] = Inverse(cpu);
    kind.nodes += 1;
    if (kind.accepts_moves > 0) accepting_cpu += cpu;
  }
  per_accepting_cpu_ = Inverse(accepting_cpu);
  float fastest = 0;
  for (WorkloadId w = 0; w < workloads_; ++w) fastest += workload_[w].execution_best;
  hop_.resize(static_cast<size_t>(kinds_) * kinds_);
  hop_mean = hop_max = 0;
  for (KindId here = 0; here < kinds_; ++here) {
    float execution = 0;
    for (WorkloadId w = 0; w < workloads_; ++w) execution += ExecutionOn(w, here);
    kind_[here].slowness = fastest > 0 ? execution / fastest - 1 : 0;
    for (KindId other = 0; other < kinds_; ++other) {
      const float out = static_cast<float>(model->HopMsBetween(here, other));
      const float in = static_cast<float>(model->HopMsBetween(other, here));
      hop_[here * kinds_ + other] = out;
      kind_[here].hop_out += kind_[other].nodes * out / static_cast<float>(nodes_);
      kind_[here].hop_in += kind_[other].nodes * in / static_cast<float>(nodes_);
      if (here == other) continue;
      hop_mean += out;
      hop_max = std::max(hop_max, out);
    }
  }
  hop_mean *= Inverse(static_cast<int64_t>(kinds_) * (kinds_ - 1));
  client_cloud_ms = static_cast<float>(state.network.LatencyMs(state.network.layers - 1, 0));
}

// Shares of each workload, of its callers and of its callees on each layer.
void QuestionSummary::SummariseLayers() {
  for (auto* shares : {&callers_, &callees_}) std::fill(shares->begin(), shares->end(), 0.0f);
  for (WorkloadId w = 0; w < workloads_; ++w) {
    for (int layer = 0; layer < layer_stride_; layer += kQuad) {
      Quad shares{};
      for (KindId kind = 0; kind < kinds_; ++kind) {
        shares += static_cast<float>(placement->on_kind(w, kind)) * workload_[w].share *
                  LoadQuad(is_layer_.data() + kind * layer_stride_ + layer);
      }
      StoreQuad(shares, on_layer_.data() + w * layer_stride_ + layer);
    }
  }
  const float* on_layer = on_layer_.data();
  float *callers = callers_.data(), *callees = callees_.data();
  const Partners* share = partners_.data();
  for (const GraphEdge& call : calls_) {
    const int a = call.a * layer_stride_, b = call.b * layer_stride_;
    for (int layer = 0; layer < layer_stride_; layer += kQuad) {
      AddQuad(LoadQuad(on_layer + a + layer) * share->of_callers, callers + b + layer);
      AddQuad(LoadQuad(on_layer + b + layer) * share->of_callees, callees + a + layer);
    }
    ++share;
  }
}

void QuestionSummary::SummariseCalls() {
  for (WorkloadSummary& s : workload_) s.execution_now = s.hop_in = s.hop_out = 0;
  const CallGraph& calls = model->calls();
  const float per_endpoint = 1.0f / std::max<size_t>(1, calls.endpoints.size());
  for (CallId call = 0; call < calls.call_count(); ++call) {
    const auto& cost = model->cost(call);
    WorkloadSummary& callee = workload_[calls.calls[call].workload];
    callee.execution_now += static_cast<float>(cost.execution_ms) * per_endpoint;
    const WorkloadId caller = model->CallerOf(call);
    if (caller == kNone) continue;
    const float hop = static_cast<float>(cost.hop_ms) * per_endpoint;
    callee.hop_in += hop;
    workload_[caller].hop_out += hop;
  }
}

void QuestionSummary::SummariseCandidates(std::span<const Candidate> candidates) {
  for (WorkloadSummary& s : workload_) s.best_gain = kNothing;
  int paying_count = 0;
  for (size_t i = 0; i < candidates.size();) {  // Those of one workload stand together.
    const WorkloadId w = candidates[i].move.workload;
    float best = workload_[w].best_gain;
    for (; i < candidates.size() && candidates[i].move.workload == w; ++i) {
      best = std::max(best, candidates[i].gain_ms);
      paying_count += candidates[i].gain_ms > step_cost_ms;
    }
    workload_[w].best_gain = best;
  }
  paying = static_cast<float>(paying_count) *
           (1.0f / static_cast<float>(std::max<size_t>(1, candidates.size())));
  best_gain = kNothing;
  best_workload_ = kNone;
  float second = kNothing;
  for (WorkloadId w = 0; w < workloads_; ++w) {
    float& gain = workload_[w].best_gain;
    if (gain > best_gain) {
      second = best_gain;
      best_gain = gain;
      best_workload_ = w;
    } else {
      second = std::max(second, gain);
    }
    if (gain == kNothing) gain = 0;
  }
  second_gain_ = std::max(0.0f, second);
  if (best_gain == kNothing) best_gain = 0;
  per_best_gain = 1.0f / std::max({best_gain, step_cost_ms, 1e-3f});
}

void QuestionSummary::SummariseMoves() {
  sum_best_all = 0;
  CountRoom();
  for (const WorkloadId w : ends_->movers()) {
    SummariseRoom(w);
    SummariseMoves(w);
    sum_best_all += std::max(0.0f, workload_[w].best_all);
  }
}

void QuestionSummary::CountRoom() {
  std::fill(room_.begin(), room_.end(), 0.0f);
  for (const MoveEnds::End& target : ends_->targets()) {
    const NodeSummary& node = node_[target.row];
    const WorkloadSummary& s = workload_[target.workload];
    const float pods = std::min(node.free_millis * s.per_cpu, node.free_bytes * s.per_byte);
    // As a target it has room for one, whatever rounding says.
    room_[target.workload * kinds_ + node.kind] +=
        static_cast<float>(std::max(1, static_cast<int>(std::min(pods, 1e6f))));
  }
}

void QuestionSummary::SummariseRoom(WorkloadId w) {
  const WorkloadSummary& s = workload_[w];
  const float* room = room_.data() + w * kinds_;
  float* of_layer = layer_room_.data() + w * layer_stride_;
  const float* shares = on_layer_.data() + w * layer_stride_;
  for (int layer = 0; layer < layer_stride_; layer += kQuad) {
    const Quad half = AllOf(0.5f), most = AllOf(kRoomMax);
    const Quad elsewhere = static_cast<float>(s.replicas) * (1 - LoadQuad(shares + layer));
    Quad pods{};
    for (KindId kind = 0; kind < kinds_; ++kind) {
      pods += room[kind] * LoadQuad(is_layer_.data() + kind * layer_stride_ + layer);
    }
    const Quad share = pods / Max(elsewhere, half);
    StoreQuad(elsewhere < half ? most : Min(most, share), of_layer + layer);
  }
}

// The best a workload that moves could gain, room or not.
void QuestionSummary::SummariseMoves(WorkloadId w) {
  WorkloadSummary& s = workload_[w];
  const int targets = gains->target_count(), stride = gains->target_stride();
  s.best_all = targets == 0 ? 0 : kNothing;
  s.best_kind = kNone;
  const float* all = gains->GainsOfAll(w);
  for (int target = 0; target < targets; ++target) {
    const bool better = all[target] > s.best_all;
    s.best_all = std::max(s.best_all, all[target]);
    s.best_kind = better ? gains->target(target) : s.best_kind;
  }
  float* best_out = best_out_.data() + w * kinds_;
  std::fill_n(best_out, kinds_, kNothing);
  s.best_blocked = kNothing;
  const int32_t* pods = placement->on_kinds(w);
  for (int first = 0; first < stride; first += kQuad) {
    Quad best = AllOf(kNothing);
    const float *gain_from = gains->GainsFrom(w, 0) + first, *bar_from = bar_.data() + first;
    for (KindId from = 0; from < kinds_; ++from, gain_from += stride, bar_from += stride) {
      const Quad bar = Min(LoadQuad(bar_from), AllOf(kBarOf[pods[from] > 0]));
      const Quad gain = Min(LoadQuad(gain_from), bar);
      best = Max(best, gain);
      best_out[from] = std::max(best_out[from], LargestOf(gain));
    }
    const int last = std::min(kQuad, targets - first);
    for (int i = 0; i < last; ++i) {
      best_in_[gains->target(first + i) * mover_stride_ + s.mover] = best[i];
    }
    s.best_blocked = std::max(s.best_blocked, LargestOf(best));
  }
  if (s.best_blocked == kNothing) s.best_blocked = 0;
  s.spread = static_cast<float>(ends_->hosts(w).size()) * s.share;
  if (s.best_kind == kNone) return;  // No kind accepts moves.
  const int there = placement->on_kind(w, s.best_kind);
  const int elsewhere = s.replicas - there;
  s.share_on_best = static_cast<float>(there) * s.share;
  s.room_on_best =
      elsewhere == 0 ? kRoomMax
                     : std::min(kRoomMax, KindRoom(w, s.best_kind) / static_cast<float>(elsewhere));
}

void QuestionSummary::SummariseEverything() {
  best_everything = gains->target_count() == 0 ? 0 : kNothing;
  best_everything_each = 0;
  for (int target = 0; target < gains->target_count(); ++target) {
    const KindId id = gains->target(target);
    KindSummary& kind = kind_[id];
    int to_go = 0;
    for (const WorkloadId w : ends_->movers())
      to_go += workload_[w].replicas - placement->on_kind(w, id);
    kind.everything = gains->GainOfEverything(id);
    kind.everything_each = kind.everything / static_cast<float>(std::max(1, to_go));
    best_everything = std::max(best_everything, kind.everything);
    best_everything_each = std::max(best_everything_each, kind.everything_each);
  }
}

// What the others look up of each node, and what it has of its own.
void QuestionSummary::SummariseRows() {
  int64_t free_millis = 0;
  for (int row = 0; row < nodes_; ++row) {
    const MoveEnds::Node& node = ends_->node(row);
    NodeSummary& n = node_[row];
    n.kind = node.kind;
    n.free_millis = static_cast<float>(node.free.cpu_millis);
    n.free_bytes = static_cast<float>(node.free.memory_bytes);
    n.used_cpu = 1.0f - n.free_millis * per_cpu_[node.id];
    // Without a branch: which of the sorted nodes it is that comes next is as good as random.
    n.room_largest = static_cast<float>((node.free.cpu_millis >= largest_.cpu_millis) &
                                        (node.free.memory_bytes >= largest_.memory_bytes));
    n.pods = n.best_out = n.best_in = n.best_blocked = n.fits = 0;
    free_millis += node.free.cpu_millis & -static_cast<int64_t>(node.target >= 0);
  }
  free_cpu = static_cast<float>(free_millis) * per_accepting_cpu_;
}

void QuestionSummary::SummariseNodes() {
  for (int row = 0; row < nodes_; ++row) SummariseEntries(row);
  for (const MoveEnds::End& host : ends_->hosts()) {
    NodeSummary& n = node_[host.row];
    n.pods += static_cast<float>(host.pods);
    // 0 for workloads that do not move.
    n.best_out = std::max(n.best_out, best_out_[host.workload * kinds_ + n.kind]);
  }
}

// The best gain of workloads that fit the node, and of those that do not: 0 if it accepts none.
void QuestionSummary::SummariseEntries(int row) {
  NodeSummary& n = node_[row];
  const float* best_in = best_in_.data() + n.kind * mover_stride_;
  const int32_t* fits = ends_->fits(row);
  Quad open{}, blocked{}, count{};
  for (int i = 0; i < mover_stride_; i += kQuad) {
    const MaskQuad chosen = LoadMask(fits + i);
    const Quad gain = LoadQuad(best_in + i);
    count += chosen ? AllOf(1) : Quad{};
    open = Max(open, chosen ? gain : Quad{});
    blocked = Max(blocked, chosen ? Quad{} : gain);
  }
  n.best_in = LargestOf(open);
  n.best_blocked = LargestOf(blocked);
  n.fits = SumOf(count) * per_movable_;
}

void QuestionSummary::PointToRows() {
  rows_.resize(workloads_);
  for (WorkloadId w = 0; w < workloads_; ++w) {
    const size_t layers = static_cast<size_t>(w) * layer_stride_;
    const size_t kinds = static_cast<size_t>(w) * kinds_;
    rows_[w] = {.w = &workload_[w],
                .on_layer = on_layer_.data() + layers,
                .callers = callers_.data() + layers,
                .callees = callees_.data() + layers,
                .layer_room = layer_room_.data() + layers,
                .kind_room = room_.data() + kinds,
                .execution = execution_.data() + kinds,
                .on_kind = placement->on_kinds(w),
                .gain_of_all = gains->GainsOfAll(w),
                .others_best_gain = BestGainOfOthers(w)};
  }
}

void QuestionSummary::SummariseContext() {
  const Terms& now = model->Now();
  latency_ms = static_cast<float>(now.latency_ms);
  execution_ms = static_cast<float>(now.execution_ms);
  network_ms = static_cast<float>(now.network_ms);
}

void QuestionSummary::SummariseWalk() {
  for (WorkloadSummary& s : workload_) s.displaced = 0;
  for (int row = 0; row < nodes_; ++row) node_[row].more_pods = 0;
  behind_ms = since_best = displaced = won_ms = 0;
  if (walk_ == nullptr || walk_->steps() == 0) return;
  behind_ms = static_cast<float>(walk_->objective_ms() - walk_->best_objective_ms());
  since_best = static_cast<float>(walk_->steps() - walk_->best_steps());
  displaced = static_cast<float>(walk_->displaced());
  won_ms = static_cast<float>(walk_->start_ms()) - latency_ms;
  for (const WorkloadId w : ends_->movers()) {
    for (int row = 0; row < nodes_; ++row) {
      const auto more = static_cast<float>(MorePods(w, row));
      node_[row].more_pods += more;
      workload_[w].displaced += std::max(0.0f, more);
    }
  }
}

}  // namespace rudderfish
