// SPDX-License-Identifier: Apache-2.0
#include "cloud/haproxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using testing::HasSubstr;

// tests/haproxy_test.py has what the real HAProxy makes of all this.

constexpr const char* kAnswer =
    "1\n"
    "# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight\n"
    "3 web 1 eu 127.0.0.1 2 0 154\n"
    "3 web 2 us 127.0.0.1 0 0 102\n"
    "3 web 3 ap 127.0.0.1 0 1 0\n"
    "4 other 1 x 127.0.0.1 2 0 1\n\n";

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

TEST(Haproxy, ReadsTheServersOfOneBackend) {
  const auto servers = ParseServersState(kAnswer, "web");
  ASSERT_TRUE(servers) << servers.error().message;
  ASSERT_EQ(servers->size(), 3u);
  EXPECT_EQ((*servers)[0].name, "eu");
  EXPECT_EQ((*servers)[0].weight, 154);
  EXPECT_TRUE((*servers)[0].is_running);
  EXPECT_EQ((*servers)[1].state, "stopped");
  EXPECT_FALSE((*servers)[1].is_running);
  EXPECT_EQ((*servers)[2].state, "in maintenance");
}

TEST(Haproxy, RefusesAnswersThatAreNone) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "no answer"},
      {"Can't find backend.\n\n", "asked for the servers of backend `web`: Can't find backend."},
      {"1\n", "no heading"},
      {"1\n1 2 3\n", "no heading"},
      {Replaced(kAnswer, "srv_uweight", "weight"), "no column `srv_uweight`"},
      {Replaced(kAnswer, " 154", ""), "line 3: 7 columns instead of 8"},
      {Replaced(kAnswer, " 154", " 257"), "expected a number from 0 to 256, found `257`"},
      {Replaced(kAnswer, " 154", " -1"), "found `-1`"},
      {Replaced(kAnswer, " eu ", " e;u "), "expected a name of HAProxy"}};
  for (const auto& [answer, says] : cases) {
    const auto servers = ParseServersState(answer, "web");
    ASSERT_FALSE(servers) << answer;
    EXPECT_THAT(servers.error().message, HasSubstr(says));
  }
}

TEST(Haproxy, NamesCannotEndACommand) {
  EXPECT_TRUE(CheckHaproxyName("web-eu_1.a:80"));
  for (const char* name : {"", "a b", "a;b", "a\nb", "a/b"}) EXPECT_FALSE(CheckHaproxyName(name));
}

TEST(Haproxy, SaysThatNothingListens) {
  HaproxyEnactor enactor(
      {.socket = {.path = "/nonexistent/admin.sock", .address = {}}, .backend = "web"});
  const auto read = enactor.Read();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(read.error().message, HasSubstr("/nonexistent/admin.sock: nothing listens there"));
}

}  // namespace
}  // namespace rudderfish
