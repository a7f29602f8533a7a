// SPDX-License-Identifier: Apache-2.0
#include "task/walk.h"

#include <algorithm>

#include "task/task.h"

namespace rudderfish {
namespace {

constexpr int kStepsMin = 30;

// A placement's key is a sum over its pods, so that it follows moves and knows no order.
uint64_t CellKey(WorkloadId workload, NodeId node) {
  uint64_t key = (static_cast<uint64_t>(workload) << 32 | static_cast<uint32_t>(node)) + 1;
  key *= 0x9E3779B97F4A7C15ull;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ull;
  return key ^ (key >> 27);
}

uint64_t ChangeOfKey(const Move& move) {
  return CellKey(move.workload, move.to) - CellKey(move.workload, move.from);
}

}  // namespace

const double Walk::kStepMs = 0.2;

void Walk::Begin(const Evaluator& model, const Task& task, const Question& question) {
  const Placement& placement = model.placement();
  task_ = &task;
  first_step_ = question.step;
  nodes_ = placement.node_count();
  int pods = 0;
  start_.resize(static_cast<size_t>(placement.workload_count()) * nodes_);
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    std::copy_n(placement.on_nodes(w), nodes_, start_.begin() + static_cast<ptrdiff_t>(w) * nodes_);
    pods += placement.replicas(w);
  }
  const int left = std::max(0, task.max_steps() - first_step_);
  steps_max_ = std::min(left, std::max(kStepsMin, pods));
  costs_ms_.assign(1, 0.0);
  moves_.clear();
  key_ = 0;
  been_in_.assign(1, key_);
  displaced_ = best_displaced_ = best_steps_ = 0;
  start_ms_ = objective_ms_ = best_latency_ms_ = best_objective_ms_ = model.Now().latency_ms;
}

Question Walk::question() const { return {first_step_ + displaced_, this}; }

double Walk::CostOf(int moves) {
  while (static_cast<int>(costs_ms_.size()) <= moves) {
    const int step = first_step_ + static_cast<int>(costs_ms_.size()) - 1;
    costs_ms_.push_back(costs_ms_.back() + task_->StepCost({step}));
  }
  return costs_ms_[moves];
}

double Walk::Note(const Evaluator& model, const Move& move) {
  const Placement& placement = model.placement();
  moves_.push_back(move);
  key_ += ChangeOfKey(move);
  been_in_.push_back(key_);
  displaced_ -=
      placement.on_node(move.workload, move.from) >= PodsAtStart(move.workload, move.from);
  displaced_ += placement.on_node(move.workload, move.to) > PodsAtStart(move.workload, move.to);
  const double latency_ms = model.Now().latency_ms;
  objective_ms_ = latency_ms + CostOf(displaced_);
  if (objective_ms_ >= best_objective_ms_) return -kStepMs;
  const double fall_ms = best_objective_ms_ - objective_ms_;
  best_objective_ms_ = objective_ms_;
  best_latency_ms_ = latency_ms;
  best_displaced_ = displaced_;
  best_steps_ = steps();
  return fall_ms - kStepMs;
}

bool Walk::Returns(const Move& move) const {
  return std::find(been_in_.rbegin(), been_in_.rend(), key_ + ChangeOfKey(move)) != been_in_.rend();
}

}  // namespace rudderfish
