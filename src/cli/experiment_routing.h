// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "evaluation/experiment.h"

// A cell of an experiment on routing: one variant of a scenario's regions at one place. Rules are
// calibrated for that variant and networks are trained in it, at the first place, if the experiment
// asks for that, before all policies meet the same held-out episodes. Each of these steps is kept,
// and gone on with where it was stopped. A network steps back to the best of what is calibrated.

namespace rudderfish {

struct RoutingCell {
  const Experiment* experiment = nullptr;
  ExperimentCell cell;
  std::filesystem::path scenario;  // Where it is.
  std::filesystem::path folder;    // Of all results.

  const std::string& region_variant() const {
    return experiment->routing->region_variants[cell.region_variant];
  }
  const NamedPlace& home() const { return experiment->routing->places[0]; }
  const NamedPlace& place() const { return experiment->routing->places[cell.place]; }
  const ExperimentVariant& variant() const { return experiment->variants[cell.variant]; }
  // What is found for a cell is found once for all places.
  std::string found() const;
  std::filesystem::path calibration(std::string_view policy) const;
  std::filesystem::path training(std::string_view tiers) const;
};

// What can be wrong before anything is computed.
Result<void> CheckRoutingCell(const RoutingCell& cell);

// Writes episodes.csv, evaluation.json, comparisons.json and report.html into `folder`, which is
// there; front.json, too, where variants differ in the weight of carbon alone.
Result<void> RunRoutingCell(const RoutingCell& cell, const std::filesystem::path& folder,
                            const Session& session, ThreadPool* pool,
                            const std::function<void(double, std::string_view)>& progress);

// Where variants differ in the weight of carbon alone, a front (evaluation/carbon_front.h) for each
// place and variant of the regions, with "scenario", "place" and "file"; of what is below `folder`.
Result<OrderedJson> CarbonFronts(const Experiment& experiment,
                                 const std::vector<ExperimentCell>& cells,
                                 const std::filesystem::path& folder);

}  // namespace rudderfish
