// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cluster/task_kind.h"

// Commands serve every kind of decision. An option that suits only some kinds is refused for the
// others.

namespace rudderfish {

struct TaskOption {
  std::string_view name;
  std::vector<TaskKind> tasks;  // The ones that have it.
};

// The first of `options` that is given and that `task` does not have; empty: there is none.
std::string_view UnsuitableOption(const Arguments& arguments, TaskKind task,
                                  std::span<const TaskOption> options);

// kInvalidArgument if there is one.
Result<void> CheckOptionsSuit(const Arguments& arguments, TaskKind task,
                              std::span<const TaskOption> options);

}  // namespace rudderfish
