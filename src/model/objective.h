// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/result.h"
#include "base/yaml.h"
#include "model/cluster_totals.h"

// What placement is to make small: a weighted sum of terms, each a fraction of the worst (0 best, 1
// worst), so that weights can be compared and an objective serves clusters of any size.
//
//   objective: energy                       one term alone
//   objective: {balance: 1, energy: 0.5}    terms by weight; those absent weigh nothing
//
//   balance        2 * standard deviation of the nodes' utilisation, mean over the resources there
//                  are (the deviation of fractions is at most 1/2)
//   energy         watts / the most that all nodes draw: at full use, unless a curve goes higher
//   utilisation    1 - utilisation of the nodes in use, mean over the resources
//   fragmentation  expected share of the devices (without any: of CPU) that no pod can use
//   cost           price of the nodes in use / price of all nodes
//   latency        mean over the pods of their node-user penalty (PlacementLaws::Penalty)
//   calls          mean round trip between the pods that call each other / the worst of the network

namespace rudderfish {

enum class ObjectiveTerm {
  kBalance,
  kEnergy,
  kUtilisation,
  kFragmentation,
  kCost,
  kLatency,
  kCalls
};
inline constexpr int kObjectiveTerms = 7;
inline constexpr std::array<std::string_view, kObjectiveTerms> kObjectiveTermNames = {
    "balance", "energy", "utilisation", "fragmentation", "cost", "latency", "calls"};

struct Objective {
  std::array<double, kObjectiveTerms> weight{};

  static Objective Of(ObjectiveTerm term) {
    Objective objective;
    objective.weight[static_cast<int>(term)] = 1;
    return objective;
  }

  double WeightOf(ObjectiveTerm term) const { return weight[static_cast<int>(term)]; }

  // In units of the weights; less is better.
  double Cost(const ClusterTerms& terms) const;

  bool operator==(const Objective&) const = default;
};

// 0 to 1, as above.
double ObjectiveTermValue(ObjectiveTerm term, const ClusterTerms& terms);

// Refuses names of no term, naming the nearest, negative weights, and weights that are all zero.
Result<Objective> ParseObjective(const YamlNode& node);

}  // namespace rudderfish
