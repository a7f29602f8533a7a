// SPDX-License-Identifier: Apache-2.0
#include "scenario/manifests.h"

#include <gtest/gtest.h>

#include <map>

#include "base/yaml.h"
#include "scenario/application_file.h"

namespace rudderfish {
namespace {

constexpr std::string_view kPlayedShop = R"(rudderfish: application/v1
name: shop
model: physical
namespace: shop
layers: {cloud: {}, edge: {}, outside: {accepts_moves: false}}
latency:
  cloud: {cloud: 0ms, edge: 10ms, outside: 4.5ms}
  edge: {cloud: 10ms, edge: 0ms, outside: 4.5ms}
  outside: {cloud: 5ms, edge: 5ms, outside: 0ms}
node_types:
  large: {nodes: {matchLabels: {zone: cloud}}, layer: cloud, cpu_type: fast, bandwidth: 1Gbit}
  small: {nodes: {matchLabels: {zone: edge}}, layer: edge, cpu_type: slow, bandwidth: 1Gbit}
  outside: {layer: outside, cpu_type: fast, bandwidth: 100Mbit}
workloads:
  users: {external: outside}
  web: {object: deployment/front-end, execution: {fast: 2ms, slow: 3.5ms}}
  db: {object: statefulset/db, execution: {fast: 1ms, slow: 4ms}}
endpoints:
  buy:
    client: users
    rate: 2
    qos: 1ms
    calls:
      - web:
          data: 0.1MB
          parallel:
            - db: {data: 2kB}
            - calls: [db: {data: 1kB}, db: {data: 3kB, execution: {fast: 9ms, slow: 8ms}}]
)";

Application PlayedShop(std::string text) {
  return ParseApplication(text, "application.yaml").value();
}

Application Shop() { return PlayedShop(std::string(kPlayedShop)); }

std::string ShopWith(std::string_view from, std::string_view to) {
  std::string text(kPlayedShop);
  return text.replace(text.find(from), from.size(), to);
}

ManifestPlan PlanOf(const Application& application) {
  ManifestPlan plan;
  plan.workloads.resize(application.catalog->workloads.size());
  plan.workloads[1] = {.replicas = 3, .requests = {.cpu_millis = 250, .memory_bytes = 96 << 20}};
  plan.node_names = NodeNamesOf(application).value();
  return plan;
}

// Documents by kind and name.
std::map<std::string, YamlNode> Documents(const std::string& text) {
  std::map<std::string, YamlNode> documents;
  size_t from = 0;
  while (from != std::string::npos) {
    const size_t end = text.find("\n---\n", from);
    const size_t length = end == std::string::npos ? end : end + 1 - from;
    const YamlNode node = ParseYaml(text.substr(from, length), "manifests").value();
    YamlMap map = node.AsMap().value();
    const std::string kind = map.RequiredString("kind").value();
    YamlMap metadata = map.RequiredMap("metadata").value();
    documents.emplace(kind + "/" + metadata.RequiredString("name").value(), node);
    from = end == std::string::npos ? end : end + 5;
  }
  return documents;
}

TEST(Manifests, CallsAreThoseOfTheGraph) {
  const Application shop = Shop();
  EXPECT_EQ(CallsText(shop, PlanOf(shop)),
            "node cloud- large\n"
            "node edge- small\n"
            "shared\n"
            "call 0 users 0\n"
            "call 1 front-end 100000 large=2 small=3.5 outside=2\n"
            "call 2 db 2000 large=1 small=4 outside=1\n"
            "call 3 db 1000 large=1 small=4 outside=1\n"
            "call 4 db 3000 large=9 small=8 outside=9\n"
            "group 0 1\n"
            "group 1 2\n"
            "group 1 3 4\n");
}

TEST(Manifests, AreOneDocumentForEachObject) {
  const Application shop = Shop();
  const std::string text = ManifestsText(shop, PlanOf(shop)).value();
  const auto documents = Documents(text);
  std::vector<std::string> names;
  for (const auto& [name, node] : documents) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"ConfigMap/shop-calls", "Deployment/front-end",
                                             "Namespace/shop", "PodDisruptionBudget/db",
                                             "PodDisruptionBudget/front-end", "Service/db",
                                             "Service/front-end", "StatefulSet/db"}));
  YamlMap config = documents.at("ConfigMap/shop-calls").AsMap().value();
  EXPECT_EQ(config.RequiredMap("data").value().RequiredString("calls").value(),
            CallsText(shop, PlanOf(shop)));
  YamlMap deployment = documents.at("Deployment/front-end").AsMap().value();
  YamlMap spec = deployment.RequiredMap("spec").value();
  EXPECT_EQ(spec.RequiredInt("replicas", 0, 10).value(), 3);
  YamlMap pod = spec.RequiredMap("template").value().RequiredMap("spec").value();
  YamlMap container = pod.RequiredList("containers").value()[0].AsMap().value();
  YamlMap requests = container.RequiredMap("resources").value().RequiredMap("requests").value();
  EXPECT_EQ(requests.RequiredString("cpu").value(), "250m");
  EXPECT_EQ(requests.RequiredString("memory").value(), "96Mi");
  // A container is told of Services that are there when it starts.
  EXPECT_LT(text.find("kind: Service\n"), text.find("kind: Deployment\n"));
  EXPECT_NE(text.find("buy: http://front-end:8080/call/1"), std::string::npos);
}

TEST(Manifests, WhatCannotBePlayedIsRefusedByName) {
  const Application daemons = PlayedShop(ShopWith("statefulset/db", "daemonset/db"));
  EXPECT_NE(ManifestsText(daemons, PlanOf(daemons)).error().message.find("a DaemonSet"),
            std::string::npos);
  const Application apart =
      PlayedShop(ShopWith("statefulset/db", "statefulset/db, namespace: data"));
  EXPECT_NE(ManifestsText(apart, PlanOf(apart)).error().message.find("namespace data"),
            std::string::npos);
  const Application alike = PlayedShop(ShopWith("{zone: edge}", "{zone: cloud}"));
  EXPECT_NE(NodeNamesOf(alike).error().message.find("--node-names large=BEGINNING"),
            std::string::npos);
}

}  // namespace
}  // namespace rudderfish
