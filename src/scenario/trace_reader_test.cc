// SPDX-License-Identifier: Apache-2.0
#include "scenario/trace_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::string_view kScenario = R"(rudderfish: scenario/v1
name: replay
layers: {all: {}}
latency: {all: {all: 1ms}}
node_types:
  cpu: {layer: all, cpu_type: any, bandwidth: 1Gbit}
  T4: {layer: all, cpu_type: any, bandwidth: 1Gbit}
  G2: {layer: all, cpu_type: any, bandwidth: 1Gbit}
arrivals:
  trace: {format: openb, pods: pods.csv, nodes: nodes.csv, time_warp: 10}
)";

constexpr std::string_view kHeadings =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n";

Scenario Bare() {
  Result<Scenario> scenario = ParseScenario(kScenario, "replay.yaml");
  CHECK(scenario.has_value());
  return *std::move(scenario);
}

std::string PodRefusal(std::string_view rows) {
  Scenario scenario = Bare();
  const Result<void> read =
      ReadOpenbPods(fmt::format("{}{}", kHeadings, rows), "pods.csv", &scenario);
  return read ? "" : read.error().message;
}

std::string NodeRefusal(std::string_view text) {
  Scenario scenario = Bare();
  const Result<void> read = ReadOpenbNodes(text, "nodes.csv", &scenario);
  return read ? "" : read.error().message;
}

TEST(TraceReader, PodsOfEqualRequestsAreOneWorkload) {
  Scenario scenario = Bare();
  ASSERT_TRUE(ReadOpenbPods(fmt::format("{}{}", kHeadings,
                                        "a,6000,1024,1,460,,LS,Running,100,1000,200\n"
                                        "b,500,512,0,0,,BE,Pending,150,250,\n"
                                        "c,6000,1024,1,460,,LS,Running,150,150,150\n"
                                        "d,8000,1024,2,1000,T4|G2,LS,Running,300,400,300\n"),
                            "pods.csv", &scenario)
                  .has_value());
  const auto& workloads = scenario.catalog->workloads;
  ASSERT_EQ(workloads.size(), 3U);
  EXPECT_EQ(workloads[0].name, "6000m-1024Mi-1x460");
  EXPECT_EQ(workloads[0].devices, (DeviceRequest{1, 460}));
  EXPECT_EQ(workloads[0].node_kinds, kAnyKind);
  EXPECT_EQ(workloads[1].name, "500m-512Mi");
  EXPECT_EQ(workloads[1].requests, (Resources{500, 512 << 20}));
  EXPECT_EQ(workloads[2].name, "8000m-1024Mi-2x1000-T4-G2");
  EXPECT_EQ(workloads[2].node_kinds, 0b110U);
  // From the first pod on, ten times faster; lifetimes from when it was scheduled, if it was.
  EXPECT_EQ(*scenario.arrivals->trace_pods,
            (std::vector<TracePod>{{0s, 80s, 0}, {5s, 10s, 1}, {5s, 0s, 0}, {20s, 10s, 2}}));
}

TEST(TraceReader, SortsPodsByWhenTheyCome) {
  Scenario scenario = Bare();
  const std::string rows = "a,1,1,0,0,,,,50,60,50\nb,1,1,0,0,,,,40,60,40\n";
  ASSERT_TRUE(
      ReadOpenbPods(fmt::format("{}{}", kHeadings, rows), "pods.csv", &scenario).has_value());
  ASSERT_EQ(scenario.arrivals->trace_pods->size(), 2u);
  EXPECT_EQ((*scenario.arrivals->trace_pods)[0].at, 0s);
  EXPECT_EQ((*scenario.arrivals->trace_pods)[1].at, 1s) << "10 s later, ten times faster";
}

TEST(TraceReader, LifetimesMayBeWarpedOtherwiseThanArrivals) {
  Scenario scenario = Bare();
  auto arrivals = std::make_shared<Arrivals>(*scenario.arrivals);
  EXPECT_EQ(arrivals->trace.lifetime_warp, 10);  // As time_warp, which alone is given.
  arrivals->trace.lifetime_warp = 0.5;
  scenario.arrivals = arrivals;
  const std::string rows = "a,1,1,0,0,,,,0,30,0\nb,1,1,0,0,,,,20,30,20\n";
  ASSERT_TRUE(
      ReadOpenbPods(fmt::format("{}{}", kHeadings, rows), "pods.csv", &scenario).has_value());
  EXPECT_EQ(scenario.arrivals->trace_pods->back(), (TracePod{2s, 20s, 0}));
}

TEST(TraceReader, NodesAreOfTheTypeOfTheirModel) {
  Scenario scenario = Bare();
  ASSERT_TRUE(ReadOpenbNodes("sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,1024,0,\n"
                             "n-1,96000,2048,8,G2\n",
                             "nodes.csv", &scenario)
                  .has_value());
  EXPECT_EQ(scenario.names->nodes, (std::vector<std::string>{"n-0", "n-1"}));
  EXPECT_EQ(scenario.KindsOfNodes(), (std::vector<KindId>{0, 2}));
  EXPECT_EQ(scenario.node_groups[1].devices, 8);
  EXPECT_EQ(scenario.node_groups[1].memory_bytes.min(), 2048.0 * 1024 * 1024);
}

TEST(TraceReader, RefusesPodsThatCannotBe) {
  EXPECT_THAT(PodRefusal("a,-1,1,0,0,,,,0,1,\n"), HasSubstr("pods.csv:2:3: `cpu_milli`"));
  EXPECT_THAT(PodRefusal("a,1,many,0,0,,,,0,1,\n"), HasSubstr("pods.csv:2:5: `memory_mib`"));
  EXPECT_THAT(PodRefusal("a,1,1,9,0,,,,0,1,\n"), HasSubstr("`num_gpu`: expected an integer from"));
  EXPECT_THAT(PodRefusal("a,1,1,0,5,,,,0,1,\n"), HasSubstr("`gpu_milli`: expected 0 of no GPU"));
  EXPECT_THAT(PodRefusal("a,1,1,1,0,,,,0,1,\n"), HasSubstr("`gpu_milli`: expected more than 0"));
  EXPECT_THAT(PodRefusal("a,1,1,2,500,,,,0,1,\n"), HasSubstr("`gpu_milli`: expected 1000"));
  EXPECT_THAT(PodRefusal("a,1,1,1,500,T5,,,0,1,\n"), HasSubstr("there are cpu, T4, G2"));
  EXPECT_THAT(PodRefusal(""), HasSubstr("expected at least one pod"));
}

TEST(TraceReader, RefusesTimesThatCannotBe) {
  EXPECT_THAT(PodRefusal("a,1,1,0,0,,,,50,40,\n"), HasSubstr("before it was created"));
  EXPECT_THAT(PodRefusal("a,1,1,0,0,,,,50,60,70\n"), HasSubstr("after it was deleted"));
  EXPECT_THAT(PodRefusal("a,1,1,0,0,,,,-5,60,\n"), HasSubstr("`creation_time`: expected"));
}

TEST(TraceReader, RefusesNodesThatCannotBe) {
  constexpr std::string_view kNodes = "sn,cpu_milli,memory_mib,gpu,model\n";
  const auto refusal = [&](std::string_view rows) {
    return NodeRefusal(fmt::format("{}{}", kNodes, rows));
  };
  EXPECT_THAT(refusal("n,1,1,0,G3\n"), HasSubstr("nodes.csv:2:9: `model`: no node type"));
  EXPECT_THAT(refusal("n,1,1,9,G2\n"), HasSubstr("`gpu`: expected an integer from 0 to 8"));
  EXPECT_THAT(refusal("n,1,1,0,\nn,1,1,0,\n"), HasSubstr("two nodes are called n"));
  EXPECT_THAT(NodeRefusal("sn,cpu,memory_mib,gpu,model\n"),
              HasSubstr("expected a column `cpu_milli`"));
}

TEST(TraceReader, ScenarioWithATraceReadsItsFilesBesideIt) {
  const std::filesystem::path data = SourcePath("tests/data/openb-like/replay.yaml");
  const Result<Scenario> scenario = LoadScenario(data);
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ(scenario->node_count(), 5);
  EXPECT_EQ(scenario->arrivals->trace_pods->size(), 12U);
  // What the trace brought is not written into the scenario.
  const Result<Scenario> again = ParseScenario(ToYaml(*scenario), "again.yaml");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->node_count(), 0);
  EXPECT_EQ(again->catalog->workload_count(), 0);
  EXPECT_EQ(again->arrivals->trace, scenario->arrivals->trace);
}

TEST(TraceReader, MissingFileIsNamed) {
  Scenario scenario = Bare();
  EXPECT_THAT(ReadTraces("/nowhere", &scenario).error().message, HasSubstr("/nowhere/nodes.csv"));
}

}  // namespace
}  // namespace rudderfish
