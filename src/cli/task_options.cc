// SPDX-License-Identifier: Apache-2.0
#include "cli/task_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rudderfish {

Result<void> CheckOptionsSuit(const Arguments& arguments, TaskKind task,
                              std::span<const TaskOption> options) {
  for (const TaskOption& option : options) {
    if (!arguments.Has(option.name) || std::ranges::count(option.tasks, task) > 0) continue;
    std::vector<std::string_view> names;
    for (const TaskKind one : option.tasks) names.push_back(TaskName(one));
    return Invalid("--{}: requires --task {}; this is --task {}", option.name,
                   fmt::join(names, " or "), TaskName(task));
  }
  return {};
}

}  // namespace rudderfish
