// SPDX-License-Identifier: Apache-2.0
#include "sim/placement_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/check.h"
#include "scenario/scenario.h"
#include "tests/support/source_path.h"

// The simple rules on the shipped scenarios: what earlier systems published of their policies must
// show, and every term of the objective must be least for the rule that makes it least.

namespace rudderfish {
namespace {

using Values = std::map<std::string_view, double>;

enum class Limits { kKept, kDropped };  // Of latency.

Values ValuesOfRun(const std::string& path, std::string_view rule, const Objective& objective,
                   uint64_t seed = 1, Limits limits = Limits::kKept) {
  const std::string file = SourcePath(path + ".yaml");
  Result<Scenario> scenario = LoadScenario(file);
  CHECK(scenario.has_value());
  scenario->objective = objective;
  if (limits == Limits::kDropped) {
    auto catalog = std::make_shared<Catalog>(*scenario->catalog);
    for (Workload& workload : catalog->workloads) workload.latency_limits = {};
    scenario->catalog = catalog;
  }
  Lifecycle world(std::make_shared<const Scenario>(*std::move(scenario)));
  const Result<LifecycleMetrics> metrics =
      RunPlacement(*PlacementRuleNamed(rule, objective), seed, &world);
  CHECK(metrics.has_value());
  CheckConsistent(world.state());
  Values values;
  for (const MetricRow& row : metrics->Rows()) values[row.name] = row.value;
  return values;
}

Values ValuesOfRun(const std::string& path, std::string_view rule, ObjectiveTerm term,
                   uint64_t seed = 1) {
  return ValuesOfRun(path, rule, Objective::Of(term), seed);
}

// EE and LB of the thesis know nothing of latency.
Values BlindOutcome(const std::string& path, std::string_view rule, ObjectiveTerm term) {
  return ValuesOfRun(path, rule, Objective::Of(term), 1, Limits::kDropped);
}

constexpr const char* kThesis[] = {"scenarios/thesis-test1", "scenarios/thesis-test2"};
constexpr const char* kDrs[] = {"scenarios/drs-even", "scenarios/drs-random", "scenarios/drs-cpu"};

TEST(PlacementRun, EnergyEfficientPutsAllPodsOnOneNode) {
  for (const char* path : kThesis) {
    for (const char* rule : {"greedy", "most-allocated"}) {
      const Values values = BlindOutcome(path, rule, ObjectiveTerm::kEnergy);
      EXPECT_EQ(values.at("active_nodes_at_bindings"), 1) << path << " " << rule;
      EXPECT_EQ(values.at("never_bound"), 0) << path << " " << rule;
    }
  }
}

TEST(PlacementRun, LoadBalancingUsesAllNodesEvenly) {
  for (const char* path : kThesis) {
    const Values balanced = BlindOutcome(path, "greedy", ObjectiveTerm::kBalance);
    const Values packed = BlindOutcome(path, "greedy", ObjectiveTerm::kEnergy);
    EXPECT_GT(balanced.at("active_nodes_at_bindings"), 2.89)
        << path;  // Of 3, once three are there.
    EXPECT_LT(balanced.at("imbalance_cpu"), 0.1 * packed.at("imbalance_cpu")) << path;
    EXPECT_GT(balanced.at("energy"), 1.3 * packed.at("energy")) << path;
  }
}

// The thesis' EL-RL: the nearest node, whichever it is, after both changes; and all pods on it.
TEST(PlacementRun, LatencyAwareEnergyEfficientFollowsBothChanges) {
  const Objective both{.weight = {0, 0.1, 0, 0, 0, 1}};
  for (const char* path : kThesis) {
    const Values values = ValuesOfRun(path, "greedy", both, 1);
    EXPECT_EQ(values.at("hard_misses"), 0) << path;
    EXPECT_EQ(values.at("soft_misses"), 0) << path;
    EXPECT_DOUBLE_EQ(values.at("chosen_latency"), 10) << path;  // 5 ms there, 5 ms back.
    EXPECT_LT(values.at("active_nodes_at_bindings"), 1.5) << path;
    const Values spread = ValuesOfRun(path, "least-allocated", ObjectiveTerm::kBalance);
    EXPECT_EQ(spread.at("hard_misses"), 0) << path;  // A mask for every rule.
    EXPECT_GT(spread.at("soft_misses"), 50) << path;
    EXPECT_GT(spread.at("chosen_latency"), 15) << path;
  }
}

TEST(PlacementRun, BalanceOnDrsWorkloadsIsNoWorseThanRoundRobinAndLeastAllocated) {
  for (const char* path : kDrs) {
    double greedy_sum = 0, least_sum = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const auto run = [&](std::string_view rule) {
        return ValuesOfRun(path, rule, ObjectiveTerm::kBalance, seed);
      };
      const Values greedy = run("greedy"), turns = run("round-robin");
      const Values least = run("least-allocated"), most = run("most-allocated");
      EXPECT_EQ(greedy.at("completed"), 100) << path;
      EXPECT_LE(greedy.at("objective"), turns.at("objective")) << path << " " << seed;
      greedy_sum += greedy.at("objective");
      least_sum += least.at("objective");
      EXPECT_LT(3 * greedy.at("objective"), most.at("objective")) << path << " " << seed;
      // Same pods, same lifetimes, never a queue: the same makespan.
      EXPECT_NEAR(greedy.at("makespan"), most.at("makespan"), 1) << path;
    }
    EXPECT_LE(greedy_sum, 1.02 * least_sum) << path;  // One pod at a time is not the best there is.
  }
}

TEST(PlacementRun, TraceOfDevicesIsReplayed) {
  const Values greedy =
      ValuesOfRun("tests/data/openb-like/replay", "greedy", ObjectiveTerm::kFragmentation);
  EXPECT_EQ(greedy.at("arrived"), 12);
  EXPECT_EQ(greedy.at("never_bound"), 1);  // 200 cores,
  EXPECT_EQ(greedy.at("never_fit"), 1);    // which no node has.
  const Values least =
      ValuesOfRun("tests/data/openb-like/replay", "least-allocated", ObjectiveTerm::kFragmentation);
  EXPECT_LE(greedy.at("objective"), least.at("objective"));
}

// The recorded trace itself, where somebody has it: a scenario file that names it.
TEST(PlacementRun, RecordedTraceIsReplayedWhereItIsGiven) {
  const char* path = std::getenv("RUDDERFISH_TRACE_SCENARIO");
  if (path == nullptr) GTEST_SKIP() << "RUDDERFISH_TRACE_SCENARIO names no scenario";
  Result<Scenario> scenario = LoadScenario(path);
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  Lifecycle world(std::make_shared<const Scenario>(*std::move(scenario)));
  for (const std::string_view rule : PlacementRuleNames()) {
    const Result<LifecycleMetrics> metrics = RunPlacement(
        *PlacementRuleNamed(rule, world.scenario().objective.value_or(Objective())), 1, &world);
    ASSERT_TRUE(metrics.has_value());
    CheckConsistent(world.state());
    fmt::print("{}:", rule);
    for (const MetricRow& row : metrics->Rows()) fmt::print(" {} {:.5g}", row.name, row.value);
    fmt::print("\n");
    EXPECT_EQ(metrics->completed + metrics->never_bound, metrics->arrived);
  }
}

}  // namespace
}  // namespace rudderfish
