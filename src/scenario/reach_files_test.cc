// SPDX-License-Identifier: Apache-2.0
#include "scenario/reach_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kOurs = SourcePath("tests/data/reach-like");

Scenario Import(const std::vector<std::string>& patterns, const ReachImportOptions& options = {}) {
  Result<Scenario> scenario = ImportReach(kOurs, "6-17", patterns, options);
  if (!scenario) ADD_FAILURE() << scenario.error().message;
  CHECK(scenario.has_value());
  return *std::move(scenario);
}

double Gib(double gib) { return std::floor(gib * kBytesPerGib); }

TEST(ReachFiles, NodesAreNumberedInTheOrderOfTheFile) {
  const Scenario scenario = Import({"line"});
  EXPECT_THAT(scenario.names->nodes,
              ElementsAre("hub-6-1", "hub-6-2", "hub-3-1", "hub-3-2", "core-16-1", "booth-2-1"));
}

TEST(ReachFiles, LayersAreNumberedAsReachNumbersThem) {
  const Scenario scenario = Import({"line"});
  std::vector<std::string> layers;
  for (const Layer& layer : scenario.catalog->layers) layers.push_back(layer.name);
  EXPECT_THAT(layers, ElementsAre("cloud", "edge", "client"));
  EXPECT_TRUE(scenario.catalog->layers[1].accepts_moves);
  EXPECT_FALSE(scenario.catalog->layers[2].accepts_moves);
}

TEST(ReachFiles, TwoValuesAreARangeAndAnyOtherNumberAChoice) {
  const Scenario scenario = Import({"line"});
  const auto& groups = scenario.node_groups;
  EXPECT_EQ(groups[0].cpu_millis, Distribution::Uniform(2500, 5000));
  EXPECT_EQ(groups[0].memory_bytes, Distribution::Choice({Gib(4.5), Gib(9), Gib(11.25)}));
  EXPECT_EQ(groups[1].cpu_millis, Distribution::Choice({1000, 2000, 3000}));
  EXPECT_EQ(groups[1].memory_bytes,
            Distribution::Uniform(1500.0 * 1024 * 1024, Gib(6)));  // Sorted.
  EXPECT_EQ(groups[3].cpu_millis, Distribution::Constant(2000));
  EXPECT_EQ(groups[3].memory_bytes, Distribution::Constant(Gib(3.9)));
  EXPECT_EQ(groups[1].background, Distribution::Constant(0));
}

TEST(ReachFiles, LatencyRangesAreDirectionalAndSorted) {
  const Scenario scenario = Import({"line"});
  const auto latency = [&](LayerId from, LayerId to) { return scenario.latency_ms[from * 3 + to]; };
  EXPECT_EQ(latency(2, 0), Distribution::Uniform(40, 180));
  EXPECT_EQ(latency(1, 1), Distribution::Uniform(0.3, 0.7));
  EXPECT_EQ(latency(0, 0), Distribution::Constant(0.1));
}

TEST(ReachFiles, CapacityOfTheStaticClusterIsReadOnRequest) {
  const Scenario scenario = Import({"line"}, {.capacity = ReachCapacity::kFull});
  EXPECT_EQ(scenario.node_groups[2].cpu_millis, Distribution::Constant(16'000));
  EXPECT_EQ(scenario.node_groups[0].background, Distribution::Uniform(0.05, 0.25));
  EXPECT_EQ(scenario.node_groups[1].background, Distribution::Choice({0, 0.5, 0.95}));
  EXPECT_EQ(scenario.latency_ms[2 * 3 + 0], Distribution::Uniform(100, 1000));
}

TEST(ReachFiles, ServicesStandInTheOrderOfTheFileWithTheirLayersAndKinds) {
  const Scenario scenario = Import({"line"});
  std::vector<std::string> names;
  for (const Workload& workload : scenario.catalog->workloads) names.push_back(workload.name);
  EXPECT_THAT(names, ElementsAre("kiosk", "gate", "reader", "ledger", "fraud", "cache"));
  const auto& workloads = scenario.catalog->workloads;
  EXPECT_EQ(workloads[1].requests,
            (Resources{350, static_cast<int64_t>(std::ceil(0.4 * kBytesPerGib))}));
  EXPECT_EQ(workloads[4].requests.cpu_millis, 1000);
  EXPECT_FALSE(workloads[0].movable);  // A client.
  EXPECT_TRUE(workloads[1].movable);
  EXPECT_FALSE(workloads[3].movable);  // Persistent.
  EXPECT_TRUE(workloads[5].movable);   // A layer pins the start, not later moves.
  EXPECT_THAT(scenario.starts[0].initial_layers, ElementsAre(2));
  EXPECT_THAT(scenario.starts[1].initial_layers, ElementsAre(0, 1));
  EXPECT_THAT(scenario.starts[2].initial_layers, ElementsAre(0, 1));
  EXPECT_THAT(scenario.starts[3].initial_layers, ElementsAre(0));
  EXPECT_THAT(scenario.starts[5].initial_layers, ElementsAre(1));
  EXPECT_EQ(scenario.starts[2].replicas, Distribution::Uniform(1, 4));
  EXPECT_EQ(scenario.pod_limit(), 17);
}

TEST(ReachFiles, FullServicesAreFoundBesideTheConfigurations) {
  const Scenario scenario = Import({"line"}, {.services_file = "services_full.json"});
  EXPECT_EQ(scenario.catalog->workloads[1].requests.cpu_millis, 500);
}

TEST(ReachFiles, GroupsRunInParallelAndTheirKeysOneAfterAnother) {
  const Scenario scenario = Import({"fan"});
  const CallGraph& fan = *scenario.patterns[0];
  const Call& gate = fan.calls[1];
  ASSERT_EQ(gate.last_group - gate.first_group, 2);
  const CallGroup& first = fan.groups[gate.first_group];
  ASSERT_EQ(first.last - first.first, 2);
  EXPECT_EQ(scenario.catalog->workloads[fan.calls[fan.sequence[first.first]].workload].name,
            "reader");
  EXPECT_EQ(scenario.catalog->workloads[fan.calls[fan.sequence[first.first + 1]].workload].name,
            "cache");
  ASSERT_EQ(fan.endpoints.size(), 2u);
  EXPECT_EQ(fan.endpoints[0].rate_per_second, 25.5);
  EXPECT_EQ(fan.endpoints[1].qos_ms, 1000);
}

TEST(ReachFiles, DataIsHandedOnInTheUnitTheLawDivides) {
  const Scenario scenario = Import({"fan"});
  const CallGraph& fan = *scenario.patterns[0];
  EXPECT_EQ(fan.calls[1].data_mbytes, 0.2);
  EXPECT_EQ(fan.calls[2].data_mbytes, 0.4 * 1024);
  EXPECT_EQ(fan.calls[5].data_mbytes, 0);  // Absent.
}

TEST(ReachFiles, ExecutionTimesGoByTypeOfCpu) {
  const Scenario scenario = Import({"fan"});
  const CallGraph& fan = *scenario.patterns[0];
  EXPECT_EQ(fan.ExecutionMs(1, 0), 4.5);  // hub-6
  EXPECT_EQ(fan.ExecutionMs(1, 2), 3);    // core-16
  EXPECT_EQ(fan.ExecutionMs(4, 1), 70);   // 0.07s on hub-3
  EXPECT_EQ(fan.ExecutionMs(0, 0), 0);
}

TEST(ReachFiles, SeveralPatternsAreAMixtureOfEqualParts) {
  const Scenario scenario = Import({"line", "fan"});
  ASSERT_EQ(scenario.patterns.size(), 2u);
  EXPECT_EQ(scenario.patterns[1]->name, "fan");
  EXPECT_THAT(scenario.pattern_weights, ElementsAre(1, 1));
}

TEST(ReachFiles, ImportKeepsTheNameOfTheConfigurationAndTheTaskOfReach) {
  const Scenario scenario = Import({"line"}, {.name = "mine", .seed = 9});
  EXPECT_EQ(scenario.name, "mine");
  EXPECT_EQ(scenario.seed, 9u);
  EXPECT_EQ(scenario.config(), "6-17");
  EXPECT_EQ(scenario.law, "reach");
  EXPECT_EQ(Import({"line"}).name, "reach-6-17");
  EXPECT_THAT(ToYaml(scenario), HasSubstr("step_penalty: growing"));
}

TEST(ReachFiles, ImportedScenarioSurvivesWriting) {
  const std::string text = ToYaml(Import({"line", "fan"}, {.capacity = ReachCapacity::kFull}));
  const Result<Scenario> again = ParseScenario(text, "again.yaml");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(ToYaml(*again), text);
}

TEST(ReachFiles, OfReachGiveTheShippedContinuum) {
  const char* folder = std::getenv("RUDDERFISH_REACH_DATA");
  if (folder == nullptr)
    GTEST_SKIP() << "RUDDERFISH_REACH_DATA does not name a folder with REACH's configuration";
  const std::vector<std::string> patterns = {"chain", "aggregator_sequential",
                                             "aggregator_parallel"};
  for (const auto& [config, name] :
       {std::pair("7-21", "continuum-7x21"), std::pair("22-41", "continuum-22x41")}) {
    const auto imported = ImportReach(folder, config, patterns, {.name = name});
    ASSERT_TRUE(imported.has_value()) << imported.error().message;
    EXPECT_EQ(ToYaml(*imported), ToYaml(*testing::ShippedScenario(name)));
    EXPECT_TRUE(
        ImportReach(folder, config, patterns, {.capacity = ReachCapacity::kFull}).has_value());
    EXPECT_TRUE(
        ImportReach(folder, config, patterns, {.services_file = "services_full.json"}).has_value());
  }
}

TEST(ReachFiles, WhatIsNotThereIsNamedWithWhatIs) {
  const auto error = [](const std::filesystem::path& dir, std::string_view config,
                        const std::string& pattern, const ReachImportOptions& options = {}) {
    const auto scenario = ImportReach(dir, config, std::vector{pattern}, options);
    EXPECT_EQ(scenario.error().code, ErrorCode::kNotFound);
    std::string message = scenario ? "no error" : scenario.error().message;
    const size_t at = message.find(kOurs.string());
    return at == std::string::npos ? message : message.replace(at, kOurs.string().size(), "DIR");
  };
  EXPECT_EQ(error("/nowhere", "6-17", "line"), "/nowhere: there is no such folder");
  EXPECT_EQ(error(kOurs, "6-71", "line"),
            "DIR: there is no configuration \"6-71\"; did you mean `6-17`?");
  EXPECT_EQ(error(kOurs, "22-41", "line"),
            "DIR: there is no configuration \"22-41\"; there are 6-17");
  EXPECT_EQ(error(kOurs, "6-17", "lien"),
            "DIR: there is no call pattern \"lien\"; did you mean `line`?");
  EXPECT_EQ(error(kOurs, "6-17", "spiral"),
            "DIR: there is no call pattern \"spiral\"; there are fan, line");
  EXPECT_EQ(error(kOurs, "6-17", "line", {.services_file = "service.json"}),
            "DIR/6-17/service.json: there is no such file");
}

enum class Which { kNodes, kServices, kPattern };

struct BadFile {
  Which file;
  std::string_view what;  // In one of our files, its first occurrence
  std::string_view by;    // replaced by this,
  std::string_view message;
};

const BadFile kBadFiles[] = {
    {Which::kNodes, "\"400m\"", "\"400M\"",
     "nodes.json: node_type.core-16.bandwidth: expected whole Mbit/s above 0 with the unit m, such "
     "as \"500m\", found \"400M\""},
    {Which::kNodes, "\"400m\"", "\"40.5m\"",
     "nodes.json: node_type.core-16.bandwidth: expected whole Mbit/s above 0 with the unit m, such "
     "as \"500m\", found \"40.5m\""},
    {Which::kNodes, "\"400m\"", "\"0m\"",
     "nodes.json: node_type.core-16.bandwidth: expected whole Mbit/s above 0 with the unit m, such "
     "as \"500m\", found \"0m\""},
    {Which::kNodes, "\"400m\"", "400",
     "nodes.json: node_type.core-16.bandwidth: expected whole Mbit/s above 0 with the unit m, such "
     "as \"500m\", found 400"},
    {Which::kNodes, "\"cpu_type\": 4", "\"cpu_typ\": 4",
     "nodes.json: node_type.core-16: unknown key \"cpu_typ\"; did you mean `cpu_type`?"},
    {Which::kNodes, "\"cpu_type\": 4, ", "",
     "nodes.json: node_type.core-16: missing key \"cpu_type\""},
    {Which::kNodes, "\"latency\": {", "\"latncy\": {",
     "nodes.json: unknown key \"latncy\"; did you mean `latency`?"},
    {Which::kNodes, "[\"180ms\", \"40ms\"]", "[\"180ms\"]",
     "nodes.json: latency.client.cloud: expected a range such as [\"50ms\", \"500ms\"]"},
    {Which::kNodes, "[\"180ms\", \"40ms\"]", "[\"180\", \"40ms\"]",
     "nodes.json: latency.client.cloud[0]: expected a time such as \"46ms\" or \"2s\", found "
     "\"180\""},
    {Which::kNodes, "[\"180ms\", \"40ms\"]", "[\"180us\", \"40ms\"]",
     "nodes.json: latency.client.cloud[0]: expected a time such as \"46ms\" or \"2s\", found "
     "\"180us\""},
    {Which::kNodes, "\"client\": [\"2ms\", \"9ms\"],", "",
     "nodes.json: latency.edge: missing key \"client\""},
    {Which::kNodes, "\"hub-6\": {\n", "\"hub-5\": {\n",
     "nodes.json: cluster_setup.edge.hub-5: no node_type is called \"hub-5\"; did you mean "
     "`hub-3`?"},
    {Which::kNodes, "\"core-16\": {\n", "\"hub-3\": {\n",
     "nodes.json: cluster_setup.cloud.hub-3: the type stands in another layer too, and two nodes "
     "would be called hub-3-1"},
    {Which::kNodes, "\"count\": 2", "\"count\": -2",
     "nodes.json: cluster_setup.edge.hub-6.count: expected an integer from 0 to 100000, found -2"},
    {Which::kNodes, "\"count\": 2", "\"count\": \"2\"",
     "nodes.json: cluster_setup.edge.hub-6.count: expected an integer from 0 to 100000, found "
     "\"2\""},
    {Which::kNodes, "\"count\": 2", "\"count\": 1000000",
     "nodes.json: cluster_setup.edge.hub-6.count: expected an integer from 0 to 100000, found "
     "1000000"},
    {Which::kNodes, "\"2500m\", \"5\"", "\"2500.5m\", \"5\"",
     "nodes.json: cluster_setup.edge.hub-6.cpu_availability[0]: expected whole cores such as \"2\" "
     "or whole milli-cores such as \"700m\", found \"2500.5m\""},
    {Which::kNodes, "\"2500m\", \"5\"", "\"2.5\", \"5\"",
     "nodes.json: cluster_setup.edge.hub-6.cpu_availability[0]: expected whole cores such as \"2\" "
     "or whole milli-cores such as \"700m\", found \"2.5\""},
    {Which::kNodes, "\"2500m\", \"5\"", "2500, 5000",
     "nodes.json: cluster_setup.edge.hub-6.cpu_availability[0]: expected whole cores such as \"2\" "
     "or whole milli-cores such as \"700m\", found 2500"},
    {Which::kNodes, "\"2500m\", \"5\"", "",
     "nodes.json: cluster_setup.edge.hub-6.cpu_availability: expected at least one value, found an "
     "empty list"},
    {Which::kNodes, "\"4.5G\"", "\"4.5Gi\"",
     "nodes.json: cluster_setup.edge.hub-6.memory_availability[0]: expected a number with M or G, "
     "powers of 1024, such as \"700M\" or \"27.68G\" (any other unit is 0 to REACH), found "
     "\"4.5Gi\""},
    {Which::kNodes, "\"4.5G\"", "\"4.5\"",
     "nodes.json: cluster_setup.edge.hub-6.memory_availability[0]: expected a number with M or G, "
     "powers of 1024, such as \"700M\" or \"27.68G\" (any other unit is 0 to REACH), found "
     "\"4.5\""},
    {Which::kNodes, "\"4.5G\"", "\"4500K\"",
     "nodes.json: cluster_setup.edge.hub-6.memory_availability[0]: expected a number with M or G, "
     "powers of 1024, such as \"700M\" or \"27.68G\" (any other unit is 0 to REACH), found "
     "\"4500K\""},
    {Which::kNodes, "\"4.5G\"", "\"-4.5G\"",
     "nodes.json: cluster_setup.edge.hub-6.memory_availability[0]: expected a number with M or G, "
     "powers of 1024, such as \"700M\" or \"27.68G\" (any other unit is 0 to REACH), found "
     "\"-4.5G\""},
    {Which::kNodes, "\"bandwidth_utilization\": [\"0\"]", "\"bandwidth_utilization\": [\"30\"]",
     "nodes.json: cluster_setup.edge.hub-6.bandwidth_utilization[0]: expected a fraction from "
     "\"0\" to \"1\", found \"30\""},
    {Which::kNodes, "\"edge\": {\n            \"hub-6\"", "\"egde\": {\n            \"hub-6\"",
     "nodes.json: cluster_setup.egde: no layer is called \"egde\"; did you mean `edge`?"},
    {Which::kNodes, "{\n    \"node_type\"", "",
     "nodes.json:1:1: syntax error while parsing value - unexpected ':'; expected '[', '{', or a "
     "literal"},
    {Which::kServices, "\"300M\"", "\"300Mi\"",
     "services.json: kiosk.memory-requests: expected a number with M or G, powers of 1024, such as "
     "\"700M\" or \"27.68G\" (any other unit is 0 to REACH), found \"300Mi\""},
    {Which::kServices, "\"400m\"", "\"0.4\"",
     "services.json: kiosk.cpu-requests: expected whole cores such as \"2\" or whole milli-cores "
     "such as \"700m\", found \"0.4\""},
    {Which::kServices, "\"max-replica\": 2", "\"max-replica\": 0",
     "services.json: kiosk.max-replica: expected an integer from 1 to 65535, found 0"},
    {Which::kServices, "\"max-replica\": 2", "\"max-replicas\": 2",
     "services.json: kiosk: unknown key \"max-replicas\"; did you mean `max-replica`?"},
    {Which::kServices, "\"persistent\"", "\"persistant\"",
     "services.json: ledger.type: expected service or persistent, found \"persistant\""},
    {Which::kServices, "\"layer\": \"edge\"", "\"layer\": \"fog\"",
     "services.json: cache.layer: expected a layer of cluster_setup (or all, for cloud and edge), "
     "found \"fog\""},
    {Which::kServices, "\"350m\"", "\"99\"",
     "services.json: gate: a pod of gate requests 99 cores and 410 MiB, which no node of its "
     "layers (cloud, edge) can hold; the most there is on one is 15 cores and 44 GiB"},
    {Which::kServices, "\"gate\"", "\"kiosk\"",
     "services.json:9:5: the key \"kiosk\" is given twice"},
    {Which::kPattern, "\"client\": \"kiosk\"", "\"client\": \"kisok\"",
     "line_call_patterns.json: checkout.client: no service is called \"kisok\"; did you mean "
     "`kiosk`?"},
    {Which::kPattern, "\"reader\": {", "\"raeder\": {",
     "line_call_patterns.json: checkout.call-path[0].gate.call-path[0].raeder: no service is "
     "called \"raeder\"; did you mean `reader`?"},
    {Which::kPattern, "\"reader\": {", "\"gate\": {",
     "line_call_patterns.json: checkout.call-path[0].gate.call-path[0].gate: the calls go round in "
     "a circle: gate calls itself"},
    {Which::kPattern, "\"ledger\": {", "\"gate\": {",
     "line_call_patterns.json: checkout.call-path[0].gate.call-path[0].reader.call-path[0].gate: "
     "the calls go round in a circle: gate calls itself"},
    {Which::kPattern, "\"0.2M\"", "\"0.2Mi\"",
     "line_call_patterns.json: checkout.call-path[0].gate.data-size: expected a number with M or "
     "G, powers of 1024, such as \"700M\" or \"27.68G\" (any other unit is 0 to REACH), found "
     "\"0.2Mi\""},
    {Which::kPattern, "\"0.2M\"", "0.2",
     "line_call_patterns.json: checkout.call-path[0].gate.data-size: expected a number with M or "
     "G, powers of 1024, such as \"700M\" or \"27.68G\" (any other unit is 0 to REACH), found 0.2"},
    {Which::kPattern, "\"3ms\"", "\"3\"",
     "line_call_patterns.json: checkout.call-path[0].gate.execution-time.4: expected a time above "
     "0 such as \"46ms\" or \"2s\", found \"3\""},
    {Which::kPattern, "\"3ms\"", "\"0ms\"",
     "line_call_patterns.json: checkout.call-path[0].gate.execution-time.4: expected a time above "
     "0 such as \"46ms\" or \"2s\", found \"0ms\""},
    {Which::kPattern, "{\"4\": \"3ms\", ", "{",
     "line_call_patterns.json: checkout.call-path[0].gate.execution-time: missing key \"4\", the "
     "cpu_type of core-16"},
    {Which::kPattern, "\"execution-time\"", "\"execution-tme\"",
     "line_call_patterns.json: checkout.call-path[0].gate: unknown key \"execution-tme\"; did you "
     "mean `execution-time`?"},
    {Which::kPattern, "\"rps\": 4", "\"rps\": \"4\"",
     "line_call_patterns.json: checkout.rps: expected a number from 0 to 1000000000, found \"4\""},
    {Which::kPattern, "\"qos\": \"150ms\"", "\"slo\": \"150ms\"",
     "line_call_patterns.json: checkout: unknown key \"slo\""},
    {Which::kPattern, ",\n        \"qos\": \"150ms\"", "",
     "line_call_patterns.json: checkout: missing key \"qos\""},
};

ReachTexts OurTexts() {
  return {.nodes = {"nodes.json", *ReadFile(kOurs / "6-17/nodes.json")},
          .services = {"services.json", *ReadFile(kOurs / "6-17/services.json")},
          .patterns = {
              {"line", {"line_call_patterns.json", *ReadFile(kOurs / "line_call_patterns.json")}}}};
}

TEST(ReachFiles, WhatReachReadsWronglyOrNotAtAllIsRefusedByName) {
  for (const BadFile& bad : kBadFiles) {
    ReachTexts texts = OurTexts();
    std::string& text = bad.file == Which::kNodes      ? texts.nodes.text
                        : bad.file == Which::kServices ? texts.services.text
                                                       : texts.patterns[0].second.text;
    const size_t at = text.find(bad.what);
    ASSERT_NE(at, std::string::npos) << bad.what;
    text.replace(at, bad.what.size(), bad.by);
    const auto scenario = ParseReach(texts, "6-17");
    ASSERT_FALSE(scenario.has_value()) << bad.by;
    EXPECT_EQ(scenario.error().message, bad.message) << bad.by;
  }
}

TEST(ReachFiles, EmptyAndCutOffFilesAreRefusedWithTheirName) {
  ReachTexts texts = OurTexts();
  const std::string whole = texts.services.text;
  for (size_t length = 0; length + 1 < whole.find_last_of('}'); length += 7) {
    texts.services.text = whole.substr(0, length);
    const auto scenario = ParseReach(texts, "6-17");
    ASSERT_FALSE(scenario.has_value()) << length;
    EXPECT_TRUE(scenario.error().message.starts_with("services.json:")) << scenario.error().message;
  }
}

TEST(ReachFiles, AtLeastOnePatternIsNeededAndEachOnce) {
  ReachTexts texts = OurTexts();
  texts.patterns.push_back(texts.patterns[0]);
  EXPECT_EQ(ParseReach(texts, "6-17").error().message, "the pattern \"line\" is given twice");
  texts.patterns.clear();
  EXPECT_EQ(ParseReach(texts, "6-17").error().message,
            "no pattern of calls is named; import at least one");
}

}  // namespace
}  // namespace rudderfish
