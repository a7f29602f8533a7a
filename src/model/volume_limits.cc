// SPDX-License-Identifier: Apache-2.0
#include "model/volume_limits.h"

#include <algorithm>

#include "model/scheduling_rules.h"

namespace rudderfish {

void VolumeLimits::Reset(std::span<const SchedulingNode> nodes) {
  nodes_ = static_cast<int>(nodes.size());
  driver_rows_.clear();
  volume_rows_.clear();
  drivers_.clear();
  volumes_.clear();
  attached_.assign(nodes.size(), {});
  has_limit_.assign(nodes.size(), 0);
  unknown_.assign(nodes.size(), 0);
  unknown_pods_ = 0;
  for (NodeId n = 0; n < nodes_; ++n) ReplaceNode(n, nodes[n]);
}

void VolumeLimits::ReplaceNode(NodeId id, const SchedulingNode& node) {
  for (Driver& driver : drivers_) driver.volumes_max[id] = kNoLimit;
  for (const VolumeLimit& limit : node.volume_limits)
    drivers_[DriverRow(limit.driver)].volumes_max[id] = limit.volumes_max;
  has_limit_[id] = static_cast<int32_t>(node.volume_limits.size());
}

int VolumeLimits::DriverRow(const std::string& name) {
  const auto [at, is_new] = driver_rows_.emplace(name, static_cast<int>(drivers_.size()));
  if (is_new) {
    drivers_.push_back({std::vector<int64_t>(nodes_, kNoLimit), std::vector<int32_t>(nodes_, 0)});
  }
  return at->second;
}

int VolumeLimits::RowOf(const CsiVolume& volume) {
  const auto [at, is_new] = volume_rows_.emplace(volume, static_cast<int>(volumes_.size()));
  if (is_new) volumes_.push_back({DriverRow(volume.driver), {}});
  return at->second;
}

std::vector<int> VolumeLimits::RowsOf(std::span<const CsiVolume> volumes) {
  std::vector<int> rows;
  for (const CsiVolume& volume : volumes) rows.push_back(RowOf(volume));
  std::sort(rows.begin(), rows.end(), [&](int a, int b) {
    return std::pair(volumes_[a].driver, a) < std::pair(volumes_[b].driver, b);
  });
  return rows;
}

template <class Edit>
void VolumeLimits::EditUse(int volume, NodeId node, Edit edit) {
  Volume& edited = volumes_[volume];
  auto at = std::lower_bound(edited.uses.begin(), edited.uses.end(), node,
                             [](const Use& use, NodeId n) { return use.node < n; });
  if (at == edited.uses.end() || at->node != node) at = edited.uses.insert(at, {.node = node});
  const bool was_there = at->is_any();
  edit(&*at);
  drivers_[edited.driver].attached[node] += (at->is_any() ? 1 : 0) - (was_there ? 1 : 0);
  if (!at->is_any()) edited.uses.erase(at);
}

void VolumeLimits::Change(std::span<const int> volumes, NodeId node, int sign) {
  for (const int volume : volumes) EditUse(volume, node, [&](Use* use) { use->pods += sign; });
}

void VolumeLimits::ChangeUnknown(NodeId node, int sign) {
  unknown_[node] += sign;
  unknown_pods_ += sign;
}

void VolumeLimits::SetAttached(NodeId node, std::span<const CsiVolume> volumes) {
  for (const int volume : attached_[node])
    EditUse(volume, node, [](Use* use) { use->is_attached = false; });
  attached_[node] = RowsOf(volumes);
  for (const int volume : attached_[node])
    EditUse(volume, node, [](Use* use) { use->is_attached = true; });
}

void VolumeLimits::Filter(std::span<const int> volumes, Feasibility* out) const {
  for (size_t begin = 0, end = 0; begin < volumes.size(); begin = end) {
    const int row = volumes_[volumes[begin]].driver;
    const Driver& driver = drivers_[row];
    out->in_use.assign(static_cast<size_t>(nodes_), 0);
    for (; end < volumes.size() && volumes_[volumes[end]].driver == row; ++end) {
      for (const Use& use : volumes_[volumes[end]].uses) out->in_use[use.node] += use.pods > 0;
    }
    const auto count = static_cast<int64_t>(end - begin);
    for (NodeId n = 0; n < nodes_; ++n) {
      const int64_t more = count - out->in_use[n];
      const bool is_full = driver.volumes_max[n] != kNoLimit && more > 0 &&
                           driver.attached[n] + more > driver.volumes_max[n];
      if (is_full && out->IsFeasible(n)) out->rejection[n] = Rejection::kVolumeLimit;
    }
  }
}

void VolumeLimits::FilterUnknown(std::span<const int> volumes, Feasibility* out) const {
  if (volumes.empty() || unknown_pods_ == 0) return;
  for (NodeId n = 0; n < nodes_; ++n) {
    if (out->IsFeasible(n) && unknown_[n] > 0 && has_limit_[n] > 0)
      out->rejection[n] = Rejection::kUnknownVolumes;
  }
}

}  // namespace rudderfish
