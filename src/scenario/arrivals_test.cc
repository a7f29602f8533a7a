// SPDX-License-Identifier: Apache-2.0
#include "scenario/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scenario/arrivals_parser.h"
#include "scenario/arrivals_writer.h"
#include "tests/support/small_arrivals.h"

namespace rudderfish {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using testing::ArrivalsScenario;
using testing::ArrivalsText;
using ::testing::HasSubstr;

constexpr std::string_view kEverything = R"(
  streams:
    - {workloads: web, interval: 3s, count: 15000, waves: {pods: 30, hold: 20s, pause: 5s}}
    - {workloads: [web, batch], interval: 2s, start: 90s, count: 9, rolling: {pods: 3, hold: 3s}}
    - {workloads: {web: 2, learner: 0.5}, interval: {exponential: 20s}, lifetime: 10s to 2min}
    - {workloads: batch, interval: {normal: [20s, 1500ms]}, count: 10}
  start_delay: 0.7s
  until: 2h
  users: users
  lost_pods: gone
  failures: {every: {exponential: 1h}, down: 5min to 10min}
  events:
    - {at: 90s, return: small-2}
    - {at: 30s, lose: small-2}
    - {at: 60s, latency: {users: {near: 30ms, far: 1.5ms}}}
)";

std::string ArrivalsRefusal(std::string_view arrivals) {
  const Result<Scenario> scenario = ParseScenario(ArrivalsText(arrivals), "s.yaml");
  return scenario ? "" : scenario.error().message;
}

TEST(Arrivals, EveryPartIsRead) {
  const auto scenario = ArrivalsScenario(kEverything);
  const Arrivals& arrivals = *scenario->arrivals;
  ASSERT_EQ(arrivals.streams.size(), 4U);
  EXPECT_EQ(arrivals.streams[0].shape, ArrivalStream::Shape::kWaves);
  EXPECT_EQ(arrivals.streams[0].interval, TimeLaw::Constant(3s));
  EXPECT_EQ(arrivals.streams[0].hold, 20s);
  EXPECT_EQ(arrivals.streams[0].pause, 5s);
  EXPECT_EQ(arrivals.streams[1].workloads, (std::vector<WorkloadId>{0, 1}));
  EXPECT_EQ(arrivals.streams[1].start, 90s);
  EXPECT_EQ(arrivals.streams[2].weights, (std::vector<double>{2, 0.5}));
  EXPECT_EQ(arrivals.streams[2].interval, (TimeLaw{TimeLaw::Shape::kExponential, 20s, 0s}));
  EXPECT_EQ(arrivals.streams[2].lifetime, (TimeLaw{TimeLaw::Shape::kUniform, 10s, 120s}));
  EXPECT_EQ(arrivals.streams[3].interval, (TimeLaw{TimeLaw::Shape::kNormal, 20s, 1500ms}));
  EXPECT_EQ(arrivals.start_delay, TimeLaw::Constant(700ms));
  EXPECT_EQ(arrivals.until, 2h);
  EXPECT_EQ(arrivals.users, 2);
  EXPECT_EQ(arrivals.lost_pods, LostPods::kGone);
  EXPECT_EQ(arrivals.failures->every.a, 1h);
  ASSERT_EQ(arrivals.events.size(), 4U);  // By time; a latency each.
  EXPECT_EQ(arrivals.events[0].kind, WorldEvent::Kind::kLoseNode);
  EXPECT_EQ(arrivals.events[0].node, 1);
  EXPECT_EQ(arrivals.events[2].latency_ms, 1.5);
  EXPECT_EQ(arrivals.events[3].kind, WorldEvent::Kind::kReturnNode);
}

TEST(Arrivals, WrittenScenarioReadsBackTheSame) {
  const auto scenario = ArrivalsScenario(kEverything);
  const std::string written = ToYaml(*scenario);
  const Result<Scenario> again = ParseScenario(written, "again.yaml");
  ASSERT_TRUE(again.has_value()) << again.error().message << "\n" << written;
  EXPECT_EQ(again->arrivals->streams, scenario->arrivals->streams);
  EXPECT_EQ(again->arrivals->events, scenario->arrivals->events);
  EXPECT_EQ(again->arrivals->failures, scenario->arrivals->failures);
  EXPECT_EQ(again->kind_costs, scenario->kind_costs);
  EXPECT_EQ(again->node_groups, scenario->node_groups);
  for (WorkloadId w = 0; w < 4; ++w) {
    EXPECT_EQ(again->catalog->workloads[w].devices, scenario->catalog->workloads[w].devices);
    EXPECT_EQ(again->catalog->workloads[w].node_kinds, scenario->catalog->workloads[w].node_kinds);
    EXPECT_EQ(again->catalog->workloads[w].latency_limits,
              scenario->catalog->workloads[w].latency_limits);
    EXPECT_EQ(again->catalog->workloads[w].measured, scenario->catalog->workloads[w].measured);
  }
  EXPECT_EQ(ToYaml(*again), written);
}

constexpr std::string_view kCallsOfWeb = R"(  streams: [{workloads: web, interval: 1s, count: 1}]
patterns:
  shop: {buy: {client: web, rate: 1, qos: 1s, calls: [batch: {execution: 1ms}]}}
)";

TEST(Arrivals, PlacePodsWhateverPatternsThereAre) {
  const auto scenario = ArrivalsScenario(kCallsOfWeb);
  EXPECT_TRUE(scenario->places_pods());
  ASSERT_EQ(scenario->patterns.size(), 1U);
  EXPECT_EQ(scenario->patterns[0]->calls[1].workload, 1);
  const Result<void> moves = CheckMovesPods(*scenario, "s.yaml");
  ASSERT_FALSE(moves.has_value());
  EXPECT_THAT(moves.error().message, HasSubstr("s.yaml: has `arrivals`"));
  const std::string written = ToYaml(*scenario);
  const Result<Scenario> again = ParseScenario(written, "again.yaml");
  ASSERT_TRUE(again.has_value()) << again.error().message << "\n" << written;
  EXPECT_TRUE(again->places_pods());
  EXPECT_EQ(ToYaml(*again), written);
}

TEST(Arrivals, AnObjectiveOfCallsNeedsPatterns) {
  const auto with = [](std::string_view arrivals) {
    const auto scenario =
        ParseScenario(ArrivalsText(arrivals) + "\nobjective: {calls: 1}\n", "s.yaml");
    return scenario ? "" : scenario.error().message;
  };
  EXPECT_EQ(with(kCallsOfWeb), "");
  EXPECT_THAT(with("  streams: [{workloads: web, interval: 1s, count: 1}]"),
              HasSubstr("`objective`: calls count by who calls whom: say so in `patterns`"));
}

// The first type of node with another `power`.
std::string TextWithPower(std::string_view power) {
  std::string text = ArrivalsText("  streams: [{workloads: web, interval: 1s, count: 1}]");
  constexpr std::string_view kBefore = "{idle_watts: 50, busy_watts: 100}";
  return text.replace(text.find(kBefore), kBefore.size(), power);
}

TEST(Arrivals, NodesMayDrawByACurve) {
  const auto scenario = ParseScenario(
      TextWithPower("{idle_watts: 50, busy_watts: 100, curve: {0.1: 62.5, .5: 90}}"), "s.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const NodeCosts& costs = scenario->kind_costs[0];
  ASSERT_EQ(costs.curve.count, 2);
  EXPECT_EQ(costs.curve.points[0], (PowerPoint{0.1, 62.5}));
  EXPECT_EQ(costs.curve.points[1], (PowerPoint{0.5, 90}));
  EXPECT_FALSE(scenario->kind_costs[1].has_curve());
  const std::string written = ToYaml(*scenario);
  const auto again = ParseScenario(written, "again.yaml");
  ASSERT_TRUE(again.has_value()) << again.error().message << "\n" << written;
  EXPECT_EQ(again->kind_costs, scenario->kind_costs);
  EXPECT_EQ(ToYaml(*again), written);
}

TEST(Arrivals, RefusesCurvesThatAreNone) {
  const auto with = [](std::string_view curve) {
    const auto scenario = ParseScenario(
        TextWithPower(fmt::format("{{idle_watts: 50, busy_watts: 100, curve: {}}}", curve)),
        "s.yaml");
    return scenario ? "" : scenario.error().message;
  };
  EXPECT_EQ(with("{0.5: 120}"), "");  // It may go above busy, and fall.
  EXPECT_EQ(with("{0.5: 20}"), "");
  EXPECT_THAT(with("{0.5: 70, 0.1: 60}"),
              HasSubstr("s.yaml:10:72: `node_types.small.power.curve.0.1`: points stand in "
                        "ascending order of use"));
  EXPECT_THAT(with("{0.5: 70, .5: 71}"), HasSubstr("in ascending order"));
  for (const char* outside : {"{0: 50}", "{1: 100}", "{1.5: 60}", "{-0.1: 60}", "{half: 60}"})
    EXPECT_THAT(with(outside), HasSubstr("expected a use of CPU between 0 and 1")) << outside;
  EXPECT_THAT(with("{0.5: -1}"), HasSubstr("`node_types.small.power.curve.0.5`: expected"));
  EXPECT_THAT(with("{0.5: much}"), HasSubstr("curve.0.5`: expected a number"));
  EXPECT_THAT(with("{}"), HasSubstr("at least one point"));
  EXPECT_THAT(with("linear"), HasSubstr("node_types.small.power.curve"));
  std::string many;
  for (int i = 1; i <= 17; ++i) many += fmt::format("{}{}: 60", i > 1 ? ", " : "", i / 20.0);
  EXPECT_THAT(with("{" + many + "}"), HasSubstr("more than 16 points"));
}

TEST(Arrivals, RefusesWhatCannotBe) {
  const auto stream = [](std::string_view fields) {
    return ArrivalsRefusal(fmt::format("  streams: [{{{}}}]", fields));
  };
  EXPECT_THAT(ArrivalsRefusal("  until: 1h"), HasSubstr("no pod ever arrives"));
  EXPECT_THAT(stream("workloads: wep, interval: 1s, count: 1"), HasSubstr("did you mean `web`?"));
  EXPECT_THAT(stream("workloads: web, interval: 1s"), HasSubstr("would never end"));
  EXPECT_THAT(stream("workloads: web, interval: 0s, count: 5"),
              HasSubstr("expected an interval above 0"));
  EXPECT_THAT(stream("workloads: web, interval: 5, count: 5"), HasSubstr("`arrivals.streams[0]"));
  EXPECT_THAT(stream("workloads: web, interval: -5s, count: 5"), HasSubstr("interval"));
  EXPECT_THAT(stream("workloads: web, interval: 9s to 5s, count: 5"),
              HasSubstr("ends below its start"));
  EXPECT_THAT(stream("workloads: web, interval: {poisson: 5s}, count: 5"),
              HasSubstr("{exponential: 20s}"));
  EXPECT_THAT(stream("workloads: {web: 0}, interval: 5s, count: 5"), HasSubstr("web"));
  EXPECT_THAT(stream("workloads: web, interval: 5s, count: 5, livetime: 9s"),
              HasSubstr("did you mean `lifetime`?"));
  EXPECT_THAT(stream("workloads: web, interval: 1s to 2s, count: 5, waves: {pods: 2}"),
              HasSubstr("at a constant interval"));
  EXPECT_THAT(
      stream("workloads: web, interval: 1s, count: 5, waves: {pods: 2}, rolling: {pods: 2}"),
      HasSubstr("not both"));
  EXPECT_THAT(stream("workloads: web, interval: 20000h, count: 999999, waves: {pods: 2}"),
              HasSubstr("longer than can be counted"));
  EXPECT_THAT(stream("workloads: web, interval: 5s, count: 5, waves: {pods: 1}"),
              HasSubstr("expected a `hold` or `pause` above 0"));
  EXPECT_THAT(stream("workloads: web, interval: 5s, count: 5, rolling: {pods: 3}"),
              HasSubstr("expected a `hold` or `pause` above 0"));
}

TEST(Arrivals, MorePodsThanAWorldMayHoldAreRefused) {
  const auto with = [](std::string_view streams, std::string_view until) {
    return ArrivalsRefusal(fmt::format("  streams: [{}]\n  until: {}", streams, until));
  };
  EXPECT_THAT(ArrivalsRefusal("  streams: [{workloads: web, interval: 1ms, count: 1000001}]"),
              HasSubstr("an integer from 1 to 1000000"));
  EXPECT_THAT(with("{workloads: web, interval: 1ms, lifetime: 5min}", "1h"),
              AllOf(HasSubstr("s.yaml:"), HasSubstr("to about 3600001 pods, and 1000000")));
  EXPECT_EQ(with("{workloads: web, interval: 1ms, count: 900000}", "1h"), "");
  EXPECT_THAT(with("{workloads: web, interval: 1ms, count: 900000},"
                   " {workloads: web, interval: {exponential: 30ms}}",
                   "1h"),
              AllOf(HasSubstr("streams[1]"), HasSubstr("to about 1020001 pods")));
  EXPECT_THAT(with("{workloads: web, interval: 1s, waves: {pods: 1000000, hold: 1s}}", "20000h"),
              HasSubstr("are the most"));
}

TEST(Arrivals, RefusesEventsOfThingsThatAreNotThere) {
  const auto with = [](std::string_view more) {
    return ArrivalsRefusal(
        fmt::format("  streams: [{{workloads: web, interval: 1s, count: 1}}]\n  {}", more));
  };
  EXPECT_THAT(with("events: [{at: 1s, lose: smal-1}]"), HasSubstr("did you mean `small-1`?"));
  EXPECT_THAT(with("events: [{at: 1s}]"), HasSubstr("one of `lose`, `return` and `latency`"));
  EXPECT_THAT(with("events: [{at: 1s, latency: {user: {near: 1ms}}}]"), HasSubstr("`users`"));
  EXPECT_THAT(with("users: user"), HasSubstr("did you mean `users`?"));
  EXPECT_THAT(with("lost_pods: wait"), HasSubstr("pend"));
  EXPECT_THAT(with("failures: {every: 0s, down: 1s}"), HasSubstr("above 0"));
  EXPECT_THAT(with("trace: {format: openc, pods: a.csv}"), HasSubstr("did you mean `openb`?"));
  EXPECT_THAT(with("trace: {format: openb, pods: a.csv, time_warp: 0}"), HasSubstr("time_warp"));
}

TEST(Arrivals, ObjectiveOfLatencyNeedsUsers) {
  const std::string text =
      ArrivalsText("  streams: [{workloads: web, interval: 1s, count: 1}]\nobjective: latency");
  EXPECT_THAT(ParseScenario(text, "s.yaml").error().message, HasSubstr("arrivals.users"));
}

TEST(Arrivals, LimitsOfLatencyNeedUsers) {
  for (const std::string_view limit : {"latency_soft: 20ms", "latency_hard: 30ms"}) {
    std::string text = ArrivalsText("  streams: [{workloads: web, interval: 1s, count: 1}]");
    const std::string_view web = "  web: {";
    const size_t at = text.find(web) + web.size();
    text.insert(at, fmt::format("{}, ", limit));
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
    EXPECT_THAT(ParseScenario(text, "s.yaml").error().message,
                AllOf(HasSubstr(fmt::format("s.yaml:{}:", line)), HasSubstr("arrivals.users")));
    EXPECT_TRUE(ParseScenario(text + "\n  users: users", "s.yaml").has_value());
  }
}

TEST(Arrivals, WhatPodsMeasureIsReadAndRefusedWithTheNearestKey) {
  constexpr std::string_view kStreams = "  streams: [{workloads: batch, interval: 1s, count: 1}]";
  const auto scenario = ArrivalsScenario(kStreams);
  EXPECT_FALSE(scenario->catalog->workloads[0].measured.transfers());
  EXPECT_EQ(scenario->catalog->workloads[1].measured,
            (MeasuredUsage{.connections = 3, .read_kb_per_s = 512}));
  for (const auto& [measured, says] :
       {std::pair("conections: 3", "did you mean `connections`?"), {"connections: -3", "number"}}) {
    std::string text = ArrivalsText(kStreams);
    const std::string_view there = "connections: 3";
    text.replace(text.find(there), there.size(), measured);
    EXPECT_THAT(ParseScenario(text, "s.yaml").error().message, HasSubstr(says));
  }
}

TEST(Arrivals, PodsWithDevicesAreNotThereFromTheStart) {
  std::string text = ArrivalsText("  streams: [{workloads: web, interval: 1s, count: 1}]");
  const std::string_view learner = "  learner: {";
  text.insert(text.find(learner) + learner.size(), "replicas: 2, ");
  EXPECT_THAT(ParseScenario(text, "s.yaml").error().message, HasSubstr("pods with gpus"));
}

TEST(Arrivals, PopularityIsTheShareOfPods) {
  const auto scenario = ArrivalsScenario(R"(
  streams:
    - {workloads: {web: 3, batch: 1}, interval: 1s, count: 300}
    - {workloads: batch, interval: 1s, count: 100})");
  const std::vector<int64_t> popularity = PopularityOfWorkloads(*scenario->arrivals, 4);
  EXPECT_EQ(popularity, (std::vector<int64_t>{56250, 43750, 0, 0}));
}

// An hour in which each brings 180 pods, or one more, but the last twice as many.
TEST(Arrivals, PopularityCountsPodsAndNotHowTheirTimesAreWritten) {
  const auto scenario = ArrivalsScenario(R"(
  until: 1h
  streams:
    - {workloads: web, interval: 20s}
    - {workloads: batch, interval: {exponential: 20s}}
    - {workloads: learner, interval: 10s to 30s, start: 20s, count: 180}
    - {workloads: giant, interval: 1s, waves: {pods: 10, hold: 41s, pause: 50s}})");
  const std::vector<int64_t> popularity = PopularityOfWorkloads(*scenario->arrivals, 4);
  EXPECT_NEAR(static_cast<double>(popularity[0]), 100'000 * 181 / 903.0, 1);
  EXPECT_EQ(popularity[1], popularity[0]);
  EXPECT_NEAR(static_cast<double>(popularity[2]), 100'000 * 180 / 903.0, 1);
  EXPECT_NEAR(static_cast<double>(popularity[3]), 100'000 * 361 / 903.0, 1);
}

TEST(TimeLaw, DrawsHaveTheMeanTheyShould) {
  Rng rng(1);
  const auto mean = [&](const TimeLaw& law) {
    double sum = 0;
    for (int i = 0; i < 20000; ++i) sum += static_cast<double>(law.Draw(&rng).count()) / 1e9;
    EXPECT_NEAR(sum / 20000, law.MeanNs() / 1e9, 0.03 * sum / 20000);
    return sum / 20000;
  };
  EXPECT_EQ(mean(TimeLaw::Constant(3s)), 3);
  EXPECT_NEAR(mean({TimeLaw::Shape::kUniform, 2s, 6s}), 4, 0.05);
  EXPECT_NEAR(mean({TimeLaw::Shape::kExponential, 5s, 0s}), 5, 0.15);
  EXPECT_NEAR(mean({TimeLaw::Shape::kNormal, 20s, 1s}), 20, 0.05);
  EXPECT_GE(mean({TimeLaw::Shape::kNormal, 0s, 1s}), 0.3);  // Never below 0.
}

}  // namespace
}  // namespace rudderfish
