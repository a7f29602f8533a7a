// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/catalog.h"
#include "cluster/resources.h"

// On how many nodes the pods of an application fit, and what these draw: what its replicas cost
// where a cluster grows and shrinks with them.
//
//   nodes   first fit decreasing (pods by CPU, then memory, that they request; nodes in the order
//           in which they are listed), which needs at most 11/9 of the fewest nodes plus 6/9 of one
//           where one resource counts (G. Dósa, "The tight bound of first fit decreasing
//           bin-packing algorithm is FFD(I) <= 11/9 OPT(I) + 6/9", ESCAPE 2007)
//   watts   of a node with pods by the use of its CPU, of one without asleep
//           (cluster/node_costs.h). Pods share what is used by what they request.
//
// Immutable once made: any thread may ask.

namespace rudderfish {

struct NodeOffer {
  Resources allocatable;
  int count = 1;
  NodeCosts costs;
};

struct NodesInUse {
  // Nodes of one offer on which as much is requested, and which draw by a curve.
  struct Curved {
    const NodeCosts* costs = nullptr;  // Of the packing, which must outlive this.
    int nodes = 0;
    double use_per_core = 0;  // Of each node's CPU, for each core in use in all.
  };

  int nodes = 0;
  double idle_watts = 0;      // Of those without a curve, and of listed ones that sleep.
  double watts_per_core = 0;  // Of each core in use, besides.
  std::vector<Curved> curved;

  double Watts(double used_cores) const;
};

class NodePacking {
 public:
  // `requests` [workload] of one pod; of those that have no pods here, nothing.
  NodePacking(std::vector<NodeOffer> offers, std::vector<Resources> requests);

  // Where all listed nodes that a pod fits on are full there are more like the last of these; a pod
  // larger than any node has one for itself. Without offers nothing.
  NodesInUse Pack(std::span<const int> replicas) const;

  bool draws_power() const { return draws_power_; }  // Whether any node says so.

 private:
  struct Node;

  bool Fits(int workload, int offer) const;
  int OfferFor(int workload, const std::vector<int>& opened) const;

  std::vector<NodeOffer> offers_;
  std::vector<Resources> requests_;
  std::vector<int> order_;  // Workloads, those with the largest pods first.
  bool draws_power_ = false;
};

}  // namespace rudderfish
