// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "control/application_run.h"
#include "control/sqlite_moves.h"

// Corrects the Models of applications by what the journal has of measured changes
// (control/model_correction.h): at the first turn, and whenever another change was measured. What
// does not make predictions better is not applied, and what was applied is given up as soon as it
// does not any more. One thread.

namespace rudderfish {

class ModelCorrector {
 public:
  // What the journal keeps of moves outlives it.
  explicit ModelCorrector(SqliteMoves* moves) : moves_(moves) {}

  // After a turn of the application. The Model stays as it is while the journal cannot be read or
  // written.
  void Follow(ApplicationRun* run);

  // By how much a factor must differ from the one that is applied, so that noise changes no Model.
  static constexpr double kLeastChange = 0.02;

 private:
  SqliteMoves* moves_;
  std::map<std::string, int64_t> seen_;  // By application: changes measured, as it was looked at.
};

}  // namespace rudderfish
