// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "scenario/scenario.h"

// What a file of ours is, in words and numbers, or the same as JSON with a member "kind". One
// function for each kind of file.

namespace rudderfish {

enum class FileKind { kScenario, kRun, kCheckpoint, kStartStates };

// By what is in it, not by its name.
Result<FileKind> KindOf(const std::filesystem::path& path);

Result<std::string> InspectScenario(const std::filesystem::path& path, OutputFormat format);
Result<std::string> InspectRun(const std::filesystem::path& folder, OutputFormat format);
Result<std::string> InspectCheckpoint(const std::filesystem::path& path, OutputFormat format);
Result<std::string> InspectStartStates(const std::filesystem::path& path, OutputFormat format);

// REQUIRES: the scenario has regions.
std::string InspectRegions(const std::filesystem::path& path, const Scenario& scenario,
                           OutputFormat format);

// Who calls whom in it, a paragraph for each pattern.
std::string PatternsText(const Scenario& scenario);

}  // namespace rudderfish
