// SPDX-License-Identifier: Apache-2.0
#include "scenario/task_of.h"

namespace rudderfish {

TaskKind TaskOf(const Scenario& scenario) {
  if (scenario.regions != nullptr) return TaskKind::kRoute;
  if (scenario.places_pods()) return TaskKind::kPlace;
  return scenario.load != nullptr ? TaskKind::kScale : TaskKind::kMove;
}

Result<TaskKind> TaskFor(const std::optional<std::string>& named, const Scenario& scenario,
                         std::string_view source_name) {
  const TaskKind inferred = TaskOf(scenario);
  if (!named) return inferred;
  const Result<TaskKind> task = TaskNamed(*named);
  if (!task) return Invalid("--task: {}", task.error().message);
  const auto refuse = [&](std::string_view why) {
    return Invalid("--task {}: {} {}; its task is {}", *named, source_name, why,
                   TaskName(inferred));
  };
  if (scenario.regions != nullptr && *task != TaskKind::kRoute)
    return refuse("has `regions`: requests are routed to them");
  switch (*task) {
    case TaskKind::kRoute:
      if (scenario.regions == nullptr) return refuse("has no `regions`: there is nowhere to route");
      break;
    case TaskKind::kMove:
      if (scenario.places_pods()) return refuse("has `arrivals`: its pods come, go and are placed");
      break;
    case TaskKind::kPlace:
      if (!scenario.places_pods()) return refuse("has no `arrivals`: no pods come to be placed");
      break;
    case TaskKind::kScale:
      if (scenario.load == nullptr) return refuse("has no `load`: no requests come to be served");
      break;
  }
  return *task;
}

}  // namespace rudderfish
