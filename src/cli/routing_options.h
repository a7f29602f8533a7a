// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/policy_list.h"
#include "evaluation/routing_calibration.h"
#include "learn/train_options.h"
#include "scenario/scenario.h"
#include "sim/routing_evaluation.h"

// What commands about scenarios of regions are told on the command line.

namespace rudderfish {

// What learning begins with where nothing else is named.
inline constexpr std::string_view kPlannedRule = "mpc";

// The scenario's regions: those of --regions, all if it was not given.
Result<std::shared_ptr<const RegionWorld>> RegionsOf(const Arguments& arguments,
                                                     const Scenario& scenario);

// Positions in RegionWorld::variants: those of --variant, all if it was not given.
Result<std::vector<int>> VariantsOf(const Arguments& arguments, const RegionWorld& world);

// What `calibrate` wrote; an error if that was of another scenario than the one at `scenario`.
Result<RoutingCalibration> ReadRoutingCalibration(const std::filesystem::path& path,
                                                  const std::filesystem::path& scenario);

// Policies by name, runs, and files of `calibrate` in which the best setting is meant.
struct RoutingPolicies {
  std::vector<NamedRoutingPolicy> list;
  std::vector<int> stepped_back;                // [policy] How many of its runs are a rule,
  std::vector<std::vector<std::string>> rules;  // and which, each once.
};
Result<RoutingPolicies> RoutingPoliciesOf(const std::vector<ListedPolicy>& listed,
                                          const std::filesystem::path& scenario);

// --variant, --regions and --rule. REQUIRES: the scenario has regions.
Result<RoutingTraining> RoutingTrainingOf(const Arguments& arguments, const Scenario& scenario);

}  // namespace rudderfish
