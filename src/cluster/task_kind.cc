// SPDX-License-Identifier: Apache-2.0
#include "cluster/task_kind.h"

#include <fmt/format.h>

#include <iterator>

#include "base/suggest.h"

namespace rudderfish {

std::string_view TaskName(TaskKind task) { return kTaskNames[static_cast<int>(task)]; }

Result<TaskKind> TaskNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(kTaskNames); ++i) {
    if (kTaskNames[i] == name) return static_cast<TaskKind>(i);
  }
  return Invalid("expected {}, found \"{}\"{}", fmt::join(kTaskNames, " or "), name,
                 DidYouMean(name, kTaskNames));
}

}  // namespace rudderfish
