// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cluster/task_kind.h"

// Commands serve every kind of decision. An option that suits some of them is refused for others.

namespace rudderfish {

struct TaskOption {
  std::string_view name;
  std::vector<TaskKind> tasks;  // The ones that have it.
};

// kInvalidArgument if one of `options` is given that `task` does not have.
Result<void> CheckOptionsSuit(const Arguments& arguments, TaskKind task,
                              std::span<const TaskOption> options);

}  // namespace rudderfish
