// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "model/latency.h"
#include "scenario/scenario.h"
#include "scenario/start_states.h"
#include "task/migration.h"

// What a scenario file asks for, put together: the world, the law it obeys and the task to do in
// it. Immutable.

namespace rudderfish {

struct Problem {
  std::shared_ptr<const Scenario> scenario;
  std::shared_ptr<const MigrationTask> task;
  LatencyLaw law;

  static Result<Problem> Open(const std::filesystem::path& path);
  static Result<Problem> Of(std::shared_ptr<const Scenario> scenario);
};

// The states of --starts that --select picks, at least one.
Result<std::vector<StartState>> SelectedStarts(const Arguments& arguments,
                                               const Scenario& scenario);

// A file that comes with the program, such as scenarios/continuum-7x21.yaml: below the current
// folder, or below a folder above the program's own.
Result<std::filesystem::path> ShippedFile(const std::filesystem::path& name);

// Refuses a path that cannot be written later: its folder is not there or may not be written, or it
// is a folder itself. Long work asks first.
Result<void> CheckCanWrite(const std::filesystem::path& path);

}  // namespace rudderfish
