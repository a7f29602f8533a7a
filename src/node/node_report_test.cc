// SPDX-License-Identifier: Apache-2.0
#include "node/node_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Instant kShown{};

std::shared_ptr<Prober::Target> TargetOf(const std::string& name, const std::string& node) {
  auto target = std::make_shared<Prober::Target>();
  target->target = {name, ProbeProtocol::kTcp, *SocketAddress::Of("10.0.0.7", 9100)};
  target->node = node;
  return target;
}

TEST(NodeReport, CountersHaveTheNodesName) {
  NodeReport report{.node = "edge-1"};
  report.counters = NodeCounters{.cpu = {.busy_ticks = 250, .total_ticks = 1000, .cores = 4},
                                 .memory = {.total_bytes = 4096, .available_bytes = 1024},
                                 .received_bytes = 7};
  const std::string text = NodeReportText(report, kShown);
  EXPECT_THAT(text, HasSubstr("\nrudderfish_node_cpu_busy_seconds_total{node=\"edge-1\"} 2.5\n"));
  EXPECT_THAT(text, HasSubstr("\nrudderfish_node_memory_available_bytes{node=\"edge-1\"} 1024\n"));
  EXPECT_THAT(text,
              HasSubstr("\nrudderfish_node_network_receive_bytes_total{node=\"edge-1\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("\nrudderfish_node_peers{node=\"edge-1\"} 0\n"));
}

TEST(NodeReport, RoundTripsHaveMeanAndQuantiles) {
  NodeReport report{.node = "edge-1"};
  report.peer_targets = {TargetOf("10.0.0.7:9100", "edge-2")};
  report.user_targets = {TargetOf("shop:443", "")};
  for (const double seconds : {0.001, 0.002, 0.006})
    report.peer_targets[0]->trips.Add(kShown, seconds);
  report.user_targets[0]->trips.NoteFailure();
  const std::string text = NodeReportText(report, kShown);
  const std::string peer = R"({node="edge-1",peer="edge-2",protocol="tcp"})";
  EXPECT_THAT(text, HasSubstr("round_trip_mean_seconds" + peer + " 0.003"));
  EXPECT_THAT(text, HasSubstr("round_trip_p50_seconds" + peer + " 0.002\n"));
  EXPECT_THAT(text, HasSubstr("round_trip_p99_seconds" + peer + " 0.006\n"));
  EXPECT_THAT(text, HasSubstr("rudderfish_node_probes_total" + peer + " 3\n"));
  const std::string user = R"({node="edge-1",protocol="tcp",user="shop:443"})";
  EXPECT_THAT(text, HasSubstr("rudderfish_node_user_probe_failures_total" + user + " 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("rudderfish_node_user_round_trip")));
}

TEST(NodeReport, TwoAddressesOfOneNodeAreOneSeries) {
  NodeReport report{.node = "edge-1"};
  report.peer_targets = {TargetOf("10.0.0.7:9100", "edge-2"), TargetOf("10.0.0.8:9100", "edge-2")};
  report.peer_targets[1]->trips.Add(kShown, 0.5);
  const std::string text = NodeReportText(report, kShown);
  EXPECT_THAT(text, HasSubstr("rudderfish_node_probes_total{node=\"edge-1\",peer=\"edge-2\","
                              "protocol=\"tcp\"} 1\n"));
}

}  // namespace
}  // namespace rudderfish
