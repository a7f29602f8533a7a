// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "control/evidence.h"
#include "control/model_correction.h"

// What was measured of the Model's predictions, as `rudderfish status` shows it.

namespace rudderfish {

OrderedJson EvidenceJson(const std::vector<EvidenceSum>& sums);
std::string EvidenceText(const std::vector<EvidenceSum>& sums);

// By what factors the parts of predicted changes would be the measured ones, as far as it is known.
OrderedJson CorrectionsJson(const std::vector<ModelCorrection>& corrections);
std::string CorrectionsText(const std::vector<ModelCorrection>& corrections);

}  // namespace rudderfish
