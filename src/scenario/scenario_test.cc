// SPDX-License-Identifier: Apache-2.0
#include "scenario/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <filesystem>
#include <span>

#include "base/yaml_change.h"
#include "scenario/call_tree.h"
#include "scenario/pattern_parser.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/source_path.h"
#include "tests/support/tiny_scenario.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using testing::TinyScenario;
using testing::TinyScenarioWith;

void ExpectSameCalls(const CallGraph& a, const CallGraph& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.kind_count, b.kind_count);
  EXPECT_EQ(a.execution_ms, b.execution_ms);
  EXPECT_EQ(a.sequence, b.sequence);
  ASSERT_EQ(a.calls.size(), b.calls.size());
  for (size_t i = 0; i < a.calls.size(); ++i) {
    EXPECT_EQ(a.calls[i].workload, b.calls[i].workload);
    EXPECT_EQ(a.calls[i].caller, b.calls[i].caller);
    EXPECT_EQ(a.calls[i].data_mbytes, b.calls[i].data_mbytes);
    EXPECT_EQ(a.calls[i].first_group, b.calls[i].first_group);
    EXPECT_EQ(a.calls[i].last_group, b.calls[i].last_group);
  }
  ASSERT_EQ(a.groups.size(), b.groups.size());
  for (size_t i = 0; i < a.groups.size(); ++i) {
    EXPECT_EQ(a.groups[i].first, b.groups[i].first);
    EXPECT_EQ(a.groups[i].last, b.groups[i].last);
  }
  ASSERT_EQ(a.endpoints.size(), b.endpoints.size());
  for (size_t i = 0; i < a.endpoints.size(); ++i) {
    EXPECT_EQ(a.endpoints[i].name, b.endpoints[i].name);
    EXPECT_EQ(a.endpoints[i].root, b.endpoints[i].root);
    EXPECT_EQ(a.endpoints[i].end, b.endpoints[i].end);
    EXPECT_EQ(a.endpoints[i].rate_per_second, b.endpoints[i].rate_per_second);
    EXPECT_EQ(a.endpoints[i].qos_ms, b.endpoints[i].qos_ms);
  }
}

void ExpectSameCatalog(const Catalog& a, const Catalog& b) {
  ASSERT_EQ(a.layer_count(), b.layer_count());
  for (int i = 0; i < a.layer_count(); ++i) {
    EXPECT_EQ(a.layers[i].name, b.layers[i].name);
    EXPECT_EQ(a.layers[i].accepts_moves, b.layers[i].accepts_moves);
  }
  ASSERT_EQ(a.kind_count(), b.kind_count());
  for (int i = 0; i < a.kind_count(); ++i) {
    EXPECT_EQ(a.kinds[i].name, b.kinds[i].name);
    EXPECT_EQ(a.kinds[i].layer, b.kinds[i].layer);
    EXPECT_EQ(a.kinds[i].cpu_type, b.kinds[i].cpu_type);
    EXPECT_EQ(a.kinds[i].bandwidth_mbytes_per_s, b.kinds[i].bandwidth_mbytes_per_s);
  }
  ASSERT_EQ(a.workload_count(), b.workload_count());
  for (int i = 0; i < a.workload_count(); ++i) {
    EXPECT_EQ(a.workloads[i].name, b.workloads[i].name);
    EXPECT_EQ(a.workloads[i].requests, b.workloads[i].requests);
    EXPECT_EQ(a.workloads[i].replicas_max, b.workloads[i].replicas_max);
    EXPECT_EQ(a.workloads[i].movable, b.workloads[i].movable);
  }
}

void ExpectSame(const Scenario& a, const Scenario& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.law, b.law);
  EXPECT_EQ(a.source_config, b.source_config);
  EXPECT_EQ(a.names->nodes, b.names->nodes);
  EXPECT_EQ(a.node_groups, b.node_groups);
  EXPECT_EQ(a.starts, b.starts);
  EXPECT_EQ(a.latency_ms, b.latency_ms);
  EXPECT_EQ(a.pattern_weights, b.pattern_weights);
  EXPECT_EQ(a.retry_limit, b.retry_limit);
  ExpectSameCatalog(*a.catalog, *b.catalog);
  ASSERT_EQ(a.patterns.size(), b.patterns.size());
  for (size_t i = 0; i < a.patterns.size(); ++i) ExpectSameCalls(*a.patterns[i], *b.patterns[i]);
}

// What a scenario says, written and read again.
Scenario Reread(const Scenario& scenario) {
  const std::string text = ToYaml(scenario);
  Result<Scenario> again = ParseScenario(text, "again.yaml");
  CHECK(again.has_value());
  EXPECT_EQ(ToYaml(*again), text);
  return *std::move(again);
}

TEST(Scenario, HoldsWhatTheFileSays) {
  const auto tiny = TinyScenario();
  EXPECT_EQ(tiny->name, "tiny");
  EXPECT_EQ(tiny->config(), "tiny");
  EXPECT_EQ(tiny->seed, 7u);
  EXPECT_EQ(tiny->law, "reach");
  EXPECT_EQ(tiny->retry_limit, 50);
  EXPECT_FALSE(tiny->catalog->layers[2].accepts_moves);
  EXPECT_THAT(tiny->names->nodes,
              ElementsAre("big-1", "big-2", "small-1", "small-2", "small-3", "booth-1"));
  EXPECT_THAT(tiny->KindsOfNodes(), ElementsAre(0, 0, 1, 1, 1, 2));
  EXPECT_EQ(tiny->pod_limit(), 1 + 4 + 3 + 1);
  EXPECT_EQ(tiny->latency_ms[0 * 3 + 1], Distribution::Uniform(20, 80));
  EXPECT_EQ(tiny->latency_ms[0 * 3 + 2], Distribution::Choice({10, 30, 90}));
  EXPECT_EQ(tiny->latency_ms[2 * 3 + 0], Distribution::Constant(40));
  EXPECT_EQ(tiny->node_groups[0].cpu_millis, Distribution::Choice({4000, 8000}));
  EXPECT_EQ(tiny->node_groups[1].cpu_millis, Distribution::Uniform(1000, 2500));
  EXPECT_EQ(tiny->node_groups[1].background, Distribution::Uniform(0, 0.5));
  EXPECT_EQ(tiny->pattern_weights, (std::vector<double>{3, 1}));
}

TEST(Scenario, BandwidthAndPayloadAreInMegabytes) {
  const auto tiny = TinyScenario();
  EXPECT_EQ(tiny->catalog->kinds[0].bandwidth_mbytes_per_s, 62.5);
  EXPECT_EQ(tiny->catalog->kinds[2].bandwidth_mbytes_per_s, 62.5);
  EXPECT_EQ(tiny->patterns[0]->calls[1].data_mbytes, 0.02);
}

TEST(Scenario, AllocatableIsRoundedDownAndRequestsUp) {
  const std::string text =
      TinyScenarioWith("cpu: 0.25, memory: 200M", "cpu: 0.2501, memory: 0.3Ki");
  const Result<Scenario> scenario = ParseScenario(text, "tiny.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ(scenario->catalog->workloads[2].requests, (Resources{251, 308}));
  EXPECT_EQ(scenario->node_groups[1].memory_bytes.max(), std::floor(1.3 * kBytesPerGib));
}

TEST(Scenario, WorkloadsStartWhereMovesGoUnlessTheySayOtherwise) {
  const auto tiny = TinyScenario();
  EXPECT_THAT(tiny->starts[0].initial_layers, ElementsAre(2));
  EXPECT_THAT(tiny->starts[1].initial_layers, ElementsAre(0, 1));
  EXPECT_THAT(tiny->starts[2].initial_layers, ElementsAre(0, 1));
  EXPECT_THAT(tiny->starts[3].initial_layers, ElementsAre(0));
}

TEST(Scenario, CallsStandInPreorderWithTheirGroupsSideBySide) {
  const auto tiny = TinyScenario();
  const CallGraph& browse = *tiny->patterns[0];
  ASSERT_EQ(browse.call_count(), 5 + 3);
  std::vector<WorkloadId> workloads;
  std::vector<CallId> callers;
  for (const Call& call : browse.calls) {
    workloads.push_back(call.workload);
    callers.push_back(call.caller);
  }
  EXPECT_THAT(workloads, ElementsAre(0, 1, 2, 3, 2, 0, 1, 2));
  EXPECT_THAT(callers, ElementsAre(kNone, 0, 1, 1, 1, kNone, 5, 5));
  const Call& shop = browse.calls[1];
  ASSERT_EQ(shop.last_group - shop.first_group, 2);
  const CallGroup alone = browse.groups[shop.first_group],
                  two = browse.groups[shop.first_group + 1];
  EXPECT_THAT(std::vector<CallId>(browse.sequence.begin() + alone.first,
                                  browse.sequence.begin() + alone.last),
              ElementsAre(2));
  EXPECT_THAT(
      std::vector<CallId>(browse.sequence.begin() + two.first, browse.sequence.begin() + two.last),
      ElementsAre(3, 4));
  EXPECT_EQ(browse.endpoints[0].end, 5);
  EXPECT_EQ(browse.endpoints[1].root, 5);
  EXPECT_EQ(browse.endpoints[1].qos_ms, 200);
}

TEST(Scenario, CallsTakeTheExecutionTimesOfTheirWorkloadUnlessTheyHaveTheirOwn) {
  const auto tiny = TinyScenario();
  const CallGraph& browse = *tiny->patterns[0];
  EXPECT_EQ(browse.ExecutionMs(0, 0), 0);  // The client's own call.
  EXPECT_EQ(browse.ExecutionMs(1, 0), 4);
  EXPECT_EQ(browse.ExecutionMs(1, 1), 9);
  EXPECT_EQ(browse.ExecutionMs(2, 0), 3);
  EXPECT_EQ(browse.ExecutionMs(2, 1), 3);
  EXPECT_EQ(browse.ExecutionMs(4, 1), 1.5);
}

TEST(Scenario, ExecutionTimeIsNotNeededWhereAWorkloadCannotRun) {
  const auto tiny = TinyScenario();
  const Catalog& catalog = *tiny->catalog;
  EXPECT_TRUE(CanRunOn(catalog, 1, tiny->starts[1], 0));
  EXPECT_FALSE(CanRunOn(catalog, 1, tiny->starts[1], 2));  // No moves to the outside.
  EXPECT_TRUE(CanRunOn(catalog, 3, tiny->starts[3], 0));
  EXPECT_FALSE(CanRunOn(catalog, 3, tiny->starts[3], 1));  // Does not leave the cloud.
  EXPECT_EQ(tiny->patterns[0]->ExecutionMs(1, 2), 0);
}

TEST(Scenario, TaskIsKeptUnreadWithItsPlace) {
  const auto tiny = TinyScenario();
  EXPECT_EQ(tiny->task.Location(), "tiny.yaml:60:7");
  Result<YamlMap> task = tiny->task.AsMap();
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(*task->RequiredInt("max_steps", 1, 100), 20);
}

TEST(Scenario, WithoutTaskHasANullOne) {
  const Result<Scenario> scenario =
      ParseScenario(TinyScenarioWith("task: {kind: migration, max_steps: 20}\n", ""), "tiny.yaml");
  ASSERT_TRUE(scenario.has_value());
  EXPECT_TRUE(scenario->task.IsNull());
  ExpectSame(Reread(*scenario), *scenario);
}

TEST(Scenario, WrittenAndReadAgainIsTheSame) {
  const auto tiny = TinyScenario();
  const Scenario again = Reread(*tiny);
  ExpectSame(again, *tiny);
  EXPECT_EQ(*(*again.task.AsMap()).RequiredInt("max_steps", 1, 100), 20);
}

TEST(Scenario, EveryShippedFileLoadsAndSurvivesWriting) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(SourcePath("scenarios"))) {
    if (file.path().extension() != ".yaml") continue;
    const Result<Scenario> scenario = LoadScenario(file.path());
    ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
    EXPECT_EQ(scenario->name, file.path().stem());
    ExpectSame(Reread(*scenario), *scenario);
    ++files;
  }
  EXPECT_GE(files, 5);
}

TEST(Scenario, ShippedSizesAreWhatTheirNamesSay) {
  for (const auto& [name, nodes, pods] :
       {std::tuple("continuum-7x21", 7, 21), std::tuple("continuum-12x28", 12, 28),
        std::tuple("continuum-22x41", 22, 41), std::tuple("continuum-20x150", 20, 150),
        std::tuple("continuum-40x350", 40, 350), std::tuple("continuum-100x1000", 100, 1000),
        std::tuple("continuum-1000x10000", 1000, 10000)}) {
    const auto scenario = testing::ShippedScenario(name);
    EXPECT_EQ(scenario->node_count(), nodes) << name;
    EXPECT_EQ(scenario->pod_limit(), pods) << name;
  }
}

TEST(Scenario, PatternIsFoundByName) {
  const auto scenario = testing::ShippedScenario("continuum-7x21");
  EXPECT_EQ(scenario->PatternNamed("aggregator_parallel"), 2);
  EXPECT_EQ(scenario->PatternNamed("aggregator"), kNone);
}

TEST(Scenario, StartStatesCallItByItsSource) {
  EXPECT_EQ(testing::ShippedScenario("continuum-22x41")->config(), "22-41");
  EXPECT_EQ(testing::ShippedScenario("continuum-12x28")->config(), "continuum-12x28");
}

TEST(Scenario, MissingFileIsNamed) {
  const Result<Scenario> scenario = LoadScenario("/nowhere/at/all.yaml");
  ASSERT_FALSE(scenario.has_value());
  EXPECT_EQ(scenario.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(scenario.error().message, ::testing::HasSubstr("/nowhere/at/all.yaml"));
}

// What LoadScenario says of a file of the checkout with one value changed.
std::string RefusalAfter(const char* file, const YamlChange& change) {
  const Result<Scenario> scenario = LoadScenario(SourcePath(file), std::span(&change, 1));
  return scenario ? "loaded" : scenario.error().message;
}

TEST(Scenario, MissingTracesAreNamedWhereItNamesThem) {
  EXPECT_THAT(
      RefusalAfter("tests/data/openb-like/replay.yaml", {"arrivals.trace.pods", "gone.csv"}),
      ::testing::MatchesRegex(".*/replay[.]yaml:14:32: `arrivals[.]trace[.]pods`: there is "
                              "no file .*/openb-like/gone[.]csv"));
  EXPECT_THAT(
      RefusalAfter("tests/data/openb-like/replay.yaml", {"arrivals.trace.nodes", "gone.csv"}),
      ::testing::HasSubstr("`arrivals.trace.nodes`: there is no file"));
  EXPECT_THAT(
      RefusalAfter("scenarios/online-boutique.yaml", {"load.loads.replay.replay.file", "gone.csv"}),
      ::testing::HasSubstr("`load.loads.replay.replay.file`: there is no file"));
}

TEST(Scenario, MemoryIsWrittenAsPeopleWriteIt) {
  const std::string text = ToYaml(*testing::ShippedScenario("continuum-7x21"));
  EXPECT_THAT(text, ::testing::HasSubstr("memory: [2Gi, 16Gi, 27.68Gi]"));
  EXPECT_THAT(text, ::testing::HasSubstr("requests: {cpu: 1500m, memory: 1500Mi}"));
}

CallTree RandomTree(int depth, int workloads, int kinds) {
  CallTree tree;
  tree.workload = *rc::gen::inRange(0, workloads);
  tree.data_mbytes = *rc::gen::inRange(0, 1'000'000) / 997.0;
  for (int kind = 0; kind < kinds; ++kind)
    tree.execution_ms.push_back(*rc::gen::inRange(1, 100'000) / 311.0);
  const int groups = depth == 0 ? 0 : *rc::gen::inRange(0, 3);
  for (int g = 0; g < groups; ++g) {
    tree.groups.emplace_back();
    for (int i = *rc::gen::inRange(1, 3); i > 0; --i) {
      tree.groups.back().push_back(RandomTree(depth - 1, workloads, kinds));
      // No workload calls itself, not through others either: each level has its own workloads.
      tree.groups.back().back().workload = depth * 2 + i - 1;
    }
  }
  return tree;
}

// Values that no one would type still come back to the bit.
RC_GTEST_PROP(ScenarioProperty, WrittenAndReadAgainIsTheSame, ()) {
  Scenario scenario = *TinyScenario();
  auto catalog = std::make_shared<Catalog>(*scenario.catalog);
  const int tiers = 8;
  catalog->workloads.assign(tiers, catalog->workloads[1]);
  scenario.starts.assign(tiers, scenario.starts[1]);
  for (int w = 0; w < tiers; ++w) {
    catalog->workloads[w].name = fmt::format("tier {}: #{}", w / 2, w);
    catalog->workloads[w].requests = {*rc::gen::inRange(0, 1000), *rc::gen::inRange(0, 1 << 30)};
  }
  for (NodeKind& kind : catalog->kinds)
    kind.bandwidth_mbytes_per_s = *rc::gen::inRange(1, 1 << 20) / 977.0;
  scenario.catalog = catalog;
  for (Distribution& latency : scenario.latency_ms) {
    const double low = *rc::gen::inRange(0, 1000) / 7.0;
    latency = Distribution::Uniform(low, low + *rc::gen::inRange(0, 1000) / 13.0);
  }
  scenario.node_groups[0].memory_bytes = Distribution::Choice(
      {static_cast<double>(*rc::gen::inRange(int64_t{1} << 32, int64_t{1} << 45)), 1e10});
  EndpointTree endpoint{.name = "an endpoint",
                        .rate_per_second = *rc::gen::inRange(0, 999) / 3.0,
                        .qos_ms = 1e-3,
                        .root = RandomTree(3, 2, 3)};
  endpoint.root.data_mbytes = 0;  // A client sends what its callees get.
  endpoint.root.execution_ms.assign(3, 0);
  scenario.patterns = {BuildCallGraph("one: of # many", 3, {endpoint})};
  scenario.pattern_weights = {1};
  scenario.task = YamlNode();
  ExpectSame(Reread(scenario), scenario);
}

}  // namespace
}  // namespace rudderfish
