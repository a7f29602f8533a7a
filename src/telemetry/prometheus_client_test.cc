// SPDX-License-Identifier: Apache-2.0
#include "telemetry/prometheus_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <thread>

#include "tests/support/prometheus_process.h"

// Against the real Prometheus where it is installed.

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Exporter;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::PrometheusProcess;

std::vector<SignalQuery> Queries(std::string_view text) {
  const auto node = ParseYaml(text, "signals.yaml");
  CHECK(node.has_value());
  auto queries = ParseSignalQueries(*node);
  CHECK(queries.has_value());
  return *std::move(queries);
}

constexpr std::string_view kLoad = "load: {per: node, query: load}";
const SignalEntities kEntities{
    .nodes = {{"n1", "10.0.0.1"}, {"n2", "10.0.0.2"}},
    .workloads = {{"shop", "demo"}, {"cart", "demo"}},
    .owners = {{"demo/shop-6b4f-x2", "shop"}, {"demo/shop-6b4f-x3", "shop"}},
    .edges = {{"shop", "cart"}},
    .regions = {"eu"}};

class PrometheusClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::PrometheusIsInstalled())
      GTEST_SKIP() << "prometheus is not installed (./setup installs it)";
  }

  void Connect(std::string_view queries, std::vector<std::string> urls,
               Duration deadline = seconds(5)) {
    client_.emplace(PrometheusOptions{.urls = std::move(urls), .deadline = deadline},
                    Queries(queries), &clock_);
  }

  void Round(const SignalEntities& entities = kEntities) {
    client_->Refresh(entities);
    while (client_->Poll(seconds(1))) {
    }
  }

  // Rounds until what is expected is seen, which Prometheus does after its next scrapes.
  bool Eventually(const std::function<bool()>& seen) {
    const Instant start = clock_.Now();
    while (clock_.Now() - start < seconds(60)) {
      Round();
      if (seen()) return true;
      client_->Poll(milliseconds(50));
      std::this_thread::sleep_for(milliseconds(50));
    }
    return false;
  }
  bool Sees(std::string_view signal, std::string_view entity, double value) {
    return Eventually([&] {
      const SignalValue* found = client_->signals().Find(signal, entity);
      return found != nullptr && found->value == value;
    });
  }
  const std::string& Trouble(std::string_view signal) const {
    return client_->signals().columns.find(signal)->second.trouble;
  }

  SystemClock clock_;
  std::optional<PrometheusClient> client_;
};

TEST_F(PrometheusClientTest, ReadsAllScopesInEveryWayOfAsking) {
  Exporter exporter;
  exporter.Set(
      "load{node=\"n1\"} 1.5\nload{node=\"n2\"} 2.5\nload{node=\"other\"} 9\n"
      "calls{source_workload=\"shop\",destination_workload=\"cart\"} 40\n");
  PrometheusProcess prometheus(exporter);
  Connect(
      "load: {per: node, query: 'load{node=~\"{{nodes}}\"}'}\n"
      "load_of_each: {per: node, query: 'load{node=\"{{node}}\"}', scale: 2}\n"
      "calls: {per: edge, query: calls}\n"
      "calls_to: {per: workload, query: calls, label: destination_workload}\n"
      "all: {query: sum(load)}\n"
      "most: {per: node, query: load, range: 5s, step: 1s, reduce: max}\n",
      {prometheus.url()});
  ASSERT_TRUE(Sees("load", "n1", 1.5)) << Trouble("load");
  Round();
  const Signals& signals = client_->signals();
  EXPECT_EQ(signals.Find("load_of_each", "n2")->value, 5);
  EXPECT_EQ(signals.Find("calls", "shop->cart")->value, 40);
  EXPECT_EQ(signals.Find("calls_to", "cart")->value, 40);
  EXPECT_EQ(signals.Find("all", "")->value, 13);
  EXPECT_EQ(signals.Find("most", "n2")->value, 2.5);
  EXPECT_EQ(signals.Find("load", "other"), nullptr);
  EXPECT_EQ(Trouble("load"), "");
  EXPECT_EQ(Trouble("calls_to"), "no data of 1 of 2, such as shop");
  EXPECT_LE(signals.Find("load", "n1")->at, clock_.Now());
  EXPECT_GT(signals.Find("load", "n1")->at, clock_.Now() - seconds(30));
  Round({.nodes = {{"n2", ""}}});
  EXPECT_EQ(signals.Find("load", "n1"), nullptr);
}

TEST_F(PrometheusClientTest, ValuesAgeWhereThereIsNoNumberOrNoData) {
  Exporter exporter;
  exporter.Set("load{node=\"n1\"} 1\nload{node=\"n2\"} 2\n");
  PrometheusProcess prometheus(exporter);
  Connect(kLoad, {prometheus.url()});
  ASSERT_TRUE(Sees("load", "n2", 2));
  exporter.Set("load{node=\"n1\"} NaN\n");
  ASSERT_TRUE(Eventually([&] { return Trouble("load") == "no data of 2 of 2, such as n1"; }));
  const Instant measured = client_->signals().Find("load", "n1")->at;
  Round();
  EXPECT_EQ(client_->signals().Find("load", "n1")->value, 1);
  EXPECT_EQ(client_->signals().Find("load", "n1")->at, measured);
  EXPECT_EQ(client_->signals().Find("load", "n2")->value, 2);
}

TEST_F(PrometheusClientTest, SeveralSeriesOfOneAreToldAndNotGuessed) {
  Exporter exporter;
  exporter.Set("load{node=\"n1\",cpu=\"0\"} 1\nload{node=\"n1\",cpu=\"1\"} 3\n");
  PrometheusProcess prometheus(exporter);
  Connect("load: {per: node, query: load}\nmean: {per: node, query: load, duplicates: mean}",
          {prometheus.url()});
  ASSERT_TRUE(Sees("mean", "n1", 2));
  Round();
  EXPECT_EQ(client_->signals().Find("load", "n1"), nullptr);
  EXPECT_THAT(Trouble("load"), HasSubstr("2 series for n1"));
}

TEST_F(PrometheusClientTest, ReplicasThatDisagreeAreToldAndOneAloneIsEnough) {
  Exporter one, other;
  one.Set("load{node=\"n1\"} 10\nload{node=\"n2\"} 4\n");
  other.Set("load{node=\"n1\"} 20\n");
  PrometheusProcess first(one);
  std::optional<PrometheusProcess> second(other);
  Connect(kLoad, {first.url(), second->url()});
  ASSERT_TRUE(Sees("load", "n1", 15));
  EXPECT_EQ(client_->signals().Find("load", "n1")->spread, 10);
  EXPECT_EQ(client_->signals().Find("load", "n2")->value, 4);
  EXPECT_THAT(Trouble("load"), HasSubstr("replicas disagree on n1: 10 to 20"));
  second.reset();
  Round();
  EXPECT_EQ(client_->signals().Find("load", "n1")->value, 10);
  EXPECT_THAT(Trouble("load"), HasSubstr("http://127.0.0.1"));
}

TEST_F(PrometheusClientTest, NothingWaitsForAPrometheusThatIsSlowOrDown) {
  Exporter exporter;
  exporter.Set("load{node=\"n1\"} 1\nload{node=\"n2\"} 2\n");
  std::optional<PrometheusProcess> prometheus(exporter);
  Connect(kLoad, {prometheus->url()}, seconds(3));
  ASSERT_TRUE(Sees("load", "n1", 1));
  const Instant measured = client_->signals().Find("load", "n1")->at;
  prometheus->Pause();
  client_->Refresh(kEntities);
  EXPECT_TRUE(client_->Poll(Duration(0)));  // Under way; what was known is there.
  EXPECT_EQ(client_->signals().Find("load", "n1")->value, 1);
  while (client_->Poll(seconds(1))) {
  }
  EXPECT_THAT(Trouble("load"), HasSubstr("no answer within 3 s"));
  prometheus->Continue();
  ASSERT_TRUE(Eventually([&] { return Trouble("load").empty(); }));
  EXPECT_GT(client_->signals().Find("load", "n1")->at, measured);
  prometheus.reset();
  Round();
  EXPECT_THAT(Trouble("load"), HasSubstr("connect"));
  EXPECT_EQ(client_->signals().Find("load", "n1")->value, 1);
}

TEST_F(PrometheusClientTest, DoorOpensForTheHeadersAndTheCertificateThatAreGiven) {
  Exporter exporter;
  exporter.Set("load{node=\"n1\"} 1\nload{node=\"n2\"} 2\n");
  PrometheusProcess prometheus(exporter, testing::PrometheusDoor::kTlsAndPassword);
  const auto queries = Queries(kLoad);
  client_.emplace(PrometheusOptions{.urls = {prometheus.url()}}, queries, &clock_);
  ASSERT_TRUE(Eventually([&] { return Trouble("load").find("certificate") != std::string::npos; }));
  client_.emplace(PrometheusOptions{.urls = {prometheus.url()}, .ca_file = prometheus.ca_file()},
                  queries, &clock_);
  Round();
  EXPECT_THAT(Trouble("load"), HasSubstr("status 401"));
  client_->SetHeaders({"Authorization: Basic d3Jvbmc6ZG9vcg=="});
  Round();
  EXPECT_THAT(Trouble("load"), HasSubstr("status 401"));
  EXPECT_THAT(Trouble("load"), Not(HasSubstr("d3Jvbmc6")));
  client_->SetHeaders({PrometheusProcess::kPassword});
  EXPECT_TRUE(Sees("load", "n2", 2)) << Trouble("load");
}

TEST_F(PrometheusClientTest, PresetsAreQueriesPrometheusUnderstands) {
  Exporter exporter;
  exporter.Set(
      "container_memory_working_set_bytes{namespace=\"demo\",pod=\"shop-6b4f-x2\",container=\"a\"} "
      "100\n"
      "container_memory_working_set_bytes{namespace=\"demo\",pod=\"shop-6b4f-x3\",container=\"a\"} "
      "30\n"
      "container_memory_working_set_bytes{namespace=\"demo\",pod=\"shop-6b4f-x3\"} 130\n"
      "kube_pod_info{node=\"n2\",pod=\"a\"} 1\nkube_pod_info{node=\"n2\",pod=\"b\"} 1\n");
  PrometheusProcess prometheus(exporter);
  for (std::string_view name : SignalPresetNames()) {
    auto queries = SignalPreset(name);
    ASSERT_TRUE(queries.has_value());
    client_.emplace(PrometheusOptions{.urls = {prometheus.url()}}, *queries, &clock_);
    ASSERT_TRUE(Eventually([&] { return Trouble((*queries)[0].name).starts_with("no data"); }))
        << Trouble((*queries)[0].name);
    for (const SignalQuery& query : *queries) {
      if (name == "workloads" && query.name == "workload_memory_bytes") {
        EXPECT_TRUE(Sees(query.name, "shop", 130));
      } else if (query.name == "node_pods") {
        EXPECT_TRUE(Sees(query.name, "n2", 2));
      }
      EXPECT_THAT(Trouble(query.name), ::testing::StartsWith("no data")) << query.name;
    }
  }
}

TEST_F(PrometheusClientTest, PricesAndPowerComeFromTheirExporters) {
  Exporter exporter;
  exporter.Set(
      "node_total_hourly_cost{node=\"a\",region=\"eu\"} 0.2\n"
      "node_total_hourly_cost{node=\"b\",region=\"eu\"} 0.3\n"
      "node_total_hourly_cost{node=\"c\",region=\"eu\"} 0.06\n"
      "kubecost_node_is_spot{node=\"a\"} 0\nkubecost_node_is_spot{node=\"c\"} 1\n"
      "kepler_node_cpu_watts{zone=\"package\",path=\"x\"} 31.5\n"
      "kepler_node_cpu_watts{zone=\"core\",path=\"x\"} 20\n"
      "scaph_host_power_microwatts 47250000\n");
  PrometheusProcess prometheus(exporter);
  const SignalEntities entities{.nodes = {{"n1", "127.0.0.1"}}, .regions = {"eu", "us"}};
  const auto sees = [&](std::string_view preset, std::string_view signal, std::string_view entity,
                        double value) {
    client_.emplace(PrometheusOptions{.urls = {prometheus.url()}}, SignalPreset(preset).value(),
                    &clock_);
    const SignalValue* seen = nullptr;
    const Instant start = clock_.Now();
    while (seen == nullptr && clock_.Now() - start < seconds(60)) {
      Round(entities);
      seen = client_->signals().Find(signal, entity);
      std::this_thread::sleep_for(milliseconds(50));
    }
    return seen != nullptr && std::abs(seen->value - value) < 1e-9;
  };
  EXPECT_TRUE(sees("opencost", "on_demand_per_h", "eu", 0.25));
  EXPECT_TRUE(sees("opencost", "spot_per_h", "eu", 0.06));
  EXPECT_EQ(client_->signals().Find("spot_per_h", "us"), nullptr);
  EXPECT_TRUE(sees("kepler", "node_power_watts", "n1", 31.5));
  EXPECT_TRUE(sees("scaphandre", "node_power_watts", "n1", 47.25));
}

TEST_F(PrometheusClientTest, WrongQueryIsToldInPrometheusWords) {
  Exporter exporter;
  PrometheusProcess prometheus(exporter);
  Connect("wrong: {query: 'sum(('}\nlong: {query: '" + std::string("1 + ") +
              [] {
                std::string sum;
                for (int i = 0; i < 2000; ++i) sum += "1 + ";
                return sum;
              }() +
              "1'}",
          {prometheus.url()});
  ASSERT_TRUE(Sees("long", "", 2002));  // Too long for a URL.
  EXPECT_THAT(Trouble("wrong"), HasSubstr("Prometheus: bad_data: invalid parameter \"query\""));
}

}  // namespace
}  // namespace rudderfish
