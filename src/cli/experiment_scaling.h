// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "evaluation/calibration.h"
#include "evaluation/experiment.h"

// A cell of an experiment on scaling: one load of one scenario in one variant, for which the
// autoscaler is calibrated and networks are trained, if the experiment asks for that, before all
// policies meet the same held-out episodes. Each of these steps is kept, and gone on with where it
// was stopped. A network steps back to the best of what the experiment calibrates.

namespace rudderfish {

struct ScalingCell {
  const Experiment* experiment = nullptr;
  ExperimentCell cell;
  std::filesystem::path scenario;  // Where it is.
  std::filesystem::path folder;    // Of all results.

  const std::string& load() const { return experiment->scaling->loads[cell.load]; }
  const ExperimentVariant& variant() const { return experiment->variants[cell.variant]; }
  std::filesystem::path calibration(CalibratedKind kind) const {
    // As in the enum; no cell has such an ending in its name.
    constexpr const char* kEndings[] = {".yaml", "+mpc.yaml", "+static.yaml"};
    return folder / "calibrated" / (cell.name + kEndings[static_cast<int>(kind)]);
  }
  std::filesystem::path training() const { return folder / "trained" / cell.name; }
};

// What can be wrong before anything is computed. A variant is another scenario, so that it takes no
// calibration of before.
Result<void> CheckScalingCell(const ScalingCell& cell);

// Writes episodes.csv, evaluation.json, comparisons.json and seconds.csv, what its parts took, into
// `folder`, which is there.
Result<void> RunScalingCell(const ScalingCell& cell, const std::filesystem::path& folder,
                            const Session& session, ThreadPool* pool,
                            const std::function<void(double, std::string_view)>& progress);

}  // namespace rudderfish
