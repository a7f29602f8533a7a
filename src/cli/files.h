// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "evaluation/experiment.h"
#include "scenario/scenario.h"
#include "scenario/start_states.h"

// The files that commands are given, beyond scenarios and policies.

namespace rudderfish {

// The states of --starts that --select picks, at least one.
Result<std::vector<StartState>> SelectedStarts(const Arguments& arguments,
                                               const Scenario& scenario);

// A file that comes with the program, such as scenarios/continuum-7x21.yaml: below the current
// folder, or below a folder above the program's own.
Result<std::filesystem::path> ShippedFile(const std::filesystem::path& name);

// Refuses a path that cannot be written later: its folder is not there or may not be written, or it
// is a folder itself. Long work asks first.
Result<void> CheckCanWrite(const std::filesystem::path& path);

// The scenario file that a variant of an experiment makes, kept below `folder`, its results; the
// file itself where the variant changes nothing.
Result<std::filesystem::path> KeepVariant(const std::filesystem::path& scenario,
                                          const ExperimentVariant& variant,
                                          const std::filesystem::path& folder);

}  // namespace rudderfish
