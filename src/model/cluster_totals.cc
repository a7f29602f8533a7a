// SPDX-License-Identifier: Apache-2.0
#include "model/cluster_totals.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kUtilisationUnits = 1 << 22;
constexpr double kMillion = 1e6;

// As std::llround, in line. What is left is exact below 2^53.
int64_t Rounded(double value) {
  const auto whole = static_cast<int64_t>(value);
  const double left = value - static_cast<double>(whole);
  return whole + (left >= 0.5 ? 1 : 0) - (left <= -0.5 ? 1 : 0);
}

// So many whole devices more in use, or fewer (below 0); no more than there are.
Devices WithWholeTaken(Devices devices, int count) {
  for (int i = 0; i < devices.count && count != 0; ++i) {
    int16_t& free = devices.free_millis[i];
    if (count > 0 ? free != kDeviceMillis : free == kDeviceMillis) continue;
    free = static_cast<int16_t>(count > 0 ? 0 : kDeviceMillis);
    count += count > 0 ? -1 : 1;
  }
  return devices;
}

double Ratio(int64_t part, int64_t whole) {
  return part != 0 && whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

double PlacementLaws::Penalty(const LatencyLimits& limits, double latency_ms, double worst_ms) {
  if (!limits.any()) return worst_ms > 0 ? latency_ms / worst_ms : 0;
  if (latency_ms > limits.hard_ms) return 1;
  return latency_ms > limits.soft_ms ? 0.5 : 0;
}

void ClusterTotals::Sums::Add(const Sums& other, int64_t sign) {
  for (int r = 0; r < kResourceKinds; ++r) {
    utilisation[r] += sign * other.utilisation[r];
    utilisation_squared[r] += sign * other.utilisation_squared[r];
    used[r] += sign * other.used[r];
    capacity[r] += sign * other.capacity[r];
    active_used[r] += sign * other.active_used[r];
    active_capacity[r] += sign * other.active_capacity[r];
  }
  ready += sign * other.ready;
  active += sign * other.active;
  pods += sign * other.pods;
  microwatts += sign * other.microwatts;
  most_microwatts += sign * other.most_microwatts;
  microprice += sign * other.microprice;
  full_microprice += sign * other.full_microprice;
  fragments += sign * other.fragments;
  latency_ns += sign * other.latency_ns;
  penalty_millionths += sign * other.penalty_millionths;
}

void ClusterTotals::Reset(const State& state, const PlacementLaws& laws) {
  state_ = &state;
  laws_ = &laws;
  CHECK(laws.costs.empty() || laws.costs.size() == state.catalog->kinds.size());
  const int layers = state.catalog->layer_count();
  counts_devices_ = std::any_of(state.nodes.devices.begin(), state.nodes.devices.end(),
                                [](const Devices& devices) { return devices.count > 0; });
  pods_on_.assign(state.nodes.size(), 0);
  pods_in_.assign(static_cast<size_t>(state.catalog->workload_count()) * layers, 0);
  node_user_ms_.assign(layers, 0);
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    const NodeId node = state.pods.node[pod];
    if (node == kNone) continue;
    ++pods_on_[node];
    ++pods_in_[state.pods.workload[pod] * layers + state.kind_of(node).layer];
  }
  sums_ = {};
  of_node_.resize(state.nodes.size());
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    of_node_[node] = OfNode(node, state.nodes.free[node], DevicesOf(node), pods_on_[node]);
    sums_.Add(of_node_[node], 1);
  }
  calls_.Reset(state, pods_in_);
  LatencyToUsersChanged();
}

void ClusterTotals::LatencyChanged() {
  calls_.LatencyChanged(state_->network, pods_in_);
  LatencyToUsersChanged();
}

void ClusterTotals::LatencyToUsersChanged() {
  sums_.latency_ns = 0;
  sums_.penalty_millionths = 0;
  if (laws_->users == kNone) return;
  const int layers = state_->catalog->layer_count();
  worst_ms_ = 0;
  for (LayerId layer = 0; layer < layers; ++layer) {
    node_user_ms_[layer] = state_->network.LatencyMs(laws_->users, layer) +
                           state_->network.LatencyMs(layer, laws_->users);
    if (layer != laws_->users) worst_ms_ = std::max(worst_ms_, node_user_ms_[layer]);
  }
  for (WorkloadId w = 0; w < state_->catalog->workload_count(); ++w) {
    for (LayerId layer = 0; layer < layers; ++layer) {
      const int64_t pods = pods_in_[w * layers + layer];
      if (pods == 0) continue;
      const double ms = node_user_ms_[layer];
      const LatencyLimits& limits = state_->catalog->workloads[w].latency_limits;
      sums_.latency_ns += pods * Rounded(ms * kMillion);
      sums_.penalty_millionths +=
          pods * Rounded(PlacementLaws::Penalty(limits, ms, worst_ms_) * kMillion);
    }
  }
}

void ClusterTotals::AddLatency(WorkloadId workload, NodeId node, int64_t pods, Sums* sums) const {
  if (laws_->users == kNone) return;
  sums->latency_ns += pods * Rounded(NodeUserMs(node) * kMillion);
  sums->penalty_millionths += pods * Rounded(NodeUserPenalty(workload, node) * kMillion);
}

double ClusterTotals::NodeUserMs(NodeId node) const {
  return node_user_ms_[state_->kind_of(node).layer];
}

double ClusterTotals::NodeUserPenalty(WorkloadId workload, NodeId node) const {
  return PlacementLaws::Penalty(state_->catalog->workloads[workload].latency_limits,
                                NodeUserMs(node), worst_ms_);
}

double ClusterTotals::PartnerMs(WorkloadId workload, NodeId node) const {
  return calls_.MeanMs(workload, state_->kind_of(node).layer, pods_in_);
}

const Devices& ClusterTotals::DevicesOf(NodeId node) const {
  static constexpr Devices kNoDevices;
  return state_->nodes.devices.empty() ? kNoDevices : state_->nodes.devices[node];
}

ClusterTotals::Sums ClusterTotals::OfNode(NodeId node, const Resources& free,
                                          const Devices& devices, int pods) const {
  Sums sums;
  if (!state_->nodes.IsReady(node)) return sums;
  const Resources& allocatable = state_->nodes.allocatable[node];
  sums.capacity = {allocatable.cpu_millis, allocatable.memory_bytes, devices.total_millis()};
  sums.used = {allocatable.cpu_millis - free.cpu_millis,
               allocatable.memory_bytes - free.memory_bytes,
               devices.total_millis() - devices.TotalFreeMillis()};
  for (int r = 0; r < kResourceKinds; ++r) {
    sums.utilisation[r] = Rounded(Ratio(sums.used[r], sums.capacity[r]) * kUtilisationUnits);
    sums.utilisation_squared[r] = sums.utilisation[r] * sums.utilisation[r];
  }
  sums.ready = 1;
  sums.pods = pods;
  if (pods > 0) {
    sums.active = 1;
    sums.active_used = sums.used;
    sums.active_capacity = sums.capacity;
  }
  if (!laws_->costs.empty()) {
    const NodeCosts& costs = laws_->costs[state_->nodes.kind[node]];
    const double awake = costs.AwakeWatts(Ratio(sums.used[0], sums.capacity[0]));
    sums.microwatts = Rounded((pods > 0 ? awake : costs.asleep_watts) * kMillion);
    sums.most_microwatts = Rounded(costs.MostWatts() * kMillion);
    sums.full_microprice = Rounded(costs.price_per_hour * kMillion);
    sums.microprice = pods > 0 ? sums.full_microprice : 0;
  }
  sums.fragments =
      WeightedFragmentMillis(laws_->shapes, counts_devices_ ? Stranded::kDevices : Stranded::kCpu,
                             state_->nodes.kind[node], free, devices);
  return sums;
}

void ClusterTotals::Changed(WorkloadId workload, NodeId node, int by) {
  const LayerId layer = state_->kind_of(node).layer;
  pods_on_[node] += by;
  calls_.Change(workload, layer, by, pods_in_);
  pods_in_[workload * state_->catalog->layer_count() + layer] += by;
  AddLatency(workload, node, by, &sums_);
  sums_.Add(of_node_[node], -1);
  of_node_[node] = OfNode(node, state_->nodes.free[node], DevicesOf(node), pods_on_[node]);
  sums_.Add(of_node_[node], 1);
}

void ClusterTotals::NodeChanged(NodeId node) {
  CHECK_EQ(pods_on_[node], 0);
  sums_.Add(of_node_[node], -1);
  of_node_[node] = OfNode(node, state_->nodes.free[node], DevicesOf(node), 0);
  sums_.Add(of_node_[node], 1);
}

void ClusterTotals::NodeReplaced(NodeId node, int pods) {
  CHECK(laws_->users == kNone && calls_.empty());
  pods_on_[node] = pods;
  sums_.Add(of_node_[node], -1);
  of_node_[node] = OfNode(node, state_->nodes.free[node], DevicesOf(node), pods);
  sums_.Add(of_node_[node], 1);
}

ClusterTerms ClusterTotals::After(std::span<const PodChange> changes) const {
  CHECK(laws_->users == kNone && calls_.empty());
  Sums sums = sums_;
  for (size_t i = 0; i < changes.size(); ++i) {
    const NodeId node = changes[i].node;
    const auto is_same = [&](const PodChange& other) { return other.node == node; };
    if (std::any_of(changes.begin(), changes.begin() + static_cast<long>(i), is_same)) continue;
    Resources free = state_->nodes.free[node];
    Devices devices = DevicesOf(node);
    int pods = pods_on_[node];
    for (const PodChange& one : changes.subspan(i)) {
      if (!is_same(one)) continue;
      free.cpu_millis -= one.pods * one.held.cpu_millis;
      free.memory_bytes -= one.pods * one.held.memory_bytes;
      devices = WithWholeTaken(devices, one.pods * one.devices);
      pods += one.pods;
    }
    sums.Add(of_node_[node], -1);
    sums.Add(OfNode(node, free, devices, pods), 1);
  }
  return TermsOf(sums, {});
}

ClusterTerms ClusterTotals::Try(WorkloadId workload, NodeId node) const {
  const Workload& asked = state_->catalog->workloads[workload];
  Devices devices = DevicesOf(node);
  devices.Take(devices.Pick(asked.devices), asked.devices.millis);
  Sums sums = sums_;
  sums.Add(of_node_[node], -1);
  sums.Add(OfNode(node, state_->nodes.free[node] - asked.requests, devices, pods_on_[node] + 1), 1);
  AddLatency(workload, node, 1, &sums);
  return TermsOf(sums, calls_.With(workload, state_->kind_of(node).layer, pods_in_));
}

ClusterTerms ClusterTotals::TermsOf(const Sums& sums, const CallDistances::Sums& calls) const {
  ClusterTerms terms;
  const double nodes = static_cast<double>(std::max<int64_t>(sums.ready, 1));
  for (int r = 0; r < kResourceKinds; ++r) {
    const double mean = static_cast<double>(sums.utilisation[r]) / nodes;
    const double variance = static_cast<double>(sums.utilisation_squared[r]) / nodes - mean * mean;
    terms.utilisation_sd[r] = std::sqrt(std::max(variance, 0.0)) / kUtilisationUnits;
    terms.mean_node_utilisation[r] = mean / kUtilisationUnits;
    terms.utilisation[r] = Ratio(sums.used[r], sums.capacity[r]);
    terms.active_utilisation[r] = Ratio(sums.active_used[r], sums.active_capacity[r]);
  }
  terms.ready_nodes = static_cast<int>(sums.ready);
  terms.active_nodes = static_cast<int>(sums.active);
  terms.bound_pods = static_cast<int>(sums.pods);
  terms.has_devices = counts_devices_;
  terms.watts = static_cast<double>(sums.microwatts) / kMillion;
  terms.watts_share = Ratio(sums.microwatts, sums.most_microwatts);
  terms.price_per_hour = static_cast<double>(sums.microprice) / kMillion;
  terms.price_share = Ratio(sums.microprice, sums.full_microprice);
  const int64_t capacity = sums.capacity[counts_devices_ ? 2 : 0];
  if (capacity > 0)
    terms.fragmentation =
        Ratio(sums.fragments, laws_->shapes.total_weight) / static_cast<double>(capacity);
  terms.latency_ms = Ratio(sums.latency_ns, sums.pods) / kMillion;
  terms.latency_penalty = Ratio(sums.penalty_millionths, sums.pods) / kMillion;
  terms.call_distance = Ratio(calls.distance, calls.weight);
  terms.call_ms = terms.call_distance * calls_.worst_ms();
  terms.calls_counted = Ratio(calls.weight, CallDistances::kAllCalls);
  return terms;
}

}  // namespace rudderfish
