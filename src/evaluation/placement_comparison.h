// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "evaluation/placement_evaluation.h"

// The last policy of an evaluation of placement (the candidate) against each of the others, as
// experiments keep it. Pure functions of the evaluation; what the clock says is not among it.

namespace rudderfish {

// What is compared of an episode.
struct PlacementMeasure {
  enum class Better { kLess, kMore };

  std::string_view metric, unit;  // As LifecycleMetrics::Rows has them.
  std::string_view title;         // For readers.
  int decimals = 2;
  Better better = Better::kLess;
};

// The objective first.
std::span<const PlacementMeasure> PlacementMeasures();

// Where an evaluation stands within an experiment.
struct PlacementPlace {
  std::string_view scenario, objective, variant;
};

// The last policy against every other one, an entry a measure:
//   [{"scenario","objective","variant","metric","unit","candidate","baseline","candidate_iqm",
//     "baseline_iqm","candidate_mean","baseline_mean","difference","difference_ci95":[lo,hi],
//     "episodes","seeds","better":true|false|null}, ...]
// `better` is null where the interval holds 0, and where there are too few episodes to say.
OrderedJson PlacementPairs(const PlacementEvaluation& evaluation, const PlacementPlace& place);

// A table of the pairs of the objective, aligned; ends with a newline.
std::string PlacementPairsTable(const OrderedJson& pairs);

}  // namespace rudderfish
