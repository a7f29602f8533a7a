// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/judged_world.h"

// The entries of JudgedWorldOf: one block for each kind of decision.

namespace rudderfish {

Result<Judgement> EvaluateMoves(const EvaluationRequest& request);
Result<ExitStatus> SimulateMoves(const SimulationRequest& request);
Result<void> CheckMovesCell(const PlannedCell& cell);
Result<CellResult> RunMovesCell(const PlannedCell& cell, const CellRun& run);

Result<Judgement> EvaluatePlacement(const EvaluationRequest& request);
Result<ExitStatus> SimulatePlacement(const SimulationRequest& request);
Result<void> CheckPlacementCell(const PlannedCell& cell);
Result<CellResult> RunPlacementCell(const PlannedCell& cell, const CellRun& run);
CellColumns PlacementColumns(const PlannedCell& cell);

Result<Judgement> EvaluateScalingPolicies(const EvaluationRequest& request);
Result<ExitStatus> SimulateScaling(const SimulationRequest& request);
Result<void> CheckScalingCell(const PlannedCell& cell);
Result<CellResult> RunScalingCell(const PlannedCell& cell, const CellRun& run);

Result<Judgement> EvaluateRoutingPolicies(const EvaluationRequest& request);
Result<ExitStatus> SimulateRouting(const SimulationRequest& request);
Result<void> CheckRoutingCell(const PlannedCell& cell);
Result<CellResult> RunRoutingCell(const PlannedCell& cell, const CellRun& run);
CellColumns RoutingColumns(const PlannedCell& cell);

}  // namespace rudderfish
