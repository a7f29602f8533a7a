// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "model/evaluator.h"
#include "scenario/scenario.h"
#include "tests/support/shipped_scenario.h"

// The law of latency of REACH (arXiv 2510.06675), against rows worked out with its published code:
// cases A to D on its smallest cluster, each with its three call patterns and two tables of
// latency. They are given to 1e-12 ms, and so exactly they are compared: bandwidth in use by others
// changes the eleventh decimal.

namespace rudderfish {
namespace {

using Placed = std::vector<std::pair<std::string, std::string>>;  // (workload, node)

// Cloud 0, edge 1, client 2. The second table is what REACH falls back to without one.
const std::vector<double> kTableLa = {6, 90, 80, 60, 3, 2, 70, 5, 4};
const std::vector<double> kTable50 = {1, 50, 50, 50, 1, 1, 50, 1, 1};

const Placed kAllOn(const std::string& node) {
  return {{"client", "tb-client-vm-2-1"},
          {"aggregator", node},
          {"detection", node},
          {"db", node},
          {"machine-learning", node}};
}

const Placed kCaseC = {{"client", "tb-client-vm-2-1"},
                       {"aggregator", "tb-edge-vm-2-1"},
                       {"detection", "tb-edge-vm-4-2"},
                       {"db", "tb-cloud-vm-8-2"},
                       {"machine-learning", "tb-cloud-vm-8-1"}};

const Placed kCaseD = {{"client", "tb-client-vm-2-1"},
                       {"client", "tb-client-vm-2-1"},
                       {"aggregator", "tb-edge-vm-2-1"},
                       {"aggregator", "tb-cloud-vm-8-1"},
                       {"detection", "tb-edge-vm-4-2"},
                       {"detection", "tb-edge-vm-2-2"},
                       {"db", "tb-cloud-vm-8-2"},
                       {"db", "tb-edge-vm-4-1"},
                       {"machine-learning", "tb-cloud-vm-8-1"},
                       {"machine-learning", "tb-edge-vm-4-1"}};

State Place(const Scenario& scenario, const Placed& pods, const std::string& pattern,
            const std::vector<double>& latency_ms) {
  State state;
  state.catalog = scenario.catalog;
  state.names = scenario.names;
  state.calls = scenario.patterns[scenario.PatternNamed(pattern)];
  state.network = {3, latency_ms};
  state.nodes.kind = scenario.KindsOfNodes();
  for (const NodeGroup& group : scenario.node_groups) {
    for (int i = 0; i < group.count; ++i) {
      state.nodes.free.push_back({16'000, int64_t{32} << 30});
      state.nodes.background_mbytes_per_s.push_back(0);
    }
  }
  state.nodes.allocatable = state.nodes.free;
  const auto position = [](const auto& names, const std::string& name) {
    return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  std::vector<std::string> workloads;
  for (const Workload& workload : scenario.catalog->workloads) workloads.push_back(workload.name);
  for (const auto& [workload, node] : pods) {
    state.pods.workload.push_back(position(workloads, workload));
    state.pods.node.push_back(kNone);
    BindPod(state.pods.size() - 1, position(scenario.names->nodes, node), &state);
  }
  CheckConsistent(state);
  return state;
}

struct GoldenRow {
  char placement;
  const char* pattern;
  double la_ms;     // With kTableLa
  double plain_ms;  // and with kTable50.
};

constexpr GoldenRow kGoldenRows[] = {
    {'A', "chain", 140.600008593787, 120.600008593787},
    {'A', "aggregator_sequential", 140.600008593787, 120.600008593787},
    {'A', "aggregator_parallel", 124.000005468762, 104.000005468762},
    {'B', "chain", 109.400015625229, 105.400015625229},
    {'B', "aggregator_sequential", 109.400015625229, 105.400015625229},
    {'B', "aggregator_parallel", 85.500007812576, 81.500007812576},
    {'C', "chain", 147.850013281250, 133.850013281250},
    {'C', "aggregator_sequential", 206.850015625000, 182.850015625000},
    {'C', "aggregator_parallel", 125.000007812500, 111.000007812500},
    {'D', "chain", 244.000015039147, 194.500015039147},
    {'D', "aggregator_sequential", 251.500014453207, 194.500014453207},
    {'D', "aggregator_parallel", 143.500007226625, 119.000007226625},
};

TEST(ReachGolden, LatencyEqualsThatOfReachInEveryRow) {
  const std::map<char, Placed> placements = {{'A', kAllOn("tb-cloud-vm-8-1")},
                                             {'B', kAllOn("tb-edge-vm-4-1")},
                                             {'C', kCaseC},
                                             {'D', kCaseD}};
  const auto scenario = testing::ShippedScenario("continuum-7x21");
  for (const GoldenRow& row : kGoldenRows) {
    SCOPED_TRACE(std::string(1, row.placement) + ' ' + row.pattern);
    const Placed& placement = placements.at(row.placement);
    const State la = Place(*scenario, placement, row.pattern, kTableLa);
    const State plain = Place(*scenario, placement, row.pattern, kTable50);
    Evaluator evaluator(LatencyLaw::Reach());
    evaluator.Reset(la);
    EXPECT_NEAR(evaluator.Now().latency_ms, row.la_ms, 1e-12);
    evaluator.Reset(plain);
    EXPECT_NEAR(evaluator.Now().latency_ms, row.plain_ms, 1e-12);
  }
}

TEST(ReachGolden, NodesCarryTheTrafficOfReach) {
  const auto scenario = testing::ShippedScenario("continuum-7x21");
  const State state = Place(*scenario, kCaseD, "aggregator_parallel", kTableLa);
  Evaluator evaluator(LatencyLaw::Reach());
  evaluator.Reset(state);
  const std::map<std::string, double> use_of = {
      {"tb-cloud-vm-8-1", 0.0009765625},  {"tb-cloud-vm-8-2", 0.000244140625},
      {"tb-edge-vm-2-1", 0.0009765625},   {"tb-edge-vm-2-2", 0.000244140625},
      {"tb-edge-vm-4-1", 0.00048828125},  {"tb-edge-vm-4-2", 0.000244140625},
      {"tb-client-vm-2-1", 0.00048828125}};
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    EXPECT_NEAR(evaluator.NodeUseMbytesPerS(node), use_of.at(NodeName(state, node)), 1e-15)
        << NodeName(state, node);
  }
}

// What is free on the nodes of case A, whose cloud node has 7 cores and 27.68 GiB there.
TEST(ReachGolden, RequestsLeaveWhatReachLeaves) {
  const auto scenario = testing::ShippedScenario("continuum-7x21");
  Resources asked;
  for (int w = 1; w < 5; ++w) asked += scenario->catalog->workloads[w].requests;
  EXPECT_EQ(7000 - asked.cpu_millis, 3300);
  EXPECT_NEAR(27.68 - static_cast<double>(asked.memory_bytes) / kBytesPerGib, 24.06671875, 1e-12);
  const Resources client = scenario->catalog->workloads[0].requests;
  EXPECT_EQ(2000 - client.cpu_millis, 1300);
  EXPECT_NEAR(7.3 - static_cast<double>(client.memory_bytes) / kBytesPerGib, 6.61640625, 1e-12);
}

}  // namespace
}  // namespace rudderfish
