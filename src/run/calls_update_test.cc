// SPDX-License-Identifier: Apache-2.0
#include "run/calls_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/application_file.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum CallsWorkload : WorkloadId { kClient, kWeb, kCart, kDb, kAuth };

constexpr std::string_view kCallsApplication = R"(rudderfish: application/v1
name: shop
namespace: shop
layers: {cloud: {}, client: {accepts_moves: false}}
latency: {cloud: {cloud: 1ms, client: 20ms}, client: {cloud: 20ms, client: 0ms}}
node_types:
  large: {nodes: {matchLabels: {zone: cloud}}, layer: cloud, cpu_type: fast, bandwidth: 1Gbit}
  outside: {layer: client, cpu_type: none, bandwidth: 1Gbit}
workloads:
  users: {external: client}
  web: {object: deployment/web, execution: {fast: 10ms, none: 10ms}}
  cart: {object: deployment/cart, execution: {fast: 20ms, none: 20ms}}
  db: {object: statefulset/db, execution: {fast: 5ms, none: 5ms}}
  auth: {object: deployment/auth, execution: {fast: 1ms, none: 1ms}}
endpoints:
  buy:
    client: users
    rate: 7
    qos: 100ms
    calls: [{web: {parallel: [{cart: {}}, {db: {}}]}}]
  look:
    client: users
    rate: 3
    qos: 50ms
    calls: [{web: {calls: [{db: {}}]}}]
)";

InferredCall Seen(WorkloadId workload, double ms,
                  std::vector<std::vector<InferredCall>> groups = {}, int64_t count = 100) {
  InferredCall call{.workload = workload, .per_request = 1, .groups = std::move(groups)};
  call.own_ms[0] = {.count = count, .mean = ms, .p50 = ms, .p95 = 1.2 * ms};
  return call;
}

InferredEndpoint SeenEndpoint(std::string operation, InferredCall web, int64_t traces = 100) {
  InferredEndpoint endpoint{.operation = std::move(operation), .traces = traces};
  endpoint.duration_ms = {.count = traces, .mean = 50, .p50 = 50, .p95 = 60};
  endpoint.client = {.workload = kClient, .per_request = 1, .groups = {{std::move(web)}}};
  return endpoint;
}

class UpdateCallsTest : public ::testing::Test {
 protected:
  CallsUpdate Update(std::vector<InferredEndpoint> endpoints) {
    InferredGraph graph{
        .endpoints = std::move(endpoints), .traces = 100, .last_ns = 60'000'000'000};
    const Result<TracedApplication> traced = WithTracedCalls(known_, graph, 1);
    CallsUpdate update = UpdateCalls(known_, traced.value(), graph, new_endpoints_);
    if (update.application != nullptr) known_ = *update.application;
    return update;
  }

  double TimeOf(std::string_view endpoint, WorkloadId workload) const {
    for (const Endpoint& one : known_.calls->endpoints) {
      for (CallId call = one.root; call < one.end && one.name == endpoint; ++call) {
        if (known_.calls->calls[call].workload == workload)
          return known_.calls->ExecutionMs(call, 0);
      }
    }
    return -1;
  }

  NewEndpoints new_endpoints_ = NewEndpoints::kAdd;
  Application known_ = ParseApplication(kCallsApplication, "shop.yaml").value();
};

TEST_F(UpdateCallsTest, WhatMayBeChanceChangesNothing) {
  EXPECT_THAT(Update({SeenEndpoint("buy", Seen(kWeb, 10.5, {{Seen(kCart, 19)}, {Seen(kDb, 5.2)}}))})
                  .changes,
              IsEmpty());
  // Groups in parallel have no order.
  EXPECT_THAT(
      Update({SeenEndpoint("buy", Seen(kWeb, 10, {{Seen(kDb, 5)}, {Seen(kCart, 20)}}))}).changes,
      IsEmpty());
  // Four spans that scatter this much say nothing of 15 %.
  InferredCall few = Seen(kWeb, 11.5, {{Seen(kCart, 20)}, {Seen(kDb, 5)}}, 4);
  few.own_ms[0].p95 = 20;
  EXPECT_THAT(Update({SeenEndpoint("buy", few)}).changes, IsEmpty());
  // Of an endpoint with fewer traces nothing is taken.
  EXPECT_THAT(Update({SeenEndpoint("buy", Seen(kWeb, 90), kFewestTraces - 1)}).changes, IsEmpty());
}

TEST_F(UpdateCallsTest, ATimeThatIsOtherwiseIsTakenOver) {
  const CallsUpdate update =
      Update({SeenEndpoint("buy", Seen(kWeb, 10, {{Seen(kDb, 9)}, {Seen(kCart, 23)}}))});
  EXPECT_THAT(update.changes, ElementsAre("buy: db 5 -> 9 ms on fast, and 1 more"));
  EXPECT_EQ(TimeOf("buy", kDb), 9);
  EXPECT_EQ(TimeOf("buy", kCart), 23);
  EXPECT_EQ(TimeOf("look", kDb), 5) << "another endpoint";
  EXPECT_EQ(known_.calls->endpoints[0].rate_per_second, 7);
  EXPECT_EQ(known_.calls->endpoints[0].qos_ms, 100);
  EXPECT_THAT(
      Update({SeenEndpoint("buy", Seen(kWeb, 10, {{Seen(kDb, 9)}, {Seen(kCart, 23)}}))}).changes,
      IsEmpty())
      << "once";
}

TEST_F(UpdateCallsTest, CallsThatAreMadeNowAreTakenOver) {
  const CallsUpdate update =
      Update({SeenEndpoint("look", Seen(kWeb, 10, {{Seen(kAuth, 2), Seen(kDb, 5)}})),
              SeenEndpoint("sell", Seen(kWeb, 30))});
  EXPECT_THAT(update.changes, ElementsAre("look: users(web(db)) became users(web(auth, db))",
                                          "sell: new, users(web)"));
  EXPECT_EQ(known_.calls->endpoints.size(), 3u);
  EXPECT_EQ(TimeOf("buy", kCart), 20) << "not seen: as it was";
  EXPECT_EQ(TimeOf("look", kAuth), 2);
  EXPECT_EQ(TimeOf("sell", kWeb), 30);
}

TEST_F(UpdateCallsTest, AnEndpointThatTheFileDoesNotNameIsLeftOut) {
  new_endpoints_ = NewEndpoints::kLeaveOut;
  EXPECT_THAT(Update({SeenEndpoint("GET /healthz", Seen(kDb, 1))}).changes, IsEmpty());
}

TEST_F(UpdateCallsTest, AnOrderIsTakenOverIfItIsSure) {
  InferredCall one_by_one = Seen(kWeb, 10, {{Seen(kCart, 20), Seen(kDb, 5)}});
  one_by_one.certainty = 0.6;
  EXPECT_THAT(Update({SeenEndpoint("buy", one_by_one)}).changes, IsEmpty());
  one_by_one.certainty = 0.95;
  EXPECT_THAT(Update({SeenEndpoint("buy", one_by_one)}).changes,
              ElementsAre(HasSubstr("users(web(cart | db)) became users(web(cart, db))")));
}

TEST(UpdateCalls, AFileWithoutCallsTakesThemFromTraces) {
  const std::string text(kCallsApplication.substr(0, kCallsApplication.find("endpoints:")));
  const Application known = ParseApplication(text, "shop.yaml", CallsInFile::kOptional).value();
  InferredGraph graph{.endpoints = {SeenEndpoint("GET /", Seen(kWeb, 12, {{Seen(kDb, 3)}}))},
                      .traces = 100,
                      .last_ns = 50'000'000'000};
  const CallsUpdate update =
      UpdateCalls(known, WithTracedCalls(known, graph, 1).value(), graph, NewEndpoints::kAdd);
  ASSERT_NE(update.application, nullptr);
  EXPECT_THAT(update.changes, ElementsAre("GET /: new, users(web(db))"));
  EXPECT_EQ(update.application->calls->endpoints[0].rate_per_second, 2);
}

}  // namespace
}  // namespace rudderfish
