// SPDX-License-Identifier: Apache-2.0
#include "cli/task_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rudderfish {

std::string_view UnsuitableOption(const Arguments& arguments, TaskKind task,
                                  std::span<const TaskOption> options) {
  for (const TaskOption& option : options) {
    if (arguments.Has(option.name) && std::ranges::count(option.tasks, task) == 0)
      return option.name;
  }
  return {};
}

Result<void> CheckOptionsSuit(const Arguments& arguments, TaskKind task,
                              std::span<const TaskOption> options) {
  const std::string_view unsuitable = UnsuitableOption(arguments, task, options);
  if (unsuitable.empty()) return {};
  std::vector<std::string_view> names;
  for (const TaskKind one : std::ranges::find(options, unsuitable, &TaskOption::name)->tasks)
    names.push_back(TaskName(one));
  return Invalid("--{}: requires --task {}; this is --task {}", unsuitable,
                 fmt::join(names, " or "), TaskName(task));
}

}  // namespace rudderfish
