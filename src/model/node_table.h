// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cluster/ids.h"
#include "cluster/scheduling.h"

// Nodes as kube-scheduler's rules need them, in columns: what is free of each resource, which value
// of a topology key each node has, which images lie where. Names of keys and resources become rows
// that stay valid until Reset. One thread.

namespace rudderfish {

// Which nodes share a value of one label.
struct TopologyDomains {
  std::vector<int32_t> of_node;  // kNone: without the label.
  int count = 0;
};

class NodeTable {
 public:
  enum Row { kCpu, kMemory, kEphemeral };  // Rows of scalars follow.

  struct Image {
    int64_t size_bytes = 0;  // As the first node says that has it.
    std::vector<NodeId> nodes;
  };

  void Reset(std::vector<SchedulingNode> nodes);

  // The node has changed: all but its name may differ. What its pods hold stays. A value of a
  // topology key that no node has any more leaves an empty domain behind. Returns the names of
  // images that it has no longer, has now, or has with another size; sorted.
  std::vector<std::string> Replace(NodeId id, SchedulingNode node);

  // Another number once nodes themselves have changed: which there are, what they offer, labels.
  uint64_t version() const { return version_; }

  int size() const { return static_cast<int>(nodes_.size()); }
  const SchedulingNode& node(NodeId node) const { return nodes_[node]; }
  NodeId Find(std::string_view name) const;  // kNone: there is none of that name.

  // The row of a resource or key, made on first use. HeldRow is for `scalars` of a Holding alone: a
  // resource that no node offers and no pod to be placed requests takes memory only for the nodes
  // where it is held, so that pods may hold any number of them.
  int ResourceRow(const std::string& name);
  int HeldRow(const std::string& name);
  int FindResource(const std::string& name) const;  // kNone: neither offered nor requested.
  int KeyRow(const std::string& topology_key);

  const TopologyDomains& domains(int key_row) const {
    return keys_[key_row].of_node.empty() ? nowhere_ : keys_[key_row];
  }
  int domains_max() const { return domains_max_; }  // Of any row.
  const Image* FindImage(const std::string& name) const;

  // By node. `free` is allocatable less what its pods hold, below 0 if they hold more.
  std::span<const int64_t> allocatable(int row) const { return rows_[row].allocatable; }
  std::span<const int64_t> free(int row) const { return rows_[row].free; }
  // The same of one node, of each scalar that it offers or that is held there, by name.
  struct ScalarOn {
    std::string_view name;
    int64_t allocatable = 0, free = 0;
  };
  std::vector<ScalarOn> ScalarsOn(NodeId node) const;
  std::span<const int64_t> pods_free() const { return pods_free_; }
  // What pods hold, 100m and 200Mi assumed for containers that ask nothing.
  std::span<const int64_t> cpu_assumed() const { return cpu_assumed_; }
  std::span<const int64_t> memory_assumed() const { return memory_assumed_; }

  // What one pod holds. Scalars by their rows.
  struct Holding {
    Resources held, assumed;
    int64_t ephemeral_bytes = 0;
    std::vector<std::pair<int, int64_t>> scalars;
  };
  void Take(const Holding& pod, NodeId node) { Add(pod, node, 1); }
  void GiveBack(const Holding& pod, NodeId node) { Add(pod, node, -1); }

 private:
  struct Resource {
    std::vector<int64_t> allocatable, free;
    std::unordered_map<NodeId, int64_t> held;  // In place of both, until somebody asks.

    bool is_sparse() const { return allocatable.empty(); }
  };

  struct Key {
    std::string name;
    std::unordered_map<std::string, int32_t> values;
  };

  struct NameHash {  // Finds by views, too.
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  void Add(const Holding& pod, NodeId node, int64_t sign);
  void SetAllocatable(int row, NodeId node, int64_t amount);
  int RowOf(const std::string& name);
  void SpreadOut(const std::string& name, Resource* row);
  void Offer(const SchedulingNode& node);
  void PutDomain(int key_row, NodeId node);
  int32_t DomainOf(const SchedulingNode& node, int key_row);
  void AddImage(const NodeImage& image, NodeId node);

  uint64_t version_ = 0;
  std::vector<SchedulingNode> nodes_;
  std::unordered_map<std::string, NodeId, NameHash, std::equal_to<>> by_name_;
  std::unordered_map<std::string, int> resource_rows_, key_rows_;
  std::unordered_set<std::string> offered_;  // Scalars, by any node since Reset.
  std::vector<Resource> rows_;
  std::vector<TopologyDomains> keys_;  // Without nodes: no node has the key.
  TopologyDomains nowhere_;            // What those are: pods may name any number of keys.
  std::vector<Key> key_names_;         // [key row]
  int domains_max_ = 0;
  std::unordered_map<std::string, Image> images_;
  std::vector<int64_t> pods_free_, cpu_assumed_, memory_assumed_;
};

}  // namespace rudderfish
