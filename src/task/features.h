// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "model/evaluator.h"
#include "task/action_space.h"
#include "task/question_summary.h"
#include "task/task.h"

// What a network sees of a migration question: the one place where features are defined. The tables
// in features.cc (Model) and reach_features.cc (ReachAgent) say for each number its name, unit,
// scale and meaning and how it is read; widths, the feature hash of checkpoints and
// docs/observation.md come from them. What the reader of a
// candidate's feature takes says what the feature depends on: most depend on the workload and one
// of the two nodes, and are read once for all candidates that share them.
//
// No feature names a workload, a node or a layer: they describe, so that one set of weights serves
// other clusters.

namespace rudderfish {

class MigrationFeatures {
 public:
  static const FeatureTable& Model();
  static const FeatureTable& ReachAgent();

  // Appends one sample to `batch`, nodes in the order of space->ends, with the rows of Model() or
  // ReachAgent().
  static void Write(Evaluator* model, const StepCosts& costs, const Question& question,
                    ActionSpace* space, GraphBatch* batch);
  static void WriteReachAgent(Evaluator* model, int step, ActionSpace* space, GraphBatch* batch);
};

inline constexpr GraphWidths kMigrationWidths{
    .candidate = 48, .node = 16, .workload = 16, .context = 32};

}  // namespace rudderfish
