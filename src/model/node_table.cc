// SPDX-License-Identifier: Apache-2.0
#include "model/node_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

int64_t AmountOf(const ScalarAmounts& amounts, std::string_view name) {
  const auto at = std::find_if(amounts.begin(), amounts.end(),
                               [&](const auto& amount) { return amount.first == name; });
  return at == amounts.end() ? 0 : at->second;
}

// The names that one of both has, or both with other sizes; sorted.
std::vector<std::string> ChangedImages(const NodeImages& before, const NodeImages& after) {
  const auto sorted = [](const NodeImages& images) {
    std::vector<std::pair<std::string_view, int64_t>> all;
    for (const NodeImage& image : images) all.emplace_back(image.name, image.size_bytes);
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto old = sorted(before), now = sorted(after);
  std::vector<std::pair<std::string_view, int64_t>> differ;
  std::set_symmetric_difference(old.begin(), old.end(), now.begin(), now.end(),
                                std::back_inserter(differ));
  std::vector<std::string> names;
  for (const auto& [name, size_bytes] : differ) {
    if (names.empty() || names.back() != name) names.emplace_back(name);
  }
  return names;
}

}  // namespace

void NodeTable::Reset(std::vector<SchedulingNode> nodes) {
  ++version_;
  nodes_ = std::move(nodes);
  by_name_.clear();
  resource_rows_.clear();
  offered_.clear();
  key_rows_.clear();
  rows_.assign(3, {});
  keys_.clear();
  nowhere_.of_node.assign(nodes_.size(), kNone);
  key_names_.clear();
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
    Offer(node);
    for (const NodeImage& image : node.images) AddImage(image, n);
  }
  for (Resource& row : rows_) row.free = row.allocatable;
}

void NodeTable::AddImage(const NodeImage& image, NodeId node) {
  Image& known = images_.try_emplace(image.name).first->second;
  if (known.nodes.empty()) known.size_bytes = image.size_bytes;
  if (known.nodes.empty() || known.nodes.back() != node) known.nodes.push_back(node);
}

void NodeTable::SetAllocatable(int row, NodeId node, int64_t amount) {
  rows_[row].free[node] += amount - rows_[row].allocatable[node];
  rows_[row].allocatable[node] = amount;
}

std::vector<std::string> NodeTable::Replace(NodeId id, SchedulingNode node) {
  ++version_;
  SchedulingNode& old = nodes_[id];
  CHECK(old.name == node.name);
  SetAllocatable(kCpu, id, node.allocatable.cpu_millis);
  SetAllocatable(kMemory, id, node.allocatable.memory_bytes);
  SetAllocatable(kEphemeral, id, node.ephemeral_bytes);
  for (const auto& [name, amount] : old.scalars) {
    if (const int row = FindResource(name); row != kNone) SetAllocatable(row, id, 0);
  }
  Offer(node);
  for (const auto& [name, amount] : node.scalars) {
    if (const int row = FindResource(name); row != kNone) SetAllocatable(row, id, amount);
  }
  pods_free_[id] += node.pods_max - old.pods_max;
  const bool is_relabelled = node.labels != old.labels;
  std::vector<std::string> changed;
  if (node.images != old.images) changed = ChangedImages(old.images, node.images);
  old = std::move(node);
  for (const std::string& name : changed) std::erase(images_[name].nodes, id);
  for (const NodeImage& image : old.images) {
    if (std::binary_search(changed.begin(), changed.end(), image.name)) AddImage(image, id);
  }
  for (size_t key = 0; is_relabelled && key < keys_.size(); ++key)
    PutDomain(static_cast<int>(key), id);
  return changed;
}

NodeId NodeTable::Find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? kNone : at->second;
}

int NodeTable::RowOf(const std::string& name) {
  const auto [at, is_new] = resource_rows_.emplace(name, static_cast<int>(rows_.size()));
  if (!is_new) return at->second;
  rows_.emplace_back();
  return at->second;
}

int NodeTable::ResourceRow(const std::string& name) {
  const int row = RowOf(name);
  if (rows_[row].is_sparse()) SpreadOut(name, &rows_[row]);
  return row;
}

int NodeTable::HeldRow(const std::string& name) {
  return offered_.contains(name) ? ResourceRow(name) : RowOf(name);
}

void NodeTable::SpreadOut(const std::string& name, Resource* row) {
  for (const SchedulingNode& node : nodes_) {
    row->allocatable.push_back(AmountOf(node.scalars, name));
  }
  row->free = row->allocatable;
  for (const auto& [node, amount] : row->held) row->free[node] -= amount;
  row->held.clear();
}

void NodeTable::Offer(const SchedulingNode& node) {
  for (const auto& [name, amount] : node.scalars) {
    if (!offered_.insert(name).second) continue;
    const auto held = resource_rows_.find(name);
    if (held != resource_rows_.end()) ResourceRow(name);
  }
}

int NodeTable::FindResource(const std::string& name) const {
  const auto at = resource_rows_.find(name);
  return at == resource_rows_.end() || rows_[at->second].is_sparse() ? kNone : at->second;
}

std::vector<NodeTable::ScalarOn> NodeTable::ScalarsOn(NodeId node) const {
  std::vector<ScalarOn> all;
  for (const auto& [name, row] : resource_rows_) {
    const Resource& resource = rows_[row];
    if (!resource.is_sparse()) {
      all.push_back({name, resource.allocatable[node], resource.free[node]});
    } else if (const auto held = resource.held.find(node); held != resource.held.end()) {
      all.push_back({name, 0, -held->second});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const ScalarOn& a, const ScalarOn& b) { return a.name < b.name; });
  return all;
}

int NodeTable::KeyRow(const std::string& topology_key) {
  const auto [at, is_new] = key_rows_.emplace(topology_key, static_cast<int>(keys_.size()));
  if (!is_new) return at->second;
  keys_.emplace_back();
  key_names_.push_back({topology_key, {}});
  for (NodeId n = 0; n < size(); ++n) PutDomain(at->second, n);
  return at->second;
}

void NodeTable::PutDomain(int key_row, NodeId node) {
  const int32_t domain = DomainOf(nodes_[node], key_row);
  std::vector<int32_t>& of_node = keys_[key_row].of_node;
  if (domain == kNone && of_node.empty()) return;
  if (of_node.empty()) of_node.assign(nodes_.size(), kNone);
  of_node[node] = domain;
}

// Made if the node is the first with its value.
int32_t NodeTable::DomainOf(const SchedulingNode& node, int key_row) {
  Key& key = key_names_[key_row];
  const std::string* value = FindLabel(node.labels, key.name);
  if (value == nullptr) return kNone;
  const auto at = key.values.emplace(*value, static_cast<int32_t>(key.values.size())).first;
  keys_[key_row].count = static_cast<int>(key.values.size());
  domains_max_ = std::max(domains_max_, keys_[key_row].count);
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
  for (const auto& [row, amount] : pod.scalars) {
    Resource& resource = rows_[row];
    if (!resource.is_sparse()) {
      resource.free[node] -= sign * amount;
    } else if ((resource.held[node] += sign * amount) == 0) {
      resource.held.erase(node);
    }
  }
  cpu_assumed_[node] += sign * pod.assumed.cpu_millis;
  memory_assumed_[node] += sign * pod.assumed.memory_bytes;
  pods_free_[node] -= sign;
}

}  // namespace rudderfish
