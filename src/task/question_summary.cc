// SPDX-License-Identifier: Apache-2.0
#include "task/question_summary.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rudderfish {
namespace {

constexpr float kRoomMax = 2;

}  // namespace

QuestionSummary::QuestionSummary(Evaluator* evaluator, const StepCosts& costs, int step_index,
                                 ActionSpace* space)
    : model(evaluator),
      placement(&evaluator->placement()),
      gains(&evaluator->Gains()),
      step_cost_ms(costs.next_ms),
      growth_ms(costs.growth_ms),
      step(step_index) {
  nodes_ = placement->node_count();
  workloads_ = placement->workload_count();
  kinds_ = placement->kind_count();
  layers_ = evaluator->state().catalog->layer_count();
  Allocate(space);
  SummariseCalls();
  SummariseEverything();
  SummariseCandidates(*space);
  SummariseRoom();
  SummariseWorkloads();
  SummariseNodes();
  SummariseContext(*space);
}

void QuestionSummary::Allocate(ActionSpace* space) {
  static_assert(sizeof(NodeSummary) % sizeof(double) == 0 &&
                sizeof(WorkloadSummary) % sizeof(double) == 0);
  const size_t per_kind = static_cast<size_t>(workloads_) * kinds_;
  const size_t per_layer = static_cast<size_t>(workloads_) * layers_;
  const size_t bytes = nodes_ * sizeof(NodeSummary) + workloads_ * sizeof(WorkloadSummary) +
                       (4 * per_kind + 4 * per_layer + 2 * kinds_) * sizeof(float) +
                       static_cast<size_t>(nodes_) * workloads_;
  space->scratch.resize(bytes / sizeof(float) + 4);
  char* at = reinterpret_cast<char*>(space->scratch.data());
  at += reinterpret_cast<uintptr_t>(at) % alignof(int64_t);
  const auto take = [&at]<class T>(T** array, size_t count) {
    std::memset(at, 0, count * sizeof(T));
    *array = reinterpret_cast<T*>(at);
    at += count * sizeof(T);
  };
  take(&node_, nodes_);
  take(&workload_, workloads_);
  for (float** array : {&execution_, &room_, &best_in_, &best_out_}) take(array, per_kind);
  for (float** array : {&on_layer_, &callers_, &callees_, &layer_room_}) take(array, per_layer);
  take(&kind_nodes_, kinds_);
  take(&everything_each_, kinds_);
  take(&fits_, static_cast<size_t>(nodes_) * workloads_);
  ends_ = &space->ends;
}

void QuestionSummary::SummariseCalls() {
  const Catalog& catalog = *model->state().catalog;
  for (WorkloadId w = 0; w < workloads_; ++w) {
    WorkloadSummary& s = workload_[w];
    s.requests = placement->requests(w);
    s.replicas = placement->replicas(w);
    s.movable = catalog.workloads[w].movable;
    s.share = s.replicas > 0 ? 1.0f / s.replicas : 0.0f;
    for (KindId kind = 0; kind < kinds_; ++kind) {
      on_layer_[w * layers_ + catalog.kinds[kind].layer] += placement->on_kind(w, kind) * s.share;
    }
  }
  const CallGraph& calls = model->calls();
  const float per_endpoint = 1.0f / std::max<size_t>(1, calls.endpoints.size());
  for (CallId call = 0; call < calls.call_count(); ++call) {
    const WorkloadId callee = calls.calls[call].workload;
    const WorkloadId caller = model->CallerOf(call);
    WorkloadSummary& s = workload_[callee];
    for (KindId kind = 0; kind < kinds_; ++kind) {
      execution_[callee * kinds_ + kind] +=
          static_cast<float>(model->SojournMs(call, kind)) * per_endpoint;
    }
    s.execution_now += static_cast<float>(model->cost(call).execution_ms) * per_endpoint;
    if (caller == kNone) continue;
    const float hop = static_cast<float>(model->cost(call).hop_ms) * per_endpoint;
    s.calls += per_endpoint;
    s.hop_in += hop;
    workload_[caller].hop_out += hop;
    for (LayerId layer = 0; layer < layers_; ++layer) {
      callers_[callee * layers_ + layer] += on_layer_[caller * layers_ + layer];
      callees_[caller * layers_ + layer] += on_layer_[callee * layers_ + layer];
    }
  }
  for (float* shares : {callers_, callees_}) {
    for (WorkloadId w = 0; w < workloads_; ++w) {
      float sum = 0;
      for (LayerId layer = 0; layer < layers_; ++layer) sum += shares[w * layers_ + layer];
      if (sum == 0) continue;
      for (LayerId layer = 0; layer < layers_; ++layer) shares[w * layers_ + layer] /= sum;
    }
  }
}

void QuestionSummary::SummariseEverything() {
  for (int target = 0; target < gains->target_count(); ++target) {
    const KindId kind = gains->target(target);
    int to_go = 0;
    for (WorkloadId w = 0; w < workloads_; ++w) {
      if (workload_[w].movable) to_go += workload_[w].replicas - placement->on_kind(w, kind);
    }
    everything_each_[kind] = gains->GainOfEverything(kind) / std::max(1, to_go);
  }
}

void QuestionSummary::SummariseCandidates(const ActionSpace& space) {
  constexpr float kNothing = -1e9f;
  for (WorkloadId w = 0; w < workloads_; ++w) workload_[w].best_gain = kNothing;
  for (const Candidate& c : space.candidates) {
    float& best = workload_[c.move.workload].best_gain;
    best = std::max(best, c.gain_ms);
  }
  best_gain = kNothing;
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

void QuestionSummary::SummariseRoom() {
  const Catalog& catalog = *model->state().catalog;
  for (WorkloadId w = 0; w < workloads_; ++w) {
    if (!workload_[w].movable) continue;
    const Resources& requests = workload_[w].requests;
    const float per_cpu = requests.cpu_millis > 0 ? 1.0f / requests.cpu_millis : 1e6f;
    const float per_byte = requests.memory_bytes > 0 ? 1.0f / requests.memory_bytes : 1e6f;
    for (NodeId node = 0; node < nodes_; ++node) {
      if (!placement->Fits(w, node)) continue;
      fits_[node * workloads_ + w] = 1;
      const KindId kind = placement->kind(node);
      if (!catalog.layers[catalog.kinds[kind].layer].accepts_moves) continue;
      const Resources& free = placement->free(node);
      // Fits says there is room for one, whatever rounding says.
      const float pods = std::min(free.cpu_millis * per_cpu, free.memory_bytes * per_byte);
      room_[w * kinds_ + kind] += std::max(1, static_cast<int>(std::min(pods, 1e6f)));
    }
    for (KindId kind = 0; kind < kinds_; ++kind) {
      layer_room_[w * layers_ + catalog.kinds[kind].layer] += room_[w * kinds_ + kind];
    }
    for (LayerId layer = 0; layer < layers_; ++layer) {
      float& room = layer_room_[w * layers_ + layer];
      const float elsewhere = workload_[w].replicas * (1 - ShareOnLayer(w, layer));
      room = elsewhere < 0.5f ? kRoomMax : std::min(kRoomMax, room / elsewhere);
    }
  }
}

void QuestionSummary::SummariseWorkloads() {
  for (WorkloadId w = 0; w < workloads_; ++w) {
    WorkloadSummary& s = workload_[w];
    float fastest = execution_[w * kinds_];
    for (KindId kind = 1; kind < kinds_; ++kind)
      fastest = std::min(fastest, execution_[w * kinds_ + kind]);
    s.execution_best = fastest;
    if (!s.movable || s.replicas == 0) continue;
    s.best_all = -1e9f;
    s.best_blocked = -1e9f;
    for (KindId from = 0; from < kinds_; ++from) best_out_[w * kinds_ + from] = -1e9f;
    for (int target = 0; target < gains->target_count(); ++target) {
      const KindId to = gains->target(target);
      const float all = gains->GainOfAll(w, to);
      if (all > s.best_all) s.best_all = all, s.best_kind = to;
      float best = -1e9f;
      for (KindId from = 0; from < kinds_; ++from) {
        if (from == to || placement->on_kind(w, from) == 0) continue;
        const float gain = gains->Gain(w, from, to);
        best = std::max(best, gain);
        best_out_[w * kinds_ + from] = std::max(best_out_[w * kinds_ + from], gain);
      }
      best_in_[w * kinds_ + to] = best;
      s.best_blocked = std::max(s.best_blocked, best);
    }
    if (s.best_kind == kNone) {  // No kind accepts moves.
      s.best_all = s.best_blocked = 0;
      continue;
    }
    if (s.best_blocked < -1e8f) s.best_blocked = 0;
    int hosts = 0;
    for (NodeId node = 0; node < nodes_; ++node) hosts += placement->on_node(w, node) > 0;
    s.spread = hosts * s.share;
    const int there = placement->on_kind(w, s.best_kind);
    s.share_on_best = there * s.share;
    const int elsewhere = s.replicas - there;
    s.room_on_best =
        elsewhere == 0 ? kRoomMax : std::min(kRoomMax, KindRoom(w, s.best_kind) / elsewhere);
    sum_best_all += std::max(0.0f, s.best_all);
  }
}

void QuestionSummary::SummariseNodes() {
  const State& state = model->state();
  const Catalog& catalog = *state.catalog;
  int movable = 0;
  Resources largest;
  for (WorkloadId w = 0; w < workloads_; ++w) {
    if (!workload_[w].movable) continue;
    ++movable;
    largest.cpu_millis = std::max(largest.cpu_millis, workload_[w].requests.cpu_millis);
    largest.memory_bytes = std::max(largest.memory_bytes, workload_[w].requests.memory_bytes);
  }
  for (NodeId node = 0; node < nodes_; ++node) kind_nodes_[placement->kind(node)] += 1;
  for (int row = 0; row < nodes_; ++row) {
    const NodeId node = node_at(row);
    NodeSummary& n = node_[node];
    const KindId kind = placement->kind(node);
    n.row = row;
    n.free = placement->free(node);
    n.layer = catalog.kinds[kind].layer;
    n.accepts_moves = catalog.layers[n.layer].accepts_moves ? 1 : 0;
    const int64_t capacity = state.nodes.allocatable[node].cpu_millis;
    n.used_cpu = capacity > 0 ? 1.0f - static_cast<float>(n.free.cpu_millis) / capacity : 1.0f;
    n.everything = gains->GainOfEverything(kind);
    n.room_largest = n.free.Fits(largest) ? 1 : 0;
    int fitting = 0;
    float here = 0, slow = 0, fast = 0;
    for (WorkloadId w = 0; w < workloads_; ++w) {
      const int pods = placement->on_node(w, node);
      here += pods;
      slow += execution_[w * kinds_ + kind];
      fast += workload_[w].execution_best;
      if (!workload_[w].movable || workload_[w].replicas == 0) continue;
      if (pods > 0) n.best_out = std::max(n.best_out, best_out_[w * kinds_ + kind]);
      if (n.accepts_moves == 0) continue;
      const bool fits = fits_[node * workloads_ + w] != 0;
      fitting += fits;
      float& best = fits ? n.best_in : n.best_blocked;
      best = std::max(best, best_in_[w * kinds_ + kind]);
    }
    n.pods = here;
    n.slowness = fast > 0 ? slow / fast - 1 : 0;
    n.fits = movable > 0 ? static_cast<float>(fitting) / movable : 0;
    for (KindId other = 0; other < kinds_; ++other) {
      n.hop_in += kind_nodes_[other] * Hop(other, kind) / nodes_;
      n.hop_out += kind_nodes_[other] * Hop(kind, other) / nodes_;
    }
  }
}

void QuestionSummary::SummariseContext(const ActionSpace& space) {
  const Terms& now = model->Now();
  latency_ms = static_cast<float>(now.latency_ms);
  execution_ms = static_cast<float>(now.execution_ms);
  network_ms = static_cast<float>(now.network_ms);
  best_everything = -1e9f;
  for (int target = 0; target < gains->target_count(); ++target) {
    best_everything = std::max(best_everything, gains->GainOfEverything(gains->target(target)));
    best_everything_each = std::max(best_everything_each, everything_each_[gains->target(target)]);
  }
  if (gains->target_count() == 0) best_everything = 0;
  int pairs = 0;
  for (KindId from = 0; from < kinds_; ++from) {
    for (KindId to = 0; to < kinds_; ++to) {
      if (from == to) continue;
      ++pairs;
      hop_mean += Hop(from, to);
      hop_max = std::max(hop_max, Hop(from, to));
    }
  }
  if (pairs > 0) hop_mean /= pairs;
  int paying_count = 0;
  for (const Candidate& c : space.candidates) paying_count += c.gain_ms > step_cost_ms;
  paying = static_cast<float>(paying_count) / std::max(1, space.count());
  int64_t free = 0, capacity = 0;
  for (NodeId node = 0; node < nodes_; ++node) {
    if (node_[node].accepts_moves == 0) continue;
    free += node_[node].free.cpu_millis;
    capacity += model->state().nodes.allocatable[node].cpu_millis;
  }
  free_cpu = capacity > 0 ? static_cast<float>(free) / capacity : 0;
  const Network& network = model->state().network;
  client_cloud_ms = static_cast<float>(network.LatencyMs(network.layers - 1, 0));
}

Sequel QuestionSummary::SequelOf(const Move& move) const {
  Sequel sequel;
  const Resources& requests = workload_[move.workload].requests;
  const Resources from_then = placement->free(move.from) + requests;
  const Resources to_then = placement->free(move.to) - requests;
  const bool accepts = node_[move.from].accepts_moves != 0;
  const KindId from_kind = placement->kind(move.from);
  const KindId to_kind = placement->kind(move.to);
  const uint8_t* fits_from = fits_ + move.from * workloads_;
  const uint8_t* fits_to = fits_ + move.to * workloads_;
  for (WorkloadId w = 0; w < workloads_; ++w) {
    const WorkloadSummary& other = workload_[w];
    // Without branches: what fits where is as good as random.
    const bool counts = other.movable & (other.replicas > 0);
    const bool unlocks = counts & accepts & (fits_from[w] == 0) & from_then.Fits(other.requests);
    const bool blocks = counts & (fits_to[w] != 0) & !to_then.Fits(other.requests);
    sequel.unlocked += unlocks ? 1.0f : 0.0f;
    sequel.blocked += blocks ? 1.0f : 0.0f;
    sequel.unlocked_gain =
        std::max(sequel.unlocked_gain, unlocks ? best_in_[w * kinds_ + from_kind] : 0.0f);
    sequel.blocked_gain =
        std::max(sequel.blocked_gain, blocks ? best_in_[w * kinds_ + to_kind] : 0.0f);
  }
  return sequel;
}

}  // namespace rudderfish
