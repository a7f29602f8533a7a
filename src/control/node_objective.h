// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "cluster/resources.h"
#include "model/node_table.h"
#include "model/objective.h"

// The objective of a live cluster, by what pods request, and what it would be with a few pods more
// or less: the terms of model/objective.h that follow from nodes and requests alone (balance,
// utilisation, of CPU and memory). Formulas as in model/cluster_totals.h.
//
// One pass over the nodes to read them, then O(1) a question. Doubles: differences of a billionth
// of the worst are told apart. One thread.

namespace rudderfish {

// Which terms can be told of a live cluster without knowing more of it.
bool IsKnownLive(ObjectiveTerm term);

// One pod more (1) or less (-1) on a node.
struct PodChange {
  NodeId node = kNone;
  int pods = 1;
  Resources held;  // By that pod.
};

class NodeObjective {
 public:
  explicit NodeObjective(const Objective& objective) : objective_(objective) {}

  // Copies what is needed later; the table may change afterwards.
  void Read(const NodeTable& nodes);

  ClusterTerms Now() const { return TermsOf(sums_); }

  // REQUIRES: nodes are of the table that was read. Changes of one node add up.
  ClusterTerms After(std::span<const PodChange> changes) const;

  double Cost(const ClusterTerms& terms) const { return objective_.Cost(terms); }
  const Objective& objective() const { return objective_; }

 private:
  static constexpr int kKinds = 2;  // CPU and memory.
  struct Node {
    std::array<double, kKinds> used{}, capacity{};
    int64_t pods = 0;
  };
  struct Sums {
    std::array<double, kKinds> utilisation{}, squares{}, used{}, capacity{};
    std::array<double, kKinds> active_used{}, active_capacity{};
    int64_t active = 0, pods = 0;

    void Add(const Node& node, double sign);
  };
  ClusterTerms TermsOf(const Sums& sums) const;

  Objective objective_;
  std::vector<Node> nodes_;
  Sums sums_;
};

}  // namespace rudderfish
