// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "learn/env.h"
#include "scenario/scenario.h"
#include "task/task.h"

// The worlds a run of training plays in, made from scenarios: each with the law and the task its file names. One
// network serves them all, so their tasks must show it the same features. Immutable.

namespace rudderfish {

class TrainingWorlds {
 public:
  // Refuses tasks with different features, and worlds of which no start state can be drawn.
  static Result<TrainingWorlds> Make(std::span<const std::shared_ptr<const Scenario>> scenarios);

  std::span<const TrainingWorld> list() const { return list_; }
  const Task& task() const { return *tasks_[0]; }

 private:
  std::vector<std::unique_ptr<World>> worlds_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<TrainingWorld> list_;
};

}  // namespace rudderfish
