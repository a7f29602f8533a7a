// SPDX-License-Identifier: Apache-2.0
#include "run/traces_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/config.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

Result<Config> WithTraces(const std::string& traces) {
  return ParseConfig(
      "rudderfish: config/v1\napplications: [a.yaml]\ndecisions: {migration: {}}\ntraces: " +
          traces + "\n",
      "c.yaml");
}

std::string TracesRefusal(const std::string& traces) {
  const Result<Config> config = WithTraces(traces);
  return config ? "" : config.error().message;
}

TEST(TracesConfig, WhatIsWrittenIsRead) {
  const TracesConfig traces =
      WithTraces("{jaeger: 'http://jaeger:16686', window: 1h, period: 30s, sampled: 0.1}")
          .value()
          .traces;
  EXPECT_EQ(traces.jaeger, "http://jaeger:16686");
  EXPECT_EQ(traces.window, std::chrono::hours(1));
  EXPECT_EQ(traces.period, std::chrono::seconds(30));
  EXPECT_EQ(traces.sampled, 0.1);
}

TEST(TracesConfig, WhatIsWrongIsNamed) {
  EXPECT_THAT(TracesRefusal("{window: 1h}"), HasSubstr("`traces`: missing key `jaeger`"));
  EXPECT_THAT(TracesRefusal("{jaeger: 'jaeger:16686'}"), HasSubstr("http://jaeger:16686"));
  const std::string secret = TracesRefusal("{jaeger: 'http://me:word@jaeger'}");
  EXPECT_THAT(secret, HasSubstr("without user and password"));
  EXPECT_EQ(secret.find("word@"), std::string::npos);
  EXPECT_THAT(TracesRefusal("{jaeger: 'http://j', period: 1ms}"), HasSubstr("from 1s to 24h"));
  EXPECT_THAT(TracesRefusal("{jaeger: 'http://j', sampled: 0}"), HasSubstr("above 0"));
  EXPECT_THAT(ParseConfig("rudderfish: config/v1\ndecisions: {placement: {}}\n"
                          "traces: {jaeger: 'http://j'}\n",
                          "c.yaml")
                  .error()
                  .message,
              HasSubstr("only `decisions.migration` reads `traces`"));
  EXPECT_THAT(ParseConfig("rudderfish: config/v1\ncluster: {scenario: s.yaml}\n"
                          "decisions: {migration: {}}\ntraces: {jaeger: 'http://j'}\n",
                          "c.yaml")
                  .error()
                  .message,
              HasSubstr("a simulated cluster has no traces"));
}

}  // namespace
}  // namespace rudderfish
