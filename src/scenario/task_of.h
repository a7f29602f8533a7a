// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/task_kind.h"
#include "scenario/scenario.h"

// Which kind of decision a command is about: inferred from the scenario, or named by --task and
// checked against it. No command does another task than the one that was named.

namespace rudderfish {

// route where there are `regions`, place where pods come and go (`arrivals`), scale where requests
// come (`load`), else move.
TaskKind TaskOf(const Scenario& scenario);

// `named`, or what the scenario says. kInvalidArgument where the scenario cannot serve it; the
// message names the scenario by `source_name`, says why, and which task it can serve.
Result<TaskKind> TaskFor(const std::optional<std::string>& named, const Scenario& scenario,
                         std::string_view source_name);

}  // namespace rudderfish
