// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "model/capacity_ladder.h"
#include "model/load_laws.h"
#include "scenario/scenario.h"

// Whether a limit on late requests can be met at all: said before anything is trained for it.
//
// Judged by the Model of load with all the pods that bounds and quota allow, ready from the first
// moment: late and failed requests among all those of some episodes that learning draws. What a
// burst's peak alone misses counts only as far as it makes requests late, and as the Model may be
// off, a limit that is missed by less than half is not refused.

namespace rudderfish {

// `loads` are positions in Load::loads, each judged by itself; `late_max` a share of requests.
// kFailedPrecondition in one line: which load, how many are late nevertheless, and what to raise.
// REQUIRES: the scenario has `load`; `ladder` and `laws` are of its application.
Result<void> CheckLimitCanBeMet(const Scenario& scenario, const std::vector<int>& loads,
                                double late_max, const CapacityLadder& ladder,
                                const std::shared_ptr<const LoadLaws>& laws);
Result<void> CheckLimitCanBeMet(const Scenario& scenario, const std::vector<int>& loads,
                                double late_max);

}  // namespace rudderfish
