// SPDX-License-Identifier: Apache-2.0
#include "control/baseline_plan.h"

namespace rudderfish {

void BaselinePlan::Begin(const State& state) {
  state_ = state;
  model_.Reset(state_);
  memory_->Restart();
  question_ = {};
  start_ms_ = model_.Now().latency_ms;
  costs_ms_ = 0;
  has_stopped_ = false;
}

void BaselinePlan::MoveUpTo(int moves) {
  while (!has_stopped_ && question_.step < moves) {
    task_->Space(&model_, question_, &space_);
    Ask ask{.model = &model_,
            .task = task_,
            .question = question_,
            .space = &space_,
            .memory = memory_.get()};
    baseline_->Decide({&ask, 1}, {&answer_, 1});
    has_stopped_ = answer_.choice == kStop;
    if (has_stopped_) return;
    model_.CommitForGood(space_.candidates[answer_.choice].move);
    costs_ms_ += task_->StepCost(question_);
    ++question_.step;
  }
}

}  // namespace rudderfish
