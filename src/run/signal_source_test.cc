// SPDX-License-Identifier: Apache-2.0
#include "run/signal_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/files.h"
#include "net/http_routes.h"
#include "net/http_server.h"
#include "scenario/application_file.h"

namespace rudderfish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kSignals = R"(prometheus: ["http://a:9090", "https://b"]
period: 5s
queries:
  buy_ms: {per: cluster, query: avg(buy_ms)}
  busy: {per: node, query: busy}
latency:
  buy_ms: {application: shop, endpoint: buy, window: 30s}
)";

Result<SignalsConfig> Parsed(std::string_view text) {
  return ParseSignals(ParseYaml(text, "r.yaml").value(), "/etc/rudderfish");
}

std::string Refusal(std::string_view what, std::string_view by) {
  std::string text(kSignals);
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  const Result<SignalsConfig> config = Parsed(text.replace(at, what.size(), by));
  EXPECT_FALSE(config);
  return config ? "" : config.error().message;
}

TEST(SignalSource, ConfigurationHoldsWhatIsAskedAndWhatIsLatency) {
  const SignalsConfig config = Parsed(kSignals).value();
  EXPECT_THAT(config.urls, ElementsAre("http://a:9090", "https://b"));
  EXPECT_EQ(config.period, std::chrono::seconds(5));
  EXPECT_THAT(config.queries, SizeIs(2));
  ASSERT_THAT(config.latencies, SizeIs(1));
  EXPECT_EQ(config.latencies[0].signal, "buy_ms");
  EXPECT_EQ(config.latencies[0].application, "shop");
  EXPECT_EQ(config.latencies[0].endpoint, "buy");
  EXPECT_EQ(config.latencies[0].term, "latency_ms");
  EXPECT_EQ(config.latencies[0].window, std::chrono::seconds(30));
}

TEST(SignalSource, PresetsAddTheirQueries) {
  const auto config = Parsed("{prometheus: [\"http://a\"], presets: [nodes]}").value();
  EXPECT_FALSE(config.queries.empty());
}

TEST(SignalSource, NothingConfiguredAsksNoServer) {
  SystemClock clock;
  SignalSource source(ParseSignals(YamlNode(), "").value(), &clock);
  source.Turn({});
  EXPECT_THAT(source.Readings("shop"), IsEmpty());
  EXPECT_THAT(source.Troubles(), IsEmpty());
}

TEST(SignalSource, WhatWasNeverMeasuredIsNoReading) {
  SystemClock clock;
  SignalSource source(Parsed(kSignals).value(), &clock);
  EXPECT_THAT(source.Readings("shop"), IsEmpty());
  EXPECT_THAT(source.Troubles(), SizeIs(2)) << "not asked yet";
}

// A turn may be rarer than the deadline of a query: what is asked must arrive between two of them.
TEST(SignalSource, AnswersArriveBetweenTurns) {
  HttpRoutes routes;
  routes.Add("GET", "/api/v1/query", [](const HttpRequest&) {
    return HttpResponse{.status = 200,
                        .content_type = "application/json",
                        .body = R"({"status":"success","data":{"resultType":"vector","result":[)"
                                R"({"metric":{},"value":[1764000000,"50"]}]}})"};
  });
  const auto server = HttpServer::Start({.listen = {"127.0.0.1:0"}, .threads = 1}, routes).value();
  std::string text(kSignals);
  text.replace(text.find("\"http://a:9090\", \"https://b\""), 28,
               fmt::format("\"http://{}\"", server->addresses()[0]));
  SystemClock clock;
  SignalSource source(Parsed(text).value(), &clock);
  source.Turn({});  // The only one.
  const Instant start = clock.Now();
  while (source.Readings("shop").empty() && clock.Now() - start < std::chrono::seconds(4)) {
    source.Poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_THAT(source.Readings("shop"), SizeIs(1));
  EXPECT_EQ(source.Readings("shop")[0].value_ms, 50);
}

// Prometheus knows neither the users outside of the cluster nor the node that stands for them.
TEST(SignalSource, CarbonOfRegionsIsBesideWhatPrometheusSays) {
  HttpRoutes routes;
  routes.Add("GET", "/emissions/bylocation", [](const HttpRequest&) {
    return HttpResponse{
        .body = R"([{"location":"a","time":"2026-11-27T04:00:00Z","rating":99,"duration":"1"}])"};
  });
  auto server = HttpServer::Start({.listen = {"127.0.0.1:0"}}, std::move(routes)).value();
  const SignalsConfig all =
      Parsed(
          "prometheus: [\"http://127.0.0.1:1\"]\nqueries: {demand_per_s: {per: region, query: d, "
          "label: r}}\ncarbon: {service: carbon-aware-sdk, url: \"http://" +
          server->addresses()[0] + "\", zones: {eu: a}}\n")
          .value();
  EXPECT_FALSE(all.Of(SignalsConfig::Whose::kCluster).carbon.has_value());
  const SystemClock clock;
  SignalSource source(all.Of(SignalsConfig::Whose::kRegions), &clock);
  SignalEntities entities;
  entities.regions = {"eu"};
  source.Turn(entities);
  const Instant end = clock.Now() + std::chrono::seconds(10);
  const auto is_complete = [&] {
    return source.has_answers() && source.values().Find(kCarbonSignal, "eu") != nullptr;
  };
  while (!is_complete() && clock.Now() < end) {
    source.Poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const SignalValue* const carbon = source.values().Find(kCarbonSignal, "eu");
  ASSERT_NE(carbon, nullptr);
  EXPECT_EQ(carbon->value, 99);
  EXPECT_THAT(source.Troubles(), SizeIs(1)) << "of Prometheus, which is not there";
}

TEST(SignalSource, CarbonComesFromOnePlace) {
  const auto twice = Parsed(
      "prometheus: [\"http://p\"]\nqueries: {carbon_g_per_kwh: {per: region, query: c, label: "
      "r}}\ncarbon: {service: carbon-aware-sdk, url: \"http://c\", zones: {eu: a}}\n");
  ASSERT_FALSE(twice.has_value());
  EXPECT_THAT(twice.error().message, HasSubstr("`queries` has carbon_g_per_kwh as well"));
}

TEST(SignalSource, EntitiesAreWhatTheClusterHas) {
  const Application application = ParseApplication(R"(rudderfish: application/v1
name: shop
namespace: default
layers: {cloud: {}, client: {accepts_moves: false}}
latency:
  cloud: {cloud: 0.5ms, client: 45ms}
  client: {cloud: 45ms, client: 0ms}
node_types:
  large: {nodes: {matchLabels: {zone: cloud}}, layer: cloud, cpu_type: fast, bandwidth: 1Gbit}
  outside: {layer: client, cpu_type: none, bandwidth: 100Mbit}
workloads:
  users: {external: client}
  web: {object: deployment/web, execution: {fast: 5ms}}
  cart: {object: statefulset/cart, execution: {fast: 3ms}}
endpoints:
  buy: {client: users, rate: 20, qos: 150ms,
        calls: [web: {data: 0.1MB, calls: [cart: {data: 20kB}]}]}
)",
                                                   "application.yaml")
                                      .value();
  State state;
  state.catalog = application.catalog;
  state.nodes.kind = {1, 0, 0};
  state.pods.workload = {0, 1, 2};
  state.pods.node = {0, 1, 2};
  state.names =
      std::make_shared<const Names>(Names{.nodes = {"external-client", "n1", "n2"},
                                          .pods = {"users", "web-7d9f8b6c5-x2k4z", "cart-0"},
                                          .addresses = {"", "10.0.0.1", "10.0.0.2"}});
  SignalEntities entities;
  AddEntities(application, state, &entities);
  ASSERT_THAT(entities.nodes, SizeIs(2));
  EXPECT_EQ(entities.nodes[0].name, "n1");
  EXPECT_EQ(entities.nodes[0].address, "10.0.0.1");
  ASSERT_THAT(entities.workloads, SizeIs(2));
  EXPECT_EQ(entities.workloads[0].name, "web");
  ASSERT_THAT(entities.edges, SizeIs(1)) << "the users' calls are no edge that a mesh sees";
  EXPECT_EQ(entities.edges[0].second, "cart");
  EXPECT_EQ(entities.owners.at("default/web-7d9f8b6c5-x2k4z"), "web");
  EXPECT_EQ(entities.owners.at("default/cart-0"), "cart");
}

TEST(SignalSource, FilesAreRelativeToTheConfiguration) {
  const auto config =
      Parsed(
          "{prometheus: [\"https://a\"], headers_file: door, bearer_token_file: /run/token, "
          "ca_file: ca.pem}")
          .value();
  EXPECT_EQ(config.header_files.headers, "/etc/rudderfish/door");
  EXPECT_EQ(config.header_files.bearer_token, "/run/token");
  EXPECT_EQ(config.ca_file, "/etc/rudderfish/ca.pem");
}

TEST(SignalSource, FilesThatAreNotThereOrHoldSomethingElseAreNamed) {
  const std::string folder = testing::TempDir();
  std::filesystem::remove(folder + "/no-ca.pem");
  SignalsConfig config{.urls = {"https://a"}, .ca_file = folder + "/no-ca.pem"};
  EXPECT_THAT(CheckFiles(config).error().message, HasSubstr("no-ca.pem: No such file"));
  ASSERT_TRUE(WriteFileAtomically(config.ca_file, "s3cret"));
  EXPECT_THAT(CheckFiles(config).error().message, HasSubstr("expected certificates in PEM"));
  config = {.urls = {"https://a"}, .header_files = {.headers = folder + "/no-ca.pem"}};
  EXPECT_THAT(CheckFiles(config).error().message, HasSubstr("no-ca.pem:1: expected `Name: value`"));
}

TEST(SignalSource, WhatIsTooOldHoldsDecisionsBackOnlyIfAsked) {
  SystemClock clock;
  EXPECT_EQ(SignalSource(Parsed(kSignals).value(), &clock).WhyTooOld("shop"), "");
  SignalSource source(Parsed(std::string(kSignals) + "staleness: 2min\n").value(), &clock);
  EXPECT_THAT(source.WhyTooOld("shop"), HasSubstr("buy_ms was not measured yet"));
  EXPECT_EQ(source.WhyTooOld("another"), "");
  ASSERT_THAT(source.Standings(), SizeIs(2));
  EXPECT_FALSE(source.Standings()[0].age_s.has_value());
}

TEST(SignalSource, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(Refusal("latency:\n  buy_ms: {application: shop, endpoint: buy, window: 30s}",
                      "staleness: 1min"),
              HasSubstr("nothing to hold for"));
  EXPECT_THAT(Refusal("http://a:9090", "a:9090"), HasSubstr("http://prometheus:9090"));
  EXPECT_THAT(Refusal("  buy_ms: {application", "  by_ms: {application"),
              HasSubstr("no signal is called \"by_ms\""));
  EXPECT_THAT(Refusal("  buy_ms: {application", "  busy: {application"), HasSubstr("per: cluster"));
  EXPECT_THAT(Refusal("endpoint: buy", "term: joy"), HasSubstr("one of latency_ms"));
  EXPECT_THAT(Refusal("endpoint: buy", "endpoint: buy, term: network_ms"),
              HasSubstr("only latency_ms"));
  EXPECT_THAT(Refusal("period: 5s", "period: 0s"), HasSubstr("`period`"));
  EXPECT_THAT(Refusal("period:", "perriod:"), HasSubstr("did you mean"));
}

}  // namespace
}  // namespace rudderfish
