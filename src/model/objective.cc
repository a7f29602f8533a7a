// SPDX-License-Identifier: Apache-2.0
#include "model/objective.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"

namespace rudderfish {
namespace {

constexpr double kTermWeightMax = 1e6;

Result<int> TermNamed(std::string_view name, const YamlNode& where) {
  const auto at = std::find(kObjectiveTermNames.begin(), kObjectiveTermNames.end(), name);
  if (at != kObjectiveTermNames.end()) return static_cast<int>(at - kObjectiveTermNames.begin());
  return where.Refuse(fmt::format("no objective is called \"{}\"{} (there are {})", name,
                                  DidYouMean(name, kObjectiveTermNames),
                                  fmt::join(kObjectiveTermNames, ", ")));
}

// Mean over cpu, memory and, if any are there, devices.
double MeanOf(const std::array<double, kResourceKinds>& values, bool has_devices) {
  return has_devices ? (values[0] + values[1] + values[2]) / 3 : (values[0] + values[1]) / 2;
}

}  // namespace

double ObjectiveTermValue(ObjectiveTerm term, const ClusterTerms& terms) {
  switch (term) {
    case ObjectiveTerm::kBalance:
      return 2 * MeanOf(terms.utilisation_sd, terms.has_devices);
    case ObjectiveTerm::kEnergy:
      return terms.watts_share;
    case ObjectiveTerm::kUtilisation:
      return terms.active_nodes == 0 ? 0 : 1 - MeanOf(terms.active_utilisation, terms.has_devices);
    case ObjectiveTerm::kFragmentation:
      return terms.fragmentation;
    case ObjectiveTerm::kCost:
      return terms.price_share;
    case ObjectiveTerm::kLatency:
      return terms.latency_penalty;
    case ObjectiveTerm::kCalls:
      break;
  }
  return terms.call_distance;
}

double Objective::Cost(const ClusterTerms& terms) const {
  double cost = 0;
  for (int i = 0; i < kObjectiveTerms; ++i) {
    if (weight[i] != 0)
      cost += weight[i] * ObjectiveTermValue(static_cast<ObjectiveTerm>(i), terms);
  }
  return cost;
}

Result<Objective> ParseObjective(const YamlNode& node) {
  Objective objective;
  if (node.IsScalar()) {
    TRY_ASSIGN(const std::string name, node.AsString());
    TRY_ASSIGN(const int term, TermNamed(name, node));
    objective.weight[term] = 1;
    return objective;
  }
  if (!node.IsMap()) return node.Expected("a term, or terms by weight such as {balance: 1}");
  TRY_ASSIGN(YamlMap map, node.AsMap());
  for (const auto& [name, value] : map.Entries()) {
    TRY_ASSIGN(const int term, TermNamed(name, value));
    TRY_ASSIGN(objective.weight[term], value.AsDouble(0, kTermWeightMax));
  }
  if (objective == Objective())
    return node.Refuse("all weights are zero: nothing would be better than anything else");
  return objective;
}

}  // namespace rudderfish
