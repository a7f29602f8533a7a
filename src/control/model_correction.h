// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

// By what factor the Model's predicted changes of one term are to be multiplied to be what was
// measured, and how wrong they are then. Pure functions of what the journal has.
//
// measured = factor x predicted + noise, with a factor that is 1 +- 0.5 until the data say
// otherwise, by Bayes' rule. Outliers count less: Huber's weights, with a scale by the median of
// residuals (Huber, "Robust estimation of a location parameter", 1964). Changes that were not
// predicted to differ from nothing say nothing of a factor: it stays 1.

namespace rudderfish {

// A change of the cluster: by how much a term changed, as the Model predicted and as was measured.
struct MeasuredChange {
  std::string application, term;
  double predicted_ms = 0, measured_ms = 0;
};

struct ModelCorrection {
  std::string application, term;
  int64_t changes = 0;
  double factor = 1;         // From a third to three,
  bool is_at_bound = false;  // and at one of these: the data say more.
  double low = 0, high = 0;  // Its 95 % interval.
  // Mean size of the error: as predicted, and with the factor that the other changes give (leave
  // one out), so that it is no better than it is for the next change.
  double error_ms = 0, corrected_error_ms = 0;
};

// REQUIRES: all are of one application and term.
ModelCorrection FitCorrection(std::span<const MeasuredChange> changes);

// One for each application and term, in the order in which they come first.
std::vector<ModelCorrection> FitCorrections(std::span<const MeasuredChange> changes);

}  // namespace rudderfish
