// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// How a policy became what it is: its figures on validation starts while it learned. learn/ writes
// and reads them (run_tables.h), the report draws them. Validation starts choose the best
// checkpoint, so these figures are slightly too good; what a policy is worth, evaluation.h says.

namespace rudderfish {

struct CurvePoint {
  int64_t env_steps = 0;  // Since the start of the run.
  double seconds = 0;     // The same by the clock; not a number where it was not recorded.
  double final_ms = 0;    // Means over the validation starts.
  double mean_return = 0;
  double moves = 0;
};

struct LearningCurve {
  std::string name;                           // Of the policy in the evaluation.
  std::vector<std::vector<CurvePoint>> runs;  // [training seed], by ascending env_steps.
};

}  // namespace rudderfish
