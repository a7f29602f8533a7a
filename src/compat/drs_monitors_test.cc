// SPDX-License-Identifier: Apache-2.0
#include "compat/drs_monitors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "net/stream_server.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<StreamServer> MonitorThatSays(const std::string& text, MetricRegistry* metrics) {
  auto server = StreamServer::Start(
      {.wire = "monitor", .listen = {"127.0.0.1:0"}}, metrics,
      [text](std::string_view received, StreamEvent) -> std::optional<StreamAnswer> {
        if (received != "getState") return std::nullopt;
        return StreamAnswer{.bytes = text, .after = StreamAnswer::After::kKeep};
      });
  EXPECT_TRUE(server);
  return *std::move(server);
}

DrsMonitorAddress At(const std::string& node, const StreamServer& server) {
  const HostAndPort where = *ParseHostAndPort(server.addresses()[0]);
  return {node, *SocketAddress::Of(where.host, where.port)};
}

TEST(DrsMonitors, ThoseThatAnswerAreHeard) {
  const SystemClock clock;
  MetricRegistry metrics;
  const auto one = MonitorThatSays("(12.34, 56.78, 0.12, 0.34, 0.0, 1.58)", &metrics);
  const auto garbage = MonitorThatSays("(x)", &metrics);
  DrsMonitors monitors(
      {At("node1", *one), At("node2", *garbage), {"node3", *SocketAddress::Of("127.0.0.1", 1)}},
      &clock);
  for (int i = 0; i < 3; ++i) {  // Over the same connection.
    const auto states = monitors.Ask(std::chrono::seconds(5));
    ASSERT_TRUE(states) << states.error().message;
    ASSERT_EQ(states->size(), 1u);
    EXPECT_EQ(states->front().node, "node1");
    EXPECT_EQ(states->front().state, (DrsState{12.34, 56.78, 0.12, 0.34, 0, 1.58}));
  }
}

TEST(DrsMonitors, WhereNoneAnswersTheReasonsAreSaid) {
  const SystemClock clock;
  MetricRegistry metrics;
  const auto silent = StreamServer::Start(
      {.wire = "monitor", .listen = {"127.0.0.1:0"}}, &metrics,
      [](std::string_view, StreamEvent) { return std::optional<StreamAnswer>(); });
  ASSERT_TRUE(silent);
  DrsMonitors monitors({At("node1", **silent), {"node2", *SocketAddress::Of("127.0.0.1", 1)}},
                       &clock);
  const auto states = monitors.Ask(std::chrono::milliseconds(100));
  ASSERT_FALSE(states);
  EXPECT_THAT(states.error().message, HasSubstr("node1"));
  EXPECT_THAT(states.error().message, HasSubstr("no answer in time"));
  EXPECT_THAT(states.error().message, HasSubstr("refused"));
}

TEST(DrsMonitors, APodGoesWhereItsProfileBalancesTheNodes) {
  const std::vector<DrsNodeState> nodes = {{"node1", {25, 50, 1, 1, 0, 0}},
                                           {"node2", {1, 50, 1, 1, 0, 0}},
                                           {"node3", {25, 50, 1, 1, 0, 0}}};
  EXPECT_EQ(DrsBestNode("app-video-1", nodes), "node2");  // The idle CPU.
  EXPECT_EQ(DrsBestNode("nothing", nodes), "node1");      // All alike.
}

}  // namespace
}  // namespace rudderfish
