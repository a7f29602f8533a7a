// SPDX-License-Identifier: Apache-2.0
#include "sim/problem.h"

#include <gtest/gtest.h>

#include "tests/support/shipped_scenario.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

TEST(Problem, LawAndTaskAreThoseOfTheScenario) {
  Scenario scenario = *testing::ShippedScenario("continuum-7x21");
  const Result<Problem> problem = Problem::Of(std::make_shared<const Scenario>(scenario));
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  EXPECT_EQ(problem->law.name, scenario.law);
  EXPECT_EQ(problem->task->max_steps(), ParseMigrationOptions(scenario.task).value().max_steps);
  scenario.law = "unknown";
  EXPECT_FALSE(Problem::Of(std::make_shared<const Scenario>(scenario)).has_value());
}

TEST(Problem, ScenariosInWhichPodsArePlacedHaveNoneToSolve) {
  for (const char* path : {"scenarios/drs-even.yaml", "scenarios/edge-shop.yaml"}) {
    const Result<Problem> problem = Problem::Open(SourcePath(path));
    ASSERT_FALSE(problem.has_value()) << path;
    EXPECT_NE(problem.error().message.find(path), std::string::npos);
  }
}

}  // namespace
}  // namespace rudderfish
