// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/graph_batch.h"
#include "cluster/decision.h"
#include "model/evaluator.h"
#include "task/action_space.h"

// A task turns a state into a question with the answers that are allowed, shows it to a network,
// turns an answer into a decision, and says what a decision must be worth. It is the same object
// for the training environment and for the live controller, so that the two cannot differ.
// Immutable after construction: any thread may use it.

namespace rudderfish {

class Walk;

// Which decision of a plan is asked for. A live controller starts a new plan at step 0 whenever it
// acts again.
struct Question {
  int step = 0;                // Decisions already taken in this plan.
  const Walk* walk = nullptr;  // That asks, and has come this far; none: it would begin here.
};

struct FeatureDescription {
  std::string_view name;
  std::string_view unit;
  double scale = 1;  // The network sees the value divided by this.
  std::string_view meaning;
};

struct FeatureTable {
  std::vector<FeatureDescription> candidate, node, workload, context;
};

// Digest of a task's name and its features: what must hold for a policy to run.
std::string HashOfFeatures(std::string_view task, const FeatureTable& table);

class Task {
 public:
  virtual ~Task() = default;

  virtual std::string_view name() const = 0;
  virtual int max_steps() const = 0;

  // What must hold for a policy trained on one task to run on another: digest of the feature table.
  virtual const FeatureTable& features() const = 0;
  virtual GraphWidths widths() const = 0;
  std::string FeatureHash() const;

  // The answers allowed in the evaluator's state.
  virtual void Space(Evaluator* model, const Question& question, ActionSpace* space) const = 0;

  // Appends the question to `batch` as one sample; candidates in the order of `space`. `space` must
  // come from Space of the same state.
  virtual void Encode(Evaluator* model, const Question& question, ActionSpace* space,
                      GraphBatch* batch) const = 0;

  // `choice` is an index into space.candidates or kStop (an empty decision).
  virtual void Decode(const State& state, const ActionSpace& space, int choice,
                      Decision* decision) const = 0;

  // What the next decision must gain to be worth taking, in the objective's unit.
  virtual double StepCost(const Question& question) const = 0;
};

}  // namespace rudderfish
