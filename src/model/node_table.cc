// SPDX-License-Identifier: Apache-2.0
#include "model/node_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

int64_t AmountOf(const ScalarAmounts& amounts, std::string_view name) {
  const auto at = std::find_if(amounts.begin(), amounts.end(),
                               [&](const auto& amount) { return amount.first == name; });
  return at == amounts.end() ? 0 : at->second;
}

}  // namespace

void NodeTable::Reset(std::vector<SchedulingNode> nodes) {
  nodes_ = std::move(nodes);
  by_name_.clear();
  resource_rows_.clear();
  key_rows_.clear();
  rows_.assign(3, {});
  keys_.clear();
  domains_max_ = 0;
  images_.clear();
  pods_free_.clear();
  cpu_assumed_.assign(nodes_.size(), 0);
  memory_assumed_.assign(nodes_.size(), 0);
  for (NodeId n = 0; n < size(); ++n) {
    const SchedulingNode& node = nodes_[n];
    const bool is_new = by_name_.emplace(node.name, n).second;
    CHECK(is_new);
    rows_[kCpu].allocatable.push_back(node.allocatable.cpu_millis);
    rows_[kMemory].allocatable.push_back(node.allocatable.memory_bytes);
    rows_[kEphemeral].allocatable.push_back(node.ephemeral_bytes);
    pods_free_.push_back(node.pods_max);
    for (const NodeImage& image : node.images) {
      Image& known = images_.try_emplace(image.name, Image{image.size_bytes, {}}).first->second;
      if (known.nodes.empty() || known.nodes.back() != n) known.nodes.push_back(n);
    }
  }
  for (Resource& row : rows_) row.free = row.allocatable;
}

NodeId NodeTable::Find(std::string_view name) const {
  const auto at = by_name_.find(std::string(name));
  return at == by_name_.end() ? kNone : at->second;
}

int NodeTable::ResourceRow(const std::string& name) {
  const auto [at, is_new] = resource_rows_.emplace(name, static_cast<int>(rows_.size()));
  if (!is_new) return at->second;
  Resource& row = rows_.emplace_back();
  for (const SchedulingNode& node : nodes_) {
    row.allocatable.push_back(AmountOf(node.scalars, name));
  }
  row.free = row.allocatable;
  return at->second;
}

int NodeTable::KeyRow(const std::string& topology_key) {
  const auto [at, is_new] = key_rows_.emplace(topology_key, static_cast<int>(keys_.size()));
  if (!is_new) return at->second;
  TopologyDomains& domains = keys_.emplace_back();
  std::unordered_map<std::string_view, int32_t> values;
  for (const SchedulingNode& node : nodes_) {
    const std::string* value = FindLabel(node.labels, topology_key);
    if (value == nullptr) {
      domains.of_node.push_back(kNone);
      continue;
    }
    const auto found = values.emplace(*value, static_cast<int32_t>(values.size())).first;
    domains.of_node.push_back(found->second);
  }
  domains.count = static_cast<int>(values.size());
  domains_max_ = std::max(domains_max_, domains.count);
  return at->second;
}

const NodeTable::Image* NodeTable::FindImage(const std::string& name) const {
  const auto at = images_.find(name);
  return at == images_.end() ? nullptr : &at->second;
}

void NodeTable::Add(const Holding& pod, NodeId node, int64_t sign) {
  rows_[kCpu].free[node] -= sign * pod.held.cpu_millis;
  rows_[kMemory].free[node] -= sign * pod.held.memory_bytes;
  rows_[kEphemeral].free[node] -= sign * pod.ephemeral_bytes;
  for (const auto& [row, amount] : pod.scalars) rows_[row].free[node] -= sign * amount;
  cpu_assumed_[node] += sign * pod.assumed.cpu_millis;
  memory_assumed_[node] += sign * pod.assumed.memory_bytes;
  pods_free_[node] -= sign;
}

}  // namespace rudderfish
