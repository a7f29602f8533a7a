// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/arguments.h"
#include "cluster/task_kind.h"
#include "learn/trainer.h"
#include "scenario/scenario.h"

// `train` does the same for every kind of decision. A kind contributes one TrainedWorld: what it
// learns by default, and what is said of the result.

namespace rudderfish {

struct TrainedWorld {
  bool has_objective;  // Validation yields an objective; else a latency, in milliseconds.
  // Sets what suits the kind, and the options that only it has.
  Result<void> (*prepare)(const Arguments& arguments, const Scenario& scenario,
                          TrainOptions* options);
  // Whether the saved network decides, or a rule that it steps back to. May be nullptr.
  Result<std::string> (*verdict)(const std::filesystem::path& best);
  // Arguments of `evaluate` that follow the scenario, up to the policies to compare with.
  std::string (*comparison)(const Arguments& arguments, const TrainOptions& learned);
};

const TrainedWorld& TrainedWorldOf(TaskKind task);

// The kind of decision that a run learns.
TaskKind TaskOf(const TrainJob& job);

// Sets what a new run learns from `scenario` by default and by the command line. kInvalidArgument
// if an option is given that its kind of decision does not have.
Result<void> PrepareTraining(const Arguments& arguments, const Scenario& scenario,
                             TrainOptions* options);

}  // namespace rudderfish
