// SPDX-License-Identifier: Apache-2.0
#include "cloud/haproxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// As HAProxy 2.6 answers `show servers state shop`.
constexpr std::string_view kAnswer =
    "1\n"
    "# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight "
    "srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state "
    "srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl "
    "srv_check_port srv_check_addr srv_agent_addr srv_agent_port\n"
    "3 shop 1 eu 127.0.0.1 2 0 128 1 9 6 3 4 6 0 0 0 - 18081 - 0 0 - - 0\n"
    "3 shop 2 us 127.0.0.1 0 0 64 1 2 8 2 0 6 0 0 0 - 18082 - 0 0 - - 0\n"
    "3 shop 3 as 127.0.0.1 2 1 0 1 2 8 2 0 6 0 0 0 - 18083 - 0 0 - - 0\n"
    "\n";

TEST(Haproxy, ServersAreHealthyWhileTheyRunAndAreNotTakenOut) {
  EXPECT_EQ(ReadHaproxyServers(kAnswer, "shop").value(),
            (std::vector<HaproxyServer>{{"eu", 128, RegionState::kHealthy},
                                        {"us", 64, RegionState::kUnhealthy},
                                        {"as", 0, RegionState::kUnhealthy}}));
}

TEST(Haproxy, SaysWhatItCannotRead) {
  const auto refusal = [](std::string_view answer) {
    const auto servers = ReadHaproxyServers(answer, "shop");
    return servers ? "accepted" : servers.error().message;
  };
  EXPECT_EQ(refusal("Can't find backend.\n"), "haproxy: no backend is called shop");
  EXPECT_EQ(refusal("2\n"), "haproxy: expected version 1 of the servers' state, found `2`");
  EXPECT_EQ(refusal("1\n# be_id\n"), "haproxy: the backend shop has no servers");
  EXPECT_THAT(refusal("1\n3 shop 1 eu 127.0.0.1 2 0\n"),
              HasSubstr("expected the state of a server"));
  EXPECT_THAT(refusal("1\n3 shop 1 eu 127.0.0.1 2 0 999 1\n"),
              HasSubstr("expected a number from 0 to 256, found `999`"));
}

TEST(Haproxy, NobodyListens) {
  HaproxyPath path({.socket = "./no-such.sock", .backend = "shop"});
  const auto read = path.Read();
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message, "./no-such.sock: nothing listens there");
}

}  // namespace
}  // namespace rudderfish
