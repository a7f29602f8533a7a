// SPDX-License-Identifier: Apache-2.0
#include "telemetry/prometheus_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

TEST(PrometheusResponse, HasLabelsTimesAndValues) {
  const auto answer = ParsePrometheusResponse(
      R"({"status":"success","warnings":["w"],"data":{"resultType":"vector","result":[
          {"metric":{"__name__":"up","job":"a"},"value":[1435781451.781,"1.5e-3"]},
          {"metric":{},"value":[1435781451,"NaN"]}]}})");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  ASSERT_EQ(answer->series.size(), 2u);
  EXPECT_EQ(answer->series[0].label("job"), "a");
  EXPECT_EQ(answer->series[0].label("instance"), "");
  EXPECT_EQ(answer->series[0].samples[0].unix_seconds, 1435781451.781);
  EXPECT_EQ(answer->series[0].samples[0].value, 0.0015);
  EXPECT_TRUE(std::isnan(answer->series[1].samples[0].value));
  EXPECT_EQ(answer->warnings, std::vector<std::string>{"w"});
}

TEST(PrometheusResponse, ScalarIsOneSeriesWithoutLabels) {
  const auto answer = ParsePrometheusResponse(
      R"({"status":"success","data":{"resultType":"scalar","result":[1,"-Inf"]}})");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->series[0].samples[0].value, -INFINITY);
}

TEST(PrometheusResponse, TellsAWrongQueryFromATroubledServer) {
  const auto wrong =
      ParsePrometheusResponse(R"({"status":"error","errorType":"bad_data","error":"parse error"})");
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(wrong.error().message, "Prometheus: bad_data: parse error");
  const auto slow =
      ParsePrometheusResponse(R"({"status":"error","errorType":"timeout","error":"too long"})");
  EXPECT_EQ(slow.error().code, ErrorCode::kUnavailable);
}

TEST(PrometheusResponse, WhatIsNoAnswerIsRefused) {
  for (const char* body :
       {"", "<html>", "[]", "{}", R"({"status":"maybe"})", R"({"status":"success"})",
        R"({"status":"error"})",
        R"({"status":"success","data":{"resultType":"string","result":[1,"a"]}})",
        R"({"status":"success","data":{"resultType":"vector","result":{}}})",
        R"({"status":"success","data":{"resultType":"scalar","result":[1,""]}})",
        R"({"status":"success","data":{"resultType":"scalar","result":[1,"1x"]}})",
        R"({"status":"success","data":{"resultType":"scalar","result":[1,2]}})",
        R"({"status":"success","data":{"resultType":"scalar","result":[1]}})"}) {
    const auto answer = ParsePrometheusResponse(body);
    ASSERT_FALSE(answer.has_value()) << body;
    EXPECT_EQ(answer.error().code, ErrorCode::kCorruption) << body;
    EXPECT_THAT(answer.error().message, HasSubstr("Prometheus' answer"));
  }
}

}  // namespace
}  // namespace rudderfish
