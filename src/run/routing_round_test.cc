// SPDX-License-Identifier: Apache-2.0
#include "run/routing_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kTwoRegions = R"(
rudderfish: scenario/v1
name: two
seed: 1
regions:
  duration: 1h
  interval: 1min
  service:
    {pod_rate: 20, pods_per_node: 1, deadline: 400ms, patience: 8s, last_mile: 0ms, response: 1kB,
     idle_watts: 2, busy_watts: 4}
  objective: {carbon_per_kg: 0, late: 20, wait: 10}
  egress_per_gb: {within: 0.02, zones: {eu: 0.05, na: 0.05}}
  at:
    eu: {zone: eu, latitude: 50, longitude: 8, utc_offset: 1, peak_rate: 80, on_demand: 0.04,
         spot: 0.02, carbon: 380, pue: 1.1, start: [20s, 60s], nodes_max: 40}
    us: {zone: na, latitude: 39, longitude: -77, utc_offset: -5, peak_rate: 80, on_demand: 0.04,
         spot: 0.02, carbon: 400, pue: 1.1, start: [20s, 60s], nodes_max: 40}
  round_trips: {base: 0ms, per_1000km: 12ms, measured: {eu: {us: 80ms}}}
  chance: {}
  variants: {calm: []}
)";

// Users of `eu` alone, whose pods are nearly full, while `us` has room.
class RoutingRoundTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomically(folder_ / "regions.yaml", kTwoRegions));
    const auto parsed = ParseYaml(
        "{regions: regions.yaml, policy: 'lp:foreign=0,moving=0', baseline: locality, "
        "budgets: {step: 10}, routes: [{name: web, origin: eu, haproxy: /tmp/s, backend: b, "
        "backends: {eu: one, us: two}}]}",
        "rudderfish.yaml");
    const RoutingConfig config = ParseRouting(parsed.value(), folder_.path()).value();
    plan_ = RoutingPlan::Make(config).value();
    round_.emplace(&plan_, 0);
    standing_ = {.target = "web",
                 .backends = {{.name = "one", .weight = 90, .is_healthy = true, .ready = 3},
                              {.name = "two", .weight = 10, .is_healthy = true, .ready = 6}}};
    Measure("demand_per_s", "eu", 58);
    Measure("demand_per_s", "us", 0);
    Measure("latency_s", "eu", 0.2);
  }
  void Measure(const char* signal, const char* region, double value,
               Instant at = Instant(std::chrono::seconds(1000))) {
    SignalColumn& column = signals_.columns[signal];
    column.scope = SignalScope::kRegion;
    column.values[region] = {.value = value, .at = at};
  }
  std::string Look() {
    now_ = {{.standing = &standing_, .weight_sum = 256, .why_held = why_held_}};
    return round_->Look(signals_, now_, {}, Instant(std::chrono::seconds(1010)), 0);
  }
  RouteChoice Decide() {
    EXPECT_THAT(Look(), IsEmpty());
    return round_->Decide(now_).at(0);
  }

  testing::TestFolder folder_;
  RoutingPlan plan_;
  std::optional<RoutingRound> round_;
  StandingWeights standing_;
  Signals signals_;
  std::string why_held_;
  std::vector<RouteNow> now_;
};

TEST_F(RoutingRoundTest, RequestsMoveToWhereThereIsRoomByAStep) {
  const RouteChoice choice = Decide();
  const RoutingDecision& decision = choice.decision;
  EXPECT_TRUE(decision.verdict.allowed) << decision.verdict.reason;
  ASSERT_EQ(decision.regions.size(), 2);
  EXPECT_LT(decision.regions[0].wanted, 0.7);
  EXPECT_NEAR(decision.regions[0].allowed, 0.8, 1e-9);
  EXPECT_GT(decision.gain, 0);
  EXPECT_LT(decision.predicted_ms, decision.predicted_now_ms);
  EXPECT_DOUBLE_EQ(*decision.measured_now_ms, 200);
  EXPECT_DOUBLE_EQ(decision.demand_per_s, 58);
  EXPECT_EQ(choice.plan.weights[0] + choice.plan.weights[1], 256);
  EXPECT_TRUE(decision.gain_over_baseline.has_value());
  EXPECT_GT(decision.regions[0].one_more[4], decision.regions[1].one_more[4]);
}

// Where the data path shows no endpoints, capacity says what serves and what is to come.
TEST_F(RoutingRoundTest, PodsThatCapacityShowsServe) {
  for (StandingBackend& one : standing_.backends) one.ready.reset();
  EXPECT_THAT(Look(), HasSubstr("how many pods serve in region eu is not known"));
  const std::vector<std::optional<RegionPods>> pods = {RegionPods{.ready = 3, .starting = 2},
                                                       RegionPods{.ready = 6}};
  const Instant now(std::chrono::seconds(1010));
  ASSERT_THAT(round_->Look(signals_, now_, pods, now, 0), IsEmpty());
  EXPECT_EQ(round_->view().sights()[0].ready_nodes(), 3);
  EXPECT_EQ(round_->view().sights()[0].pending[kOnDemand], 2);
  EXPECT_EQ(round_->view().sights()[1].ready_nodes(), 6);
  EXPECT_EQ(round_->view().sights()[1].pending[kOnDemand], 0);
  // What serves says more than what runs.
  standing_.backends[0].ready = 1;
  now_ = {{.standing = &standing_, .weight_sum = 256, .why_held = ""}};
  ASSERT_THAT(round_->Look(signals_, now_, pods, now, 0), IsEmpty());
  EXPECT_EQ(round_->view().sights()[0].ready_nodes(), 1);
  EXPECT_EQ(round_->view().sights()[0].pending[kOnDemand], 4);
}

TEST_F(RoutingRoundTest, WhatIsHeldIsNotChangedUnlessARegionDies) {
  why_held_ = "the last change has not been measured yet";
  EXPECT_EQ(Decide().decision.verdict.reason, why_held_);
  standing_.backends[1].is_healthy = false;
  standing_.backends[1].health = "stopped";
  const RouteChoice choice = Decide();
  EXPECT_TRUE(choice.decision.verdict.allowed);
  EXPECT_EQ(choice.plan.weights, (std::vector<int64_t>{256, 0}));
}

TEST_F(RoutingRoundTest, AChangeThatGainsTooLittleIsNotMade) {
  plan_.config.gain_min = 1;  // No change makes requests free.
  const RouteChoice choice = Decide();
  EXPECT_TRUE(choice.plan.changes);
  EXPECT_FALSE(choice.decision.verdict.allowed);
  EXPECT_THAT(choice.decision.verdict.reason, HasSubstr("less than the 100 %"));
  // Where all stands as it is wanted there is nothing to refuse.
  Measure("demand_per_s", "eu", 5);
  standing_.backends[0].weight = 99;
  standing_.backends[1].weight = 1;
  EXPECT_TRUE(Decide().decision.verdict.allowed);
}

TEST_F(RoutingRoundTest, WithoutSignalsOnlyWhatIsDeadIsDrained) {
  signals_.columns.clear();
  EXPECT_THAT(Look(), HasSubstr("demand_per_s of region eu was not measured yet"));
  EXPECT_THAT(round_->Decide(now_), IsEmpty());
  standing_.backends[0].is_healthy = false;
  standing_.backends[0].health = "stopped";
  Look();
  const std::vector<RouteChoice> choices = round_->Decide(now_);
  ASSERT_EQ(choices.size(), 1);
  EXPECT_EQ(choices[0].plan.weights, (std::vector<int64_t>{0, 256}));
  EXPECT_THAT(choices[0].decision.reasons.back(), HasSubstr("nothing else is decided"));
  // If nothing is healthy, what stands is kept.
  standing_.backends[1].is_healthy = false;
  EXPECT_THAT(round_->Decide(now_), IsEmpty());
}

TEST_F(RoutingRoundTest, WhatIsTooOldOrNotKnownIsSaid) {
  Measure("demand_per_s", "us", 0, Instant(std::chrono::seconds(100)));
  EXPECT_THAT(Look(), HasSubstr("the signal demand_per_s is"));
  Measure("demand_per_s", "us", -1);
  EXPECT_THAT(Look(), HasSubstr("below 0"));
  Measure("demand_per_s", "us", 0);
  standing_.backends[1].ready = std::nullopt;
  EXPECT_THAT(Look(), HasSubstr("add a signal ready_pods"));
  Measure("ready_pods", "us", 6);
  EXPECT_THAT(Look(), IsEmpty());
  standing_.backends[0].weight = standing_.backends[1].weight = 0;
  EXPECT_THAT(Look(), HasSubstr("no route was read that serves requests"));
  standing_.backends[0].weight = 1;
  standing_.backends[0].name = "three";
  EXPECT_THAT(Look(), HasSubstr("its backend three is no region"));
}

TEST_F(RoutingRoundTest, ConfigurationsThatAreWrongNameThePlace) {
  const auto message = [&](const std::string& text) -> std::string {
    const auto parsed = ParseYaml(text, "rudderfish.yaml");
    const auto config = ParseRouting(parsed.value(), folder_.path());
    if (!config) return config.error().message;
    const auto plan = RoutingPlan::Make(*config);
    return plan ? "" : plan.error().message;
  };
  const std::string route = "{name: web, origin: eu, haproxy: /tmp/s, backend: b}";
  const std::string begin = "{regions: regions.yaml, routes: [";
  EXPECT_THAT(message(begin + route + "]}"), IsEmpty());
  EXPECT_THAT(message("{routes: [" + route + "]}"), HasSubstr("regions"));
  EXPECT_THAT(message(begin + "]}"), HasSubstr("1 to 100 routes"));
  EXPECT_THAT(message(begin + route + ", " + route + "]}"), HasSubstr("another route is called"));
  EXPECT_THAT(message(begin + "{name: web}]}"), HasSubstr("name one data path: `httproute`"));
  EXPECT_THAT(message(begin + "{name: web, httproute: shop}]}"), HasSubstr("NAMESPACE/NAME"));
  EXPECT_THAT(message(begin + route + ", {name: two, origin: eu, haproxy: /tmp/t, backend: b}]}"),
              HasSubstr("brings requests of eu as well"));
  EXPECT_THAT(message(begin + route + ", {name: two, haproxy: /tmp/t, backend: b}]}"),
              HasSubstr("one route for each origin, or one for all"));
  EXPECT_THAT(message(begin + "{name: w, origin: mars, haproxy: /s, backend: b}]}"),
              HasSubstr("`mars`: no region"));
  const std::string xds = "{name: web, origin: eu, xds: web, endpoints: {eu: ['10.0.0.1:80']}}";
  const std::string serving = "{regions: regions.yaml, xds: {listen: '127.0.0.1:0'}, routes: [";
  EXPECT_THAT(message(serving + xds + "]}"), IsEmpty());
  EXPECT_THAT(message(begin + xds + "]}"), HasSubstr("`decisions.routing.xds` is missing"));
  EXPECT_THAT(message(serving + xds +
                      ", {name: b, origin: us, xds: web, endpoints: {us: ['10.0.0.1:80']}}]}"),
              HasSubstr("another route is of \"web\" as well"));
  EXPECT_THAT(message(serving + "{name: w, xds: web}]}"), HasSubstr("endpoints"));
  EXPECT_THAT(message(serving + "{name: w, xds: web, endpoints: {eu: ['shop:80']}}]}"),
              HasSubstr("expected an IP address and a port"));
  EXPECT_THAT(message(serving + "{name: w, xds: web, endpoints: {mars: ['10.0.0.1:80']}}]}"),
              HasSubstr("`mars`: no region"));
  EXPECT_THAT(message("{regions: regions.yaml, xds: {listen: x}, routes: [" + route + "]}"),
              HasSubstr("xds.listen"));
  EXPECT_THAT(message("{regions: regions.yaml, xds: {listen: '127.0.0.1:0', key: k}, routes: [" +
                      route + "]}"),
              HasSubstr("`certificate` and `key` belong together"));
  EXPECT_THAT(message("{regions: regions.yaml, policy: clairvoyant, routes: [" + route + "]}"),
              HasSubstr("clairvoyant knows the demand to come"));
  EXPECT_THAT(message("{regions: regions.yaml, policy: nonsense, routes: [" + route + "]}"),
              HasSubstr("nonsense"));
  EXPECT_THAT(message("{regions: regions.yaml, budgets: {floor: 60}, routes: [" + route + "]}"),
              HasSubstr("more than all requests"));
  EXPECT_THAT(message("{regions: regions.yaml, interval: 1ms, routes: [" + route + "]}"),
              HasSubstr("from 1s to 1h"));
}

// `web` as above, and beside it `orders`: two of its pods fill a node, Europeans stay in Europe.
class TwoServicesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string text(kTwoRegions);
    const std::string_view before = "  objective:";
    text.insert(text.find(before),
                "  services:\n    web: {}\n    orders: {pods_per_node: 2, stays: [eu]}\n");
    ASSERT_TRUE(WriteFileAtomically(folder_ / "regions.yaml", text));
  }
  Result<RoutingPlan> PlanOf(const std::string& routes) {
    const auto parsed = ParseYaml(
        "{regions: regions.yaml, policy: 'lp:foreign=0,moving=0', routes: [" + routes + "]}",
        "rudderfish.yaml");
    TRY_ASSIGN(const RoutingConfig config, ParseRouting(parsed.value(), folder_.path()));
    return RoutingPlan::Make(config);
  }
  std::string ErrorOf(const std::string& routes) {
    const auto plan = PlanOf(routes);
    return plan ? "" : plan.error().message;
  }

  testing::TestFolder folder_;
  const std::string web_ =
      "{name: web, service: web, origin: eu, haproxy: /tmp/s, backend: b, backends: {eu: one, us: "
      "two}}, ";
  const std::string orders_ =
      "{name: orders, service: orders, origin: eu, haproxy: /tmp/s, backend: c, backends: {eu: "
      "one, us: two}}";
};

TEST_F(TwoServicesTest, EachIsDecidedOnByItsOwnSignalsAndBounds) {
  const RoutingPlan plan = PlanOf(web_ + orders_).value();
  ASSERT_EQ(plan.services(), 2);
  EXPECT_TRUE(plan.Allows(plan.config.routes[0], 1));
  EXPECT_FALSE(plan.Allows(plan.config.routes[1], 1));
  StandingWeights web{.target = "web",
                      .backends = {{.name = "one", .weight = 90, .is_healthy = true, .ready = 3},
                                   {.name = "two", .weight = 10, .is_healthy = true, .ready = 6}}};
  StandingWeights orders = web;
  orders.backends[1].is_closed = true;
  const std::vector<RouteNow> now = {{.standing = &web, .weight_sum = 256},
                                     {.standing = &orders, .weight_sum = 256}};
  Signals signals;
  const auto measure = [&](const char* signal, const char* region, double value) {
    signals.columns[signal].scope = SignalScope::kRegion;
    signals.columns[signal].values[region] = {.value = value,
                                              .at = Instant(std::chrono::seconds(1000))};
  };
  RoutingRound of_web(&plan, 0), of_orders(&plan, 1);
  const auto look = [&](RoutingRound* round) {
    return round->Look(signals, now, {}, Instant(std::chrono::seconds(1010)), 0);
  };
  for (const char* region : {"eu", "us"}) measure("web/demand_per_s", region, 29);
  measure("on_demand_per_h", "eu", 0.08);
  EXPECT_THAT(look(&of_web), IsEmpty());
  // A service without its own signals holds no other one back.
  EXPECT_THAT(look(&of_orders), HasSubstr("orders/demand_per_s of region eu was not measured"));
  for (const char* region : {"eu", "us"}) measure("orders/demand_per_s", region, 10);
  ASSERT_THAT(look(&of_orders), IsEmpty());
  EXPECT_EQ(of_orders.view().sights()[0].demand_per_s, 10);
  // A node's price, by its pods.
  EXPECT_DOUBLE_EQ(of_orders.view().sights()[0].node_per_h[kOnDemand], 0.04);
  EXPECT_DOUBLE_EQ(of_web.view().sights()[0].node_per_h[kOnDemand], 0.08);
  const auto of_first = of_web.Decide(now), of_second = of_orders.Decide(now);
  ASSERT_EQ(of_first.size(), 1);
  ASSERT_EQ(of_second.size(), 1);
  EXPECT_EQ(of_first[0].decision.route, "web");
  EXPECT_EQ(of_second[0].decision.route, "orders");
  // What may not be served there leaves at once, a floor notwithstanding.
  EXPECT_EQ(of_second[0].plan.weights, (std::vector<int64_t>{256, 0}));
  EXPECT_TRUE(of_second[0].decision.verdict.allowed);
  EXPECT_THAT(of_second[0].decision.reasons.front(), HasSubstr("may not be served there"));
}

TEST_F(TwoServicesTest, ConfigurationsThatAreWrongNameThePlace) {
  EXPECT_THAT(ErrorOf(web_ + orders_), IsEmpty());
  EXPECT_THAT(ErrorOf(web_), HasSubstr("service orders has no route"));
  EXPECT_THAT(ErrorOf(web_ + "{name: o, haproxy: /tmp/s, backend: c}"),
              HasSubstr("`service` is missing: web, orders"));
  EXPECT_THAT(ErrorOf(web_ + "{name: o, service: order, haproxy: /tmp/s, backend: c}"),
              HasSubstr("no service of"));
  EXPECT_THAT(ErrorOf(web_ + orders_ + ", {name: o, service: orders, haproxy: /s, backend: d}"),
              HasSubstr("brings requests of all regions as well"));
  // Only Europe may serve what comes from all regions, so that such a route is possible.
  EXPECT_THAT(ErrorOf(web_ + "{name: o, service: orders, haproxy: /tmp/s, backend: c}"), IsEmpty());
}

}  // namespace
}  // namespace rudderfish
