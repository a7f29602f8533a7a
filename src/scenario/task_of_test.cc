// SPDX-License-Identifier: Apache-2.0
#include "scenario/task_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

struct ServedKind {
  const char* scenario;
  TaskKind inferred;
  bool serves[4];  // In the order of kTaskNames.
};

constexpr ServedKind kServedKinds[] = {
    {"scenarios/continuum-7x21.yaml", TaskKind::kMove, {true, false, false, false}},
    {"scenarios/drs-even.yaml", TaskKind::kPlace, {false, true, false, false}},
    {"scenarios/redis.yaml", TaskKind::kScale, {true, false, true, false}},
    {"scenarios/multicloud-16.yaml", TaskKind::kRoute, {false, false, false, true}},
};

TEST(TaskKind, IsInferredFromTheScenarioAndCheckedAgainstIt) {
  for (const ServedKind& kind : kServedKinds) {
    const Scenario scenario = LoadScenario(SourcePath(kind.scenario)).value();
    EXPECT_EQ(TaskFor(std::nullopt, scenario, kind.scenario).value(), kind.inferred);
    for (size_t i = 0; i < std::size(kTaskNames); ++i) {
      const Result<TaskKind> task = TaskFor(std::string(kTaskNames[i]), scenario, kind.scenario);
      EXPECT_EQ(task.has_value(), kind.serves[i]) << kind.scenario << " " << kTaskNames[i];
      if (task) {
        EXPECT_EQ(TaskName(*task), kTaskNames[i]);
      } else {
        EXPECT_THAT(task.error().message,
                    HasSubstr(fmt::format("--task {}: {} has ", kTaskNames[i], kind.scenario)));
        EXPECT_THAT(task.error().message,
                    HasSubstr(fmt::format("its task is {}", TaskName(kind.inferred))));
      }
    }
  }
}

TEST(TaskKind, AnUnknownNameIsRefusedWithTheNearest) {
  const Scenario scenario = LoadScenario(SourcePath("scenarios/redis.yaml")).value();
  EXPECT_THAT(TaskFor("scaling", scenario, "redis.yaml").error().message,
              HasSubstr("--task: expected move or place or scale or route, found \"scaling\""));
}

}  // namespace
}  // namespace rudderfish
