// SPDX-License-Identifier: Apache-2.0
#include "model/scaling_objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// Three of four requests are for pages; the third endpoint gets none.
std::shared_ptr<const CallGraph> Shop() {
  auto calls = std::make_shared<CallGraph>();
  calls->endpoints = {{.name = "page", .rate_per_second = 3, .qos_ms = 100},
                      {.name = "checkout", .rate_per_second = 1, .qos_ms = 400},
                      {.name = "report", .rate_per_second = 0, .qos_ms = 900}};
  return calls;
}

YamlNode NodeOf(std::string_view text) {
  const Result<YamlNode> root = ParseYaml(text, "file.yaml");
  CHECK(root.has_value());
  return *root->AsMap()->Required("x");
}

ServiceLimit LimitOf(std::string_view text) {
  const Result<ServiceLimit> limit = ParseServiceLimit(NodeOf(text), *Shop());
  EXPECT_TRUE(limit.has_value()) << limit.error().message;
  return limit.value_or(ServiceLimit());
}

std::string RefusalOf(std::string_view text) {
  const Result<ServiceLimit> limit = ParseServiceLimit(NodeOf(text), *Shop());
  return limit ? "accepted" : limit.error().message;
}

TEST(ScalingObjective, WeighsTermsAgainstCost) {
  const Result<ScalingObjective> objective =
      ParseScalingObjective(NodeOf("x: {cost: 2, changes: 0.5, late: 30}"));
  ASSERT_TRUE(objective.has_value()) << objective.error().message;
  EXPECT_EQ(*objective, (ScalingObjective{.cost = 2, .changes = .5, .late = 30}));
  EXPECT_EQ(objective->late_price(), 15);
  EXPECT_EQ(objective->change_price(), .25);
  const Result<ScalingObjective> usual = ParseScalingObjective(NodeOf("x: {}"));
  ASSERT_TRUE(usual.has_value());
  EXPECT_EQ(*usual, ScalingObjective());
  EXPECT_EQ(usual->change_price(), .25);
}

TEST(ScalingObjective, RefusesWhatCannotBeMadeSmall) {
  const auto refusal = [](std::string_view text) {
    return ParseScalingObjective(NodeOf(text)).error().message;
  };
  EXPECT_THAT(refusal("x: {coast: 1}"),
              HasSubstr("file.yaml:1:12: `x.coast`: unknown scaling term \"coast\"; there are "
                        "cost, late, changes; did you mean `cost`?"));
  EXPECT_THAT(refusal("x: {cost: 0}"), HasSubstr("x.cost"));
  EXPECT_THAT(refusal("x: {changes: -1}"), HasSubstr("x.changes"));
  EXPECT_THAT(refusal("x: {late: much}"), HasSubstr("x.late"));
}

TEST(ServiceLimit, IsAShareOrAPercentile) {
  EXPECT_EQ(LimitOf("x: {late: 1%}"), ServiceLimit());
  EXPECT_EQ(LimitOf("x: {late: 0.002}").late_max, .002);
  EXPECT_EQ(LimitOf("x: {p95: 300ms}"),
            (ServiceLimit{.percentile = 95, .late_max = .05, .response_ms = 300}));
  EXPECT_EQ(LimitOf("x: {p99: qos, endpoint: checkout}"),
            (ServiceLimit{.percentile = 99, .late_max = .01, .endpoint = 1}));
}

TEST(ServiceLimit, SaysWhatIsLateAndHowManyMayBe) {
  const std::shared_ptr<const CallGraph> calls = Shop();
  EXPECT_EQ(LimitedCalls(calls, LimitOf("x: {late: 2%}")), calls);
  EXPECT_EQ(LimitedCalls(calls, LimitOf("x: {p95: qos}")), calls);
  const auto all = LimitedCalls(calls, LimitOf("x: {p95: 250ms}"));
  for (const Endpoint& endpoint : all->endpoints) EXPECT_EQ(endpoint.qos_ms, 250);
  EXPECT_EQ(LateMaxOf(LimitOf("x: {p95: 250ms}"), *calls), .05);
  const ServiceLimit one = LimitOf("x: {p90: 250ms, endpoint: checkout}");
  const auto limited = LimitedCalls(calls, one);
  EXPECT_EQ(limited->endpoints[0].qos_ms, kNoTargetMs);
  EXPECT_EQ(limited->endpoints[1].qos_ms, 250);
  EXPECT_DOUBLE_EQ(LateMaxOf(one, *calls), .1 / 4);  // A quarter of all requests.
  EXPECT_EQ(calls->endpoints[1].qos_ms, 400);
  EXPECT_EQ(LimitedCalls(calls, LimitOf("x: {late: 1%, endpoint: page}"))->endpoints[0].qos_ms,
            100);
}

TEST(ServiceLimit, RefusesWhatItCannotKeep) {
  EXPECT_THAT(RefusalOf("x: {}"), HasSubstr("one limit, as {late: 1%}"));
  EXPECT_THAT(RefusalOf("x: {endpoint: page}"), HasSubstr("one limit"));
  EXPECT_THAT(RefusalOf("x: {late: 1%, p95: qos}"), HasSubstr("one limit"));
  EXPECT_THAT(RefusalOf("x: {p59: 10ms}"), HasSubstr("did you mean `p50`?"));
  EXPECT_THAT(RefusalOf("x: {late: 60%}"), HasSubstr("a share of requests from 0.001% to 50%"));
  EXPECT_THAT(RefusalOf("x: {late: 0}"), HasSubstr("x.late"));
  EXPECT_THAT(RefusalOf("x: {p95: 0ms}"), HasSubstr("a time such as 300ms"));
  EXPECT_THAT(RefusalOf("x: {p95: soon}"), HasSubstr("or qos"));
  EXPECT_THAT(RefusalOf("x: {p95: qos, endpoint: chekout}"), HasSubstr("did you mean `checkout`?"));
  EXPECT_THAT(RefusalOf("x: {p95: qos, endpoint: report}"), HasSubstr("its rate is 0"));
  EXPECT_THAT(RefusalOf("x: {late: 0.001%, endpoint: checkout}"),
              HasSubstr("0.00025% of all requests, and less than 0.001%"));
}

TEST(ServiceLimit, IsSaidInWords) {
  const auto text = [](std::string_view limit) {
    return GoalText({}, LimitOf(limit), *Shop(), LateMaxOf(LimitOf(limit), *Shop()));
  };
  EXPECT_EQ(text("x: {late: 1%}"), "at most 1 % late or failed");
  EXPECT_EQ(text("x: {p95: 300ms}"), "at most 5 % late or failed (p95 of all at most 300 ms)");
  EXPECT_EQ(text("x: {p95: qos, endpoint: checkout}"),
            "at most 1.25 % late or failed (p95 of checkout within qos)");
  EXPECT_EQ(text("x: {late: 2%, endpoint: page}"), "at most 1.5 % late or failed (2 % of page)");
  EXPECT_EQ(GoalText({}, LimitOf("x: {p95: 300ms}"), *Shop(), .02), "at most 2 % late or failed");
  EXPECT_EQ(GoalText({.cost = 2, .late = 30}, {}, *Shop(), .01),
            "late or failed requests at a weight of 15");
}

}  // namespace
}  // namespace rudderfish
