// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "base/result.h"

// The kinds of decision, as --task, experiments and the table of policies name them.

namespace rudderfish {

enum class TaskKind { kMove, kPlace, kScale, kRoute };  // In the order of kTaskNames.

inline constexpr std::string_view kTaskNames[] = {"move", "place", "scale", "route"};
inline constexpr std::string_view kTaskWords = "move|place|scale|route";  // As options say it.

// What `run`, the journal, `promote` and `decisions --kind` call the kinds that are decided about
// on a cluster.
inline constexpr std::array<std::string_view, 3> kDecisionKinds = {"placement", "migration",
                                                                   "routing"};

std::string_view TaskName(TaskKind task);

// Messages name the nearest.
Result<TaskKind> TaskNamed(std::string_view name);

}  // namespace rudderfish
