// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

// Erlang's C of M/M/c by table, for who asks millions of times (model/queueing.h has the formula,
// in time that grows with the servers). Servers come by the node. What is tabulated is
// log C - c log(rho), which is smooth from rho = 0 to 1, with four points of the grid around what
// is asked: within 1e-3 of the formula, relative. Immutable.

namespace rudderfish {

class MmcTable {
 public:
  // For 1 to `nodes_max` nodes of so many servers each.
  MmcTable(int servers_per_node, int nodes_max);

  // Probability of having to wait; 1 from utilisation 1 on. REQUIRES: 1 <= nodes <= nodes_max.
  double ErlangC(int nodes, double utilisation) const;

  int servers_per_node() const { return servers_per_node_; }
  int nodes_max() const { return nodes_max_; }

 private:
  int servers_per_node_, nodes_max_;
  std::vector<double> values_;  // [node][utilisation]
};

// P(wait + service > t) in M/M/c where an arrival waits with probability `waits`, and then
// exponentially at rate `spare_per_s`. `served` is exp(-service_per_s t), which callers know.
double MmcTail(double waits, double spare_per_s, double service_per_s, double t_s, double served);

}  // namespace rudderfish
