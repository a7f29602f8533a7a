// SPDX-License-Identifier: Apache-2.0
#include "compat/reach_settings.h"

#include <gmock/gmock.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

std::optional<std::string> NoVariable(const std::string& /*name*/) { return std::nullopt; }

std::string MessageOf(std::string_view text) {
  const auto settings = ParseReachSettings(text, ".env", NoVariable);
  return settings ? "" : settings.error().message;
}

TEST(ReachSettings, AFileOfReachIsRead) {
  const auto settings = ParseReachSettings(
      "# of the testbed\n"
      "KUBECONFIG=/root/.kube/config\n"
      "export APP_LABEL=\"deployment=mubench\"\n"
      "JAEGER_URL = http://10.0.0.1:30550/api/traces # the query service\n"
      "POLLING_PERIOD='500ms'\r\n"
      "ALPHA=0.5\nMAX_POD_WAITING_RETRIES=7\nMAX_STEP=4\nLIMIT=20\nGATEWAY_SERVICE=\n"
      "ENTRY_SERVICE_URL=http://10.0.0.1:31113/s0",
      ".env", NoVariable);
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->kubeconfig, "/root/.kube/config");
  EXPECT_EQ(settings->jaeger_url, "http://10.0.0.1:30550");
  EXPECT_EQ(settings->entry_url, "http://10.0.0.1:31113/s0");
  EXPECT_EQ(settings->polling_period, std::chrono::milliseconds(500));
  EXPECT_EQ(settings->alpha, 0.5);
  EXPECT_EQ(settings->waiting_retries, 7);
  EXPECT_EQ(settings->steps_max, 4);
}

TEST(ReachSettings, AVariableOfTheProcessIsPreferred) {
  const auto settings =
      ParseReachSettings("MAX_STEP=4\nALPHA=0.5\n", ".env", [](const std::string& name) {
        return name == "MAX_STEP" ? std::optional<std::string>("9") : std::nullopt;
      });
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->steps_max, 9);
  EXPECT_EQ(settings->alpha, 0.5);
}

TEST(ReachSettings, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_EQ(MessageOf(""), "");
  EXPECT_EQ(MessageOf("\nnonsense\n"), ".env:2: expected NAME=VALUE, found `nonsense`");
  EXPECT_EQ(MessageOf("A='b\n"), ".env:1: the quote is not closed");
  EXPECT_EQ(MessageOf("A='b' c\n"), ".env:1: `c` follows the quoted value");
  EXPECT_EQ(MessageOf("ALPHA=2\n"), ".env:1: ALPHA: expected a number from 0.001 to 1, found `2`");
  EXPECT_EQ(MessageOf("ALPHA=nan\n"),
            ".env:1: ALPHA: expected a number from 0.001 to 1, found `nan`");
  EXPECT_EQ(MessageOf("MAX_STEP=1.5\n"),
            ".env:1: MAX_STEP: expected an integer from 1 to 10000, found `1.5`");
  EXPECT_THAT(MessageOf("POLLING_PERIOD=1\n"), HasSubstr("expected a duration from 10ms to 1h"));
  EXPECT_THAT(MessageOf("JAEGER_URL=jaeger:16686\n"), HasSubstr("expected an address http://"));
}

}  // namespace
}  // namespace rudderfish
