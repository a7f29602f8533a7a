// SPDX-License-Identifier: Apache-2.0
#include "control/live_cluster.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

const std::string kGpus = "nvidia.com/gpu";
constexpr int64_t kDevicesAskedMax = 100;  // More than any node has.

int64_t GpusIn(const ScalarAmounts& amounts) {
  for (const auto& [name, amount] : amounts) {
    if (name == kGpus) return amount;
  }
  return 0;
}

Devices WholeDevices(int count, int64_t free) {
  Devices devices = Devices::Of(count);
  for (int i = 0; i < count; ++i) {
    if (i >= free) devices.free_millis[i] = 0;
  }
  return devices;
}

}  // namespace

int WholeDevicesOf(const PodAmounts& amounts) {
  return static_cast<int>(std::clamp<int64_t>(GpusIn(amounts.scalars), 0, kDevicesAskedMax));
}

LiveCluster::LiveCluster(PlacementFacts facts, std::string type_label)
    : facts_(std::move(facts)),
      type_label_(std::move(type_label)),
      types_matter_(facts_.TypesMatter()),
      catalog_(std::make_shared<Catalog>()) {
  CHECK_EQ(facts_.laws.users, kNone);
  catalog_->layers.push_back({"all"});
  for (const std::string& type : facts_.types) catalog_->kinds.push_back({.name = type});
  if (catalog_->kinds.empty()) catalog_->kinds.push_back({.name = "node"});
  catalog_->workloads.assign(kKindsMax, {.name = "asked"});
  state_.catalog = catalog_;
  totals_.Reset(state_, facts_.laws);
}

int LiveCluster::TypeOf(const SchedulingNode& node) const {
  if (GpusIn(node.scalars) > kMaxDevices) return kNone;
  const std::string* label = FindLabel(node.labels, type_label_);
  const int type = label == nullptr ? kNone : facts_.TypeNamed(*label);
  return type == kNone && !types_matter_ ? 0 : type;
}

void LiveCluster::Read(const NodeTable& nodes) {
  if (nodes.version() != version_) return ReadAll(nodes);
  const int gpu_row = nodes.FindResource(kGpus);
  for (NodeId node = 0; node < nodes.size(); ++node) {
    if (ReadFree(nodes, gpu_row, node)) totals_.NodeReplaced(node, static_cast<int>(pods_[node]));
  }
}

// Whether anything is other than it was.
bool LiveCluster::ReadFree(const NodeTable& nodes, int gpu_row, NodeId node) {
  const Resources free{nodes.free(NodeTable::kCpu)[node], nodes.free(NodeTable::kMemory)[node]};
  const int64_t pods = nodes.node(node).pods_max - nodes.pods_free()[node];
  bool is_changed = !(state_.nodes.free[node] == free) || pods_[node] != pods;
  state_.nodes.free[node] = free;
  pods_[node] = pods;
  if (state_.nodes.devices.empty()) return is_changed;
  Devices& devices = state_.nodes.devices[node];
  if (devices.count == 0) return is_changed;
  const Devices now =
      WholeDevices(devices.count, gpu_row == kNone ? devices.count : nodes.free(gpu_row)[node]);
  is_changed |= !(devices == now);
  devices = now;
  return is_changed;
}

void LiveCluster::ReadAll(const NodeTable& nodes) {
  version_ = nodes.version();
  const auto count = static_cast<size_t>(nodes.size());
  Nodes& read = state_.nodes;
  read.kind.assign(count, 0);
  read.allocatable.resize(count);
  read.free.resize(count);
  read.background_mbytes_per_s.assign(count, 0);
  read.lost.assign(count, 0);
  read.devices.clear();
  pods_.resize(count);
  user_ms_.resize(count);
  worst_ms_ = 0;
  const int gpu_row = nodes.FindResource(kGpus);
  for (NodeId n = 0; n < nodes.size(); ++n) {
    const SchedulingNode& node = nodes.node(n);
    read.allocatable[n] = {nodes.allocatable(NodeTable::kCpu)[n],
                           nodes.allocatable(NodeTable::kMemory)[n]};
    user_ms_[n] = node.user_ms.value_or(std::numeric_limits<double>::infinity());
    worst_ms_ = std::max(worst_ms_, node.user_ms.value_or(0));
    const int type = TypeOf(node);
    read.lost[n] = type == kNone ? 1 : 0;
    read.kind[n] = std::max(type, 0);
    const int64_t gpus = type == kNone ? 0 : GpusIn(node.scalars);
    if (gpus <= 0) continue;
    if (read.devices.empty()) read.devices.resize(count);
    read.devices[n] = Devices::Of(static_cast<int>(gpus));
  }
  for (NodeId n = 0; n < nodes.size(); ++n) ReadFree(nodes, gpu_row, n);
  totals_.Reset(state_, facts_.laws);
  for (NodeId n = 0; n < nodes.size(); ++n) totals_.NodeReplaced(n, static_cast<int>(pods_[n]));
}

ClusterTerms LiveCluster::After(std::span<const PodChange> changes,
                                const LatencyLimits& limits) const {
  ClusterTerms terms = totals_.After(changes);
  double penalty = 0;
  for (const PodChange& one : changes) {
    if (!IsInside(one.node)) continue;
    const double of_one = PlacementLaws::Penalty(limits, user_ms_[one.node], worst_ms_);
    penalty += one.pods * std::min(of_one, 1.0);
  }
  if (terms.bound_pods > 0) terms.latency_penalty = penalty / terms.bound_pods;
  return terms;
}

PlacementQuestion LiveCluster::Ask(const PodAmounts& amounts) {
  static constexpr WorkloadId kAlone[] = {0};
  const PodAmounts* const kind = &amounts;
  return AskQueue({&kind, 1}, kAlone);
}

PlacementQuestion LiveCluster::AskQueue(std::span<const PodAmounts* const> kinds,
                                        std::span<const WorkloadId> order) {
  CHECK(kinds.size() <= kKindsMax && !order.empty());
  for (size_t i = 0; i < kinds.size(); ++i) {
    Workload& asked = catalog_->workloads[i];
    asked.requests = kinds[i]->requests;
    const int devices = WholeDevicesOf(*kinds[i]);
    asked.devices = {static_cast<int16_t>(devices),
                     static_cast<int16_t>(devices > 0 ? kDeviceMillis : 0)};
  }
  return {.state = state_, .totals = totals_, .workload = order[0], .next = order.subspan(1)};
}

std::vector<int> LiveCluster::CountTypes() const {
  std::vector<int> counts(catalog_->kinds.size(), 0);
  for (NodeId n = 0; n < state_.nodes.size(); ++n) counts[state_.nodes.kind[n]] += IsInside(n);
  return counts;
}

int LiveCluster::CountOutside() const {
  int outside = 0;
  for (NodeId n = 0; n < state_.nodes.size(); ++n) outside += IsInside(n) ? 0 : 1;
  return outside;
}

}  // namespace rudderfish
