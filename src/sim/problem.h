// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "model/latency.h"
#include "scenario/scenario.h"
#include "task/migration.h"

// What a scenario file asks for, put together: the world, the law it obeys and the task to do in
// it. Immutable.

namespace rudderfish {

struct Problem {
  std::shared_ptr<const Scenario> scenario;
  std::shared_ptr<const MigrationTask> task;
  LatencyLaw law;

  static Result<Problem> Open(const std::filesystem::path& path);
  static Result<Problem> Of(std::shared_ptr<const Scenario> scenario);
};

}  // namespace rudderfish
