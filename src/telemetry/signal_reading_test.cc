// SPDX-License-Identifier: Apache-2.0
#include "telemetry/signal_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

SignalEntities ThreeNodes() {
  return {.nodes = {{"n1", "10.0.0.1"}, {"n2", "fd00::2"}, {"n3", ""}},
          .workloads = {{"shop", "demo"}, {"cart", "demo"}},
          .edges = {{"shop", "cart"}}};
}

SignalReading Read(const SignalQuery& query, std::string_view body) {
  const auto answer = ParsePrometheusResponse(body);
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  SignalReading reading;
  ReadAnswer(query, {.text = "", .entity = "", .is_batched = true}, ThreeNodes(), *answer,
             &reading);
  return reading;
}

std::string Vector(std::string_view series) {
  return fmt::format(R"({{"status":"success","data":{{"resultType":"vector","result":[{}]}}}})",
                     series);
}

TEST(SignalReading, SeriesAreOfTheNodeThatTheirLabelNames) {
  const SignalQuery query{.name = "x", .labels = {"instance"}, .scale = 10};
  const SignalReading reading =
      Read(query, Vector(R"({"metric":{"instance":"10.0.0.1:9100"},"value":[100,"1.5"]},
                       {"metric":{"instance":"[fd00::2]:9100"},"value":[100,"2"]},
                       {"metric":{"instance":"n3"},"value":[100,"3"]},
                       {"metric":{"instance":"10.0.0.9:9100"},"value":[100,"4"]},
                       {"metric":{},"value":[100,"5"]})"));
  ASSERT_EQ(reading.values.size(), 3u);
  EXPECT_EQ(reading.values.at("n1").value, 15);
  EXPECT_EQ(reading.values.at("n2").value, 20);
  EXPECT_EQ(reading.values.at("n3").value, 30);
  EXPECT_THAT(reading.problems, IsEmpty());
}

// One bad series is told, and loses nothing but itself.
TEST(SignalReading, LeavesOutAHistogramAndTellsWarnings) {
  const SignalQuery query{.name = "x", .labels = {"node"}};
  const SignalReading reading =
      Read(query, R"({"status":"success","data":{"resultType":"vector","result":[
          {"metric":{"node":"n1"},"value":[1764000000,"0.5"]},
          {"metric":{"node":"n2"},"histogram":[1764000000,{"count":"3","sum":"1.5"}]},
          {"metric":{"node":"n3"},"value":[1764000000,"bad"]}]},
          "warnings":["PromQL warning: partial response"]})");
  ASSERT_EQ(reading.values.size(), 1u);
  EXPECT_EQ(reading.values.at("n1").value, 0.5);
  ASSERT_EQ(reading.problems.size(), 2u);
  EXPECT_EQ(reading.problems[0], "Prometheus warns: PromQL warning: partial response");
  EXPECT_THAT(reading.problems[1],
              HasSubstr("2 series left out, such as {node=\"n2\"}: Prometheus' answer"));
  EXPECT_THAT(reading.problems[1], HasSubstr("native histogram"));
}

// Deployments, StatefulSets and pods whose names mislead: the cluster says whose they are.
TEST(SignalReading, SumsPodsForTheWorkloadThatOwnsThem) {
  SignalEntities entities{
      .workloads = {{"cart", "default"}, {"cart-db", "default"}, {"db", "default"}},
      .owners = {{"default/cart-7d9f8b6c5-x2k4z", "cart"},
                 {"default/cart-db-0", "cart-db"},
                 {"default/cart-db-1", "cart-db"},
                 {"default/db-0", "db"}}};
  const auto queries = SignalPreset("workloads").value();
  const auto memory = std::find_if(queries.begin(), queries.end(), [](const SignalQuery& query) {
    return query.name == "workload_memory_bytes";
  });
  ASSERT_NE(memory, queries.end());
  std::string series;
  for (const auto& [pod, bytes] : std::map<std::string, int>{{"cart-7d9f8b6c5-x2k4z", 100},
                                                             {"cart-db-0", 400},
                                                             {"cart-db-1", 600},
                                                             {"db-0", 50},
                                                             {"stranger-0", 7}}) {
    series += fmt::format(R"({}{{"metric":{{"namespace":"default","pod":"{}"}},"value":[1,"{}"]}})",
                          series.empty() ? "" : ",", pod, bytes);
  }
  SignalReading reading;
  ReadAnswer(*memory, {.text = "", .entity = "", .is_batched = true}, entities,
             ParsePrometheusResponse(Vector(series)).value(), &reading);
  EXPECT_THAT(reading.problems, IsEmpty());
  ASSERT_EQ(reading.values.size(), 3u);
  EXPECT_EQ(reading.values.at("cart").value, 100);
  EXPECT_EQ(reading.values.at("cart-db").value, 1000);
  EXPECT_EQ(reading.values.at("db").value, 50);
}

TEST(SignalReading, EdgesAreNamedByTwoLabels) {
  const SignalQuery query{.name = "x", .scope = SignalScope::kEdge, .labels = {"from", "to"}};
  const SignalReading reading =
      Read(query, Vector(R"({"metric":{"from":"shop","to":"cart"},"value":[1,"7"]},
                            {"metric":{"from":"cart","to":"shop"},"value":[1,"8"]})"));
  ASSERT_EQ(reading.values.size(), 1u);
  EXPECT_EQ(reading.values.at("shop->cart").value, 7);
}

TEST(SignalReading, WhatIsNoNumberIsNoValue) {
  const SignalQuery query{.name = "x", .labels = {"node"}};
  for (const char* value : {"NaN", "+Inf", "-Inf"}) {
    EXPECT_THAT(
        Read(query, Vector(fmt::format(R"({{"metric":{{"node":"n1"}},"value":[1,"{}"]}})", value)))
            .values,
        IsEmpty())
        << value;
  }
}

TEST(SignalReading, SeveralSeriesOfOneAreRefusedUnlessTheirMeaningIsSaid) {
  SignalQuery query{.name = "x", .labels = {"node"}};
  const std::string body = Vector(R"({"metric":{"node":"n1","cpu":"0"},"value":[8,"1"]},
                                     {"metric":{"node":"n1","cpu":"1"},"value":[9,"4"]})");
  const SignalReading refused = Read(query, body);
  EXPECT_THAT(refused.values, IsEmpty());
  ASSERT_EQ(refused.problems.size(), 1u);
  EXPECT_THAT(refused.problems[0], HasSubstr("2 series for n1"));
  const std::pair<SignalDuplicates, double> cases[] = {
      {SignalDuplicates::kSum, 5}, {SignalDuplicates::kMean, 2.5}, {SignalDuplicates::kMax, 4}};
  for (const auto& [duplicates, value] : cases) {
    query.duplicates = duplicates;
    const SignalReading reading = Read(query, body);
    EXPECT_EQ(reading.values.at("n1").value, value);
    EXPECT_EQ(reading.values.at("n1").unix_seconds, 8);
  }
}

TEST(SignalReading, RangesAreReducedOverTheirNumbers) {
  SignalQuery query{.name = "x", .labels = {"node"}};
  const std::string body =
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"node":"n1"},
          "values":[[1,"1"],[2,"9"],[3,"NaN"],[4,"2"],[5,"NaN"]]}]}})";
  const std::pair<SignalReduce, double> cases[] = {
      {SignalReduce::kLast, 2}, {SignalReduce::kMean, 4}, {SignalReduce::kMax, 9}};
  for (const auto& [reduce, value] : cases) {
    query.reduce = reduce;
    const SignalReading reading = Read(query, body);
    EXPECT_EQ(reading.values.at("n1").value, value);
    EXPECT_EQ(reading.values.at("n1").unix_seconds, 4);
  }
}

class Merge : public ::testing::Test {
 protected:
  void Put(std::vector<SignalReading> replicas, double unix_now = 1000) {
    MergeReadings(replicas, {"n1", "n2"}, 0.1, now_, unix_now, &column_);
  }
  static SignalReading Of(double n1, double at = 990) { return {.values = {{"n1", {n1, at}}}}; }

  Instant now_ = Instant(std::chrono::seconds(50'000));
  SignalColumn column_;
};

TEST_F(Merge, ReplicasThatAgreeAreTheirMeanAndAsOldAsTheOldest) {
  Put({Of(10, 990), Of(10.5, 985)});
  EXPECT_EQ(column_.values.at("n1").value, 10.25);
  EXPECT_EQ(column_.values.at("n1").spread, 0.5);
  EXPECT_EQ(now_ - column_.values.at("n1").at, std::chrono::seconds(15));
  EXPECT_EQ(column_.trouble, "no data of 1 of 2, such as n2");
}

TEST_F(Merge, ReplicasThatDisagreeAreTold) {
  Put({Of(10), Of(12)});
  EXPECT_EQ(column_.values.at("n1").value, 11);
  EXPECT_THAT(column_.trouble, HasSubstr("replicas disagree on n1: 10 to 12"));
}

TEST_F(Merge, OneReplicaThatKnowsIsEnough) {
  Put({{}, Of(3)});
  EXPECT_EQ(column_.values.at("n1").value, 3);
  EXPECT_EQ(column_.values.at("n1").spread, 0);
}

TEST_F(Merge, AValueThatIsNoLongerReportedStaysAndAges) {
  Put({Of(3)});
  const Instant measured = column_.values.at("n1").at;
  now_ += std::chrono::seconds(60);
  Put({{.values = {}, .problems = {"no answer within 5 s"}}});
  EXPECT_EQ(column_.values.at("n1").value, 3);
  EXPECT_EQ(column_.values.at("n1").at, measured);
  EXPECT_THAT(column_.trouble, HasSubstr("no answer within 5 s"));
}

TEST_F(Merge, ClocksAheadOfOursDoNotMakeValuesFromTheFuture) {
  Put({Of(3, 2000)});
  EXPECT_EQ(column_.values.at("n1").at, now_);
}

}  // namespace
}  // namespace rudderfish
