// SPDX-License-Identifier: Apache-2.0
#include "cli/placement_commands.h"

#include <fmt/format.h>

#include <algorithm>

namespace rudderfish {

Result<std::optional<Objective>> ObjectiveOf(const Arguments& arguments) {
  const std::optional<std::string> text = arguments.Text("objective");
  if (!text) return std::optional<Objective>();
  TRY_ASSIGN(const Objective objective, ParseObjectiveText(*text, "--objective"));
  return std::optional(objective);
}

Result<void> CheckObjective(const Scenario& scenario) {
  const std::vector<NodeCosts>& costs = scenario.kind_costs;
  const auto any = [&](const auto& has) { return std::any_of(costs.begin(), costs.end(), has); };
  const auto counts = [&](ObjectiveTerm term) { return scenario.objective->WeightOf(term) > 0; };
  const auto refuse = [&](std::string_view term, std::string_view lacks) {
    return Invalid("{}: the objective counts {}, and {}: it would be 0 wherever pods go",
                   scenario.name, term, lacks);
  };
  if (counts(ObjectiveTerm::kCost) &&
      !any([](const NodeCosts& one) { return one.price_per_hour > 0; }))
    return refuse("cost", "no type of node has a `price_per_hour`");
  if (counts(ObjectiveTerm::kEnergy) &&
      !any([](const NodeCosts& one) { return one.MostWatts() > 0; }))
    return refuse("energy", "no type of node has a `power`");
  if (counts(ObjectiveTerm::kLatency) && scenario.arrivals->users == kNone)
    return refuse("latency", "`arrivals.users` does not say where the users are");
  if (counts(ObjectiveTerm::kCalls) && scenario.patterns.empty())
    return refuse("calls", "no `patterns` say who calls whom");
  return {};
}

Result<std::shared_ptr<const Scenario>> WithObjective(Scenario scenario,
                                                      const std::filesystem::path& path,
                                                      const Arguments& arguments) {
  TRY_ASSIGN(const std::optional<Objective> objective, ObjectiveOf(arguments));
  if (objective) scenario.objective = objective;
  if (!scenario.objective) {
    return Invalid("{}: has no `objective`; add one, or set it with --objective", path.string());
  }
  TRY(CheckObjective(scenario));
  return std::make_shared<const Scenario>(std::move(scenario));
}

}  // namespace rudderfish
