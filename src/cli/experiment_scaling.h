// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "evaluation/experiment.h"

// A cell of an experiment on scaling: one load of one scenario, for which the autoscaler is
// calibrated and networks are trained, if the experiment asks for that, before all policies meet
// the same held-out episodes. Each of these steps is kept, and gone on with where it was stopped.

namespace rudderfish {

struct ScalingCell {
  const Experiment* experiment = nullptr;
  ExperimentCell cell;
  std::filesystem::path scenario;  // Where it is.
  std::filesystem::path folder;    // Of all results.

  const std::string& load() const { return experiment->scaling->loads[cell.load]; }
  std::filesystem::path calibration() const {
    return folder / "calibrated" / (cell.name + ".yaml");
  }
  std::filesystem::path mpc_calibration() const {
    return folder / "calibrated" / (cell.name + ".mpc.yaml");
  }
  std::filesystem::path training() const { return folder / "trained" / cell.name; }
};

// What can be wrong before anything is computed.
Result<void> CheckScalingCell(const ScalingCell& cell);

// Writes episodes.csv, evaluation.json and comparisons.json into `folder`, which is there.
Result<void> RunScalingCell(const ScalingCell& cell, const std::filesystem::path& folder,
                            const Session& session, ThreadPool* pool,
                            const std::function<void(double, std::string_view)>& progress);

}  // namespace rudderfish
