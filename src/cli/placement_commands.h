// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/policy_list.h"
#include "evaluation/placement_evaluation.h"
#include "model/objective.h"
#include "scenario/scenario.h"

// What the commands do in worlds in which pods come and go and are placed.

namespace rudderfish {

// The value of --objective: "balance", or "balance:1,energy:0.5".
Result<std::optional<Objective>> ObjectiveOf(const Arguments& arguments);

// Refuses an objective that counts what the scenario says nothing of: it would be 0 whatever is
// done. REQUIRES: it has an objective.
Result<void> CheckObjective(const Scenario& scenario);

// The scenario with the objective of --objective, or its own. `path`: its file. kInvalidArgument if
// it has no objective, or one that counts what it says nothing of.
Result<std::shared_ptr<const Scenario>> WithObjective(Scenario scenario,
                                                      const std::filesystem::path& path,
                                                      const Arguments& arguments);

Result<std::string> InspectPlacement(const std::filesystem::path& path, const Scenario& scenario,
                                     OutputFormat format);

}  // namespace rudderfish
