// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/latency.h"

// By what factors the parts of the Model's predicted changes are to be multiplied to be what was
// measured, and how wrong they are then. Pure functions of what the journal has.
//
// measured = sum over parts of factor x predicted part + noise, with factors that are 1 +- 0.5 each
// until the data say otherwise, by Bayes' rule. Outliers count less: Huber's weights, with a scale
// by the median of residuals (Huber, "Robust estimation of a location parameter", 1964). A part
// that was never predicted to change stays as it is: its factor is 1.

namespace rudderfish {

// A change of the cluster: by how much a latency, or one part of it, changed.
struct MeasuredChange {
  std::string application;
  std::string model;  // What the Model was made of: EvidenceRow::model.
  Terms predicted;  // By the Model as it is without correction; parts that were not measured are 0.
  double measured_ms = 0;
};

struct ModelCorrection {
  // TermNames() without the first: execution, network, transfer, queueing.
  static constexpr int kParts = Terms::kCount - 1;
  // Changes before anything is corrected; below it residuals say little of the noise.
  static constexpr int64_t kFew = 5;

  struct Factor {
    double value = 1;            // From a third to three,
    bool is_at_bound = false;    // and at one of these: the data say more.
    double low = 0, high = 0;    // Its 95 % interval.
    bool was_predicted = false;  // To change, by any of the changes.
  };

  std::string application;
  int64_t changes = 0;
  std::array<Factor, kParts> factors;
  // Mean size of the error: as predicted, and with the factors that the other changes give (leave
  // one out), so that it is no better than it is for the next change.
  double error_ms = 0, corrected_error_ms = 0;

  // Whether predictions are better with the factors, as far as the changes tell.
  bool Helps() const { return changes >= kFew && corrected_error_ms < error_ms; }

  // For the Model; 1 each where they do not help.
  LatencyFactors ToApply() const;
};

// REQUIRES: all are of one application and one model.
ModelCorrection FitCorrection(std::span<const MeasuredChange> changes);

// One for each application, in the order in which they come first, of the changes whose model is
// the one of its last change.
std::vector<ModelCorrection> FitCorrections(std::span<const MeasuredChange> changes);

// "execution x 0.71, network x 1.30"; empty if all are 1, rounded.
std::string InWords(const LatencyFactors& factors);

}  // namespace rudderfish
