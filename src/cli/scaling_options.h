// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "evaluation/scaling_run.h"
#include "scenario/scenario.h"

// What commands about scaling are told on the command line.

namespace rudderfish {

// An error if it has no `load`.
Result<Scenario> LoadServedScenario(const std::filesystem::path& path);

// Positions in Load::loads: those of --load, all if it was not given.
Result<std::vector<int>> LoadsOf(const Arguments& arguments, const Load& load);

// --violations: a share of all requests, as 1% or 0.01.
Result<double> ViolationsOf(const Arguments& arguments, double fallback);

// Those of --policy, each under what was typed or under NAME=. hpa:FILE is the best setting of a
// file of `calibrate`; an error if that is of another scenario than the one at `scenario`.
struct ScalingPolicies {
  std::vector<NamedScalingPolicy> list;
  std::vector<std::string> notes;  // Of learned ones: whether the network decides.
};
Result<ScalingPolicies> ScalingPoliciesOf(const Arguments& arguments,
                                          const std::filesystem::path& scenario);

}  // namespace rudderfish
