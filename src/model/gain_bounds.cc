// SPDX-License-Identifier: Apache-2.0
#include "model/gain_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rudderfish {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFloatRounding = 4 * 6e-8;  // Of a sum, for each of its terms.
constexpr double kDoubleRounding = 1e-11;    // Of sums over all pairs of pods of a call.

bool Transfers(const Evaluator& model, CallId call) {
  const WorkloadId caller = model.CallerOf(call);
  return caller != kNone && model.placement().replicas(caller) > 0 &&
         model.placement().replicas(model.calls().calls[call].workload) > 0;
}

}  // namespace

void GainBounds::Reset(const Evaluator& model) {
  model_ = &model;
  const CallGraph& calls = model.calls();
  const Placement& placement = model.placement();
  const Catalog& catalog = *model.state().catalog;
  per_endpoint_ = 1.0 / static_cast<double>(std::max<size_t>(1, calls.endpoints.size()));
  slowest_inverse_share_ = 0;
  for (const NodeKind& kind : catalog.kinds) {
    slowest_inverse_share_ =
        std::max(slowest_inverse_share_, 1 / (kind.bandwidth_mbytes_per_s * kBandwidthFloor));
  }
  weight_.assign(placement.workload_count(), 0);
  for (CallId call = 0; call < calls.call_count(); ++call) {
    if (!Transfers(model, call)) continue;
    const double ms =
        calls.calls[call].data_mbytes * model.law().transfer_ms_per_mbyte * per_endpoint_;
    for (const WorkloadId w : {model.CallerOf(call), calls.calls[call].workload}) {
      weight_[w] += ms / placement.replicas(w);
    }
  }
  rounding_.clear();
  for (const Endpoint& endpoint : calls.endpoints) {
    const int terms = endpoint.end - endpoint.root + placement.kind_count() + 16;
    rounding_.push_back(kFloatRounding * terms);
  }
  ListWorkloadsOfNodes();
}

void GainBounds::ListWorkloadsOfNodes() {
  const Placement& placement = model_->placement();
  node_begin_.assign(placement.node_count() + 1, 0);
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    for (const NodeId node : model_->HostsOf(w)) ++node_begin_[node + 1];
  }
  for (NodeId node = 0; node < placement.node_count(); ++node) {
    node_begin_[node + 1] += node_begin_[node];
  }
  node_workloads_.resize(node_begin_.back());
  traffic_.resize(placement.workload_count());
  for (WorkloadId w = placement.workload_count() - 1; w >= 0; --w) {
    for (const NodeId node : model_->HostsOf(w)) node_workloads_[--node_begin_[node + 1]] = w;
  }
  // Each entry was counted down to the begin of its node: one place too far up.
  node_begin_.erase(node_begin_.begin());
  node_begin_.push_back(static_cast<int32_t>(node_workloads_.size()));
}

GainRange GainBounds::Of(const Move& move, double gain_ms) {
  for (const CallId call : model_->CallsTouching(move.workload)) {
    if (model_->NeedsDistributions(model_->EndpointOf(call))) return {-kInfinity, kInfinity};
  }
  Change change;
  OwnShares shares{.before = model_->InverseShare(move.workload, move.from)};
  AddSharing(move.workload, move.from, -1, &change);
  shares.after = AddSharing(move.workload, move.to, 1, &change);
  AddOwn(move, shares, &change);
  const double rounding_ms = RoundingMs(move.workload, gain_ms);
  return {.least_ms = gain_ms - change.most_ms - rounding_ms,
          .most_ms = gain_ms - change.least_ms + rounding_ms};
}

// As Evaluator::PodTraffic, with the pods of `moved` on the node as they will be.
double GainBounds::TrafficOfPod(WorkloadId w, NodeId node, WorkloadId moved, int joining) const {
  const Placement& placement = model_->placement();
  double traffic = 0;
  for (const Evaluator::Partner& other : model_->PartnersOf(w)) {
    const int here =
        placement.on_node(other.workload, node) + (other.workload == moved ? joining : 0);
    traffic += other.traffic * (placement.replicas(other.workload) - here);
  }
  return traffic;
}

double GainBounds::AddSharing(WorkloadId workload, NodeId node, int joining, Change* change) {
  const Placement& placement = model_->placement();
  const State& state = model_->state();
  const double bandwidth = state.kind_of(node).bandwidth_mbytes_per_s;
  double use = state.nodes.background_mbytes_per_s[node];
  const double own = TrafficOfPod(workload, node, workload, joining);
  use += (placement.on_node(workload, node) + joining) * own;
  const int32_t begin = node_begin_[node], end = node_begin_[node + 1];
  for (int32_t i = begin; i < end; ++i) {
    const WorkloadId w = node_workloads_[i];
    if (w == workload) continue;
    traffic_[i - begin] = TrafficOfPod(w, node, workload, joining);
    use += placement.on_node(w, node) * traffic_[i - begin];
  }
  const auto add = [&](WorkloadId w, int pods, double inverse_share) {
    const double ms = pods * weight_[w] * (inverse_share - model_->InverseShare(w, node));
    (ms < 0 ? change->least_ms : change->most_ms) += ms;
  };
  for (int32_t i = begin; i < end; ++i) {
    const WorkloadId w = node_workloads_[i];
    if (w == workload) continue;
    add(w, placement.on_node(w, node), 1 / ShareMbytesPerS(bandwidth, use - traffic_[i - begin]));
  }
  // Of the workload itself those that are there before and after.
  const double inverse_share = 1 / ShareMbytesPerS(bandwidth, use - own);
  const int staying = placement.on_node(workload, node) + std::min(joining, 0);
  if (staying > 0) add(workload, staying, inverse_share);
  return inverse_share;
}

// By how much the mean over pairs falls or rises, times the pairs: 1 / share of the slower end.
double GainBounds::TransferOfPair(WorkloadId other, const Move& move,
                                  const OwnShares& shares) const {
  const uint16_t* pods = model_->placement().on_nodes(other);
  double sum = 0;
  for (const NodeId node : model_->HostsOf(other)) {
    const double there = model_->InverseShare(other, node);
    sum += pods[node] * (std::max(shares.after, there) - std::max(shares.before, there));
  }
  if (!model_->law().loopback) return sum;
  const auto on = [&](NodeId node, double own) {
    return pods[node] == 0 ? 0 : pods[node] * std::max(own, model_->InverseShare(other, node));
  };
  return sum + on(move.from, shares.before) - on(move.to, shares.after);
}

void GainBounds::AddOwn(const Move& move, const OwnShares& shares, Change* change) const {
  const Placement& placement = model_->placement();
  const LatencyLaw& law = model_->law();
  const WorkloadId w = move.workload;
  const auto loopback_ms = [&](NodeId node) {
    const KindId kind = placement.kind(node);
    return law.loopback ? 2 * kLoopbackMs - model_->HopMsBetween(kind, kind) : 0.0;
  };
  const double from_ms = loopback_ms(move.from), to_ms = loopback_ms(move.to);
  for (const CallId call : model_->CallsTouching(w)) {
    if (!Transfers(*model_, call)) continue;
    const Call& c = model_->calls().calls[call];
    const double transfer_ms = c.data_mbytes * law.transfer_ms_per_mbyte * per_endpoint_;
    if (c.workload == model_->CallerOf(call)) {  // Both ends move: all its pairs, either way.
      const double most_ms = 2.0 / placement.replicas(w) *
                             (transfer_ms * slowest_inverse_share_ +
                              std::max(std::abs(from_ms), std::abs(to_ms)) * per_endpoint_);
      change->least_ms -= most_ms;
      change->most_ms += most_ms;
      continue;
    }
    const WorkloadId other = c.workload == w ? model_->CallerOf(call) : c.workload;
    const double pairs = 1.0 * placement.replicas(w) * placement.replicas(other);
    const double ms = (transfer_ms * TransferOfPair(other, move, shares) +
                       (placement.on_node(other, move.to) * to_ms -
                        placement.on_node(other, move.from) * from_ms) *
                           per_endpoint_) /
                      pairs;
    const bool adds_up = model_->IsSequential(model_->EndpointOf(call));
    change->least_ms += adds_up ? ms : std::min(ms, 0.0);
    change->most_ms += adds_up ? ms : std::max(ms, 0.0);
  }
}

// A gain by kind is a sum of floats, of which none is larger than the latency of an endpoint that
// the workload takes part in, before or after.
double GainBounds::RoundingMs(WorkloadId workload, double gain_ms) const {
  double sum_ms = kDoubleRounding * model_->Now().latency_ms;
  const auto touching = model_->CallsTouching(workload);
  int last = kNone;
  for (const CallId call : touching) {  // Calls stand by endpoint.
    const int endpoint = model_->EndpointOf(call);
    if (endpoint == last) continue;
    last = endpoint;
    const double rounding =
        rounding_[endpoint] + kFloatRounding * static_cast<double>(touching.size());
    sum_ms += rounding * (model_->EndpointLatencyMs(endpoint) * per_endpoint_ + std::abs(gain_ms));
  }
  return sum_ms;
}

}  // namespace rudderfish
