// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "evaluation/experiment.h"

// A cell of an experiment on placement: one scenario in one variant for one objective, for which
// networks are trained, if the experiment asks for that, before all policies meet the same held-out
// episodes. Training is kept, and gone on with where it was stopped.

namespace rudderfish {

struct PlacementCell {
  const Experiment* experiment = nullptr;
  ExperimentCell cell;
  std::filesystem::path scenario;  // Where it is.
  std::filesystem::path folder;    // Of all results.

  const ExperimentVariant& variant() const { return experiment->variants[cell.variant]; }
  std::filesystem::path training(std::string_view algorithm) const {
    return folder / "trained" / cell.name / algorithm;
  }
};

// What can be wrong before anything is computed.
Result<void> CheckPlacementCell(const PlacementCell& cell);

// Writes episodes.csv, evaluation.json, comparisons.json and report.html into `folder`, which is
// there.
Result<void> RunPlacementCell(const PlacementCell& cell, const std::filesystem::path& folder,
                              const Session& session, ThreadPool* pool,
                              const std::function<void(double, std::string_view)>& progress);

}  // namespace rudderfish
