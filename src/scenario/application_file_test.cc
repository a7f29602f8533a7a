// SPDX-License-Identifier: Apache-2.0
#include "scenario/application_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kSmall = R"(rudderfish: application/v1
name: shop
namespace: shop
layers: {cloud: {}, client: {accepts_moves: false}}
latency:
  cloud: {cloud: 1ms, client: 20ms}
  client: {cloud: 25ms, client: 0ms}
node_types:
  big:
    nodes:
      matchLabels: {zone: a}
      matchExpressions: [{key: gpu, operator: DoesNotExist}]
    layer: cloud
    cpu_type: fast
    bandwidth: 1Gbit
    power: {idle_watts: 100, busy_watts: 250}
    price_per_hour: 0.5
  outside: {layer: client, cpu_type: none, bandwidth: 1Gbit}
workloads:
  users: {external: client}
  web: {object: deployment/web, execution: {fast: 5ms}, warm_up: 90s}
  db: {object: statefulset/db, namespace: data, execution: 2ms, movable: false}
endpoints:
  buy:
    client: users
    rate: 3
    qos: 100ms
    calls: [web: {data: 0.1MB, calls: [db]}]
)";

std::string Replaced(std::string_view what, std::string_view by) {
  std::string text(kSmall);
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

std::string Refusal(const std::string& text) {
  const Result<Application> application = ParseApplication(text, "a.yaml");
  EXPECT_FALSE(application);
  return application ? "" : application.error().message;
}

TEST(ApplicationFile, HoldsWhatTheFileSays) {
  const Application shop = ParseApplication(kSmall, "a.yaml").value();
  EXPECT_EQ(shop.name, "shop");
  EXPECT_EQ(shop.law, "physical");
  EXPECT_EQ(shop.network.LatencyMs(0, 1), 20);
  EXPECT_EQ(shop.network.LatencyMs(1, 0), 25);
  ASSERT_EQ(shop.catalog->kind_count(), 2);
  EXPECT_EQ(shop.catalog->kinds[0].bandwidth_mbytes_per_s, 125);
  EXPECT_EQ(shop.kind_costs[0], (NodeCosts{100, 250, 0.5}));
  EXPECT_TRUE(shop.kind_nodes[0].Matches({{"zone", "a"}}));
  EXPECT_FALSE(shop.kind_nodes[0].Matches({{"gpu", "1"}, {"zone", "a"}}));
  EXPECT_THAT(shop.objects,
              ElementsAre(WorkloadObject{}, WorkloadObject{"Deployment", "shop", "web"},
                          WorkloadObject{"StatefulSet", "data", "db"}));
  EXPECT_THAT(shop.external_layers, ElementsAre(1, kNone, kNone));
  EXPECT_FALSE(shop.catalog->workloads[0].movable);
  EXPECT_TRUE(shop.catalog->workloads[1].movable);
  EXPECT_FALSE(shop.catalog->workloads[2].movable);
  EXPECT_THAT(shop.warm_up_s, ElementsAre(0, 90, 0));
  ASSERT_EQ(shop.calls->endpoints.size(), 1u);
  EXPECT_EQ(shop.calls->endpoints[0].qos_ms, 100);
  EXPECT_EQ(shop.calls->ExecutionMs(1, 0), 5);
  EXPECT_EQ(shop.calls->calls[1].data_mbytes, 0.1);
}

TEST(ApplicationFile, AWarmUpIsATimeOfPodsThatMayMove) {
  EXPECT_THAT(Refusal(Replaced("warm_up: 90s", "warm_up: 2d")), HasSubstr("workloads.web.warm_up"));
  EXPECT_THAT(Refusal(Replaced("external: client", "external: client, warm_up: 5s")),
              HasSubstr("unknown key `warm_up`"));
}

TEST(ApplicationFile, KindWithoutNodesIsOutsideOfTheCluster) {
  const Application shop = ParseApplication(kSmall, "a.yaml").value();
  EXPECT_FALSE(shop.kind_nodes[1].Matches({}));
  EXPECT_FALSE(shop.kind_nodes[1].Matches({{"rudderfish.io/outside", "true"}}));
}

TEST(ApplicationFile, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(Refusal(Replaced("object: deployment/web", "object: deploiment/web")),
              HasSubstr("a.yaml:21:17: `workloads.web.object`: no kind of workload is called "
                        "\"deploiment\"; did you mean `deployment`?"));
  EXPECT_THAT(Refusal(Replaced("object: deployment/web", "obejct: deployment/web")),
              HasSubstr("expected either `object`"));
  EXPECT_THAT(Refusal(Replaced("deployment/web", "web")), HasSubstr("expected KIND/NAME"));
  EXPECT_THAT(Refusal(Replaced("external: client", "external: cleint")),
              HasSubstr("no layer is called \"cleint\"; did you mean `client`?"));
  EXPECT_THAT(Refusal(Replaced("operator: DoesNotExist", "operator: Missing")),
              HasSubstr("expected In, NotIn, Exists or DoesNotExist"));
  EXPECT_THAT(Refusal(Replaced("operator: DoesNotExist", "operator: In")),
              HasSubstr("missing key `values`"));
  EXPECT_THAT(Refusal(Replaced("matchLabels", "matchLables")),
              HasSubstr("did you mean `matchLabels`"));
  EXPECT_THAT(Refusal(Replaced("cloud: 1ms", "cloud: 1ms to 5ms")),
              HasSubstr("`latency.cloud.cloud`"));
  EXPECT_THAT(Refusal(Replaced("busy_watts: 250", "busy_watts: 50")),
              HasSubstr("`node_types.big.power.busy_watts`: expected a number from 100"));
  EXPECT_THAT(Refusal(Replaced("application/v1", "scenario/v1")),
              HasSubstr("expected application/v1"));
  EXPECT_THAT(Refusal(Replaced("statefulset/db, namespace: data", "deployment/web")),
              HasSubstr("is the object of `workloads.web` already"));
  EXPECT_THAT(Refusal(std::string(kSmall) + "modle: reach\n"), HasSubstr("did you mean `model`"));
  EXPECT_THAT(Refusal(""), HasSubstr("is empty"));
}

TEST(ApplicationFile, EveryKindInTheClusterNeedsAnExecutionTime) {
  EXPECT_THAT(
      Refusal(Replaced("layer: cloud\n    cpu_type: fast", "layer: cloud\n    cpu_type: new")),
      HasSubstr("no cpu_type is called \"fast\""));
  EXPECT_THAT(Refusal(Replaced("  outside: {",
                               "  odd: {nodes: {}, layer: cloud, cpu_type: odd, "
                               "bandwidth: 1Gbit}\n  outside: {")),
              HasSubstr("missing key `odd`"));
}

TEST(ApplicationFile, ExternalLayerNeedsANodeType) {
  EXPECT_THAT(
      Refusal(Replaced("  outside: {layer: client, cpu_type: none, bandwidth: 1Gbit}\n", "")),
      HasSubstr("no node type lies in layer client"));
}

TEST(ApplicationFile, EveryShippedExampleIsAnApplication) {
  int count = 0;
  const std::filesystem::path folder = SourcePath("examples");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "application.yaml") continue;
    ++count;
    const Result<Application> application = LoadApplication(entry.path());
    EXPECT_TRUE(application) << application.error().message;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace rudderfish
