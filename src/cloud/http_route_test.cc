// SPDX-License-Identifier: Apache-2.0
#include "cloud/http_route.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

Json RouteObject() {
  return Json::parse(R"({
    "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "17",
                 "managedFields": [
                   {"manager": "kubectl-client-side-apply", "time": "2026-01-02T03:04:05Z",
                    "fieldsV1": {"f:spec": {"f:rules": {}}}},
                   {"manager": "gateway", "time": "2026-02-02T03:04:05Z",
                    "fieldsV1": {"f:status": {}}}]},
    "spec": {"rules": [{"backendRefs": [
      {"name": "shop-eu", "port": 80},
      {"name": "shop-us", "port": 80, "weight": 3},
      {"name": "shop-as", "kind": "ServiceImport", "group": "multicluster.x-k8s.io",
       "namespace": "asia", "weight": 0}]}]}})");
}

Result<HttpRouteRule> Read(const Json& object, std::optional<int> rule = {}) {
  return ReadHttpRoute(object.dump(), "route", rule);
}

TEST(HttpRoute, BackendsAreReadWithTheDefaultsOfTheApi) {
  const HttpRouteRule rule = Read(RouteObject()).value();
  EXPECT_EQ(rule.route, "shop/web");
  EXPECT_EQ(rule.version, "17");
  EXPECT_EQ(rule.manager, "kubectl-client-side-apply");
  EXPECT_EQ(rule.owner, "");
  ASSERT_EQ(rule.backends.size(), 3u);
  EXPECT_EQ(rule.backends[0].weight, 1);
  EXPECT_FALSE(rule.backends[0].has_weight);
  EXPECT_EQ(rule.backends[0].kind, "Service");
  EXPECT_EQ(rule.backends[0].name_space, "shop");
  EXPECT_EQ(rule.backends[2].kind, "ServiceImport");
  EXPECT_EQ(rule.backends[2].name_space, "asia");
}

TEST(HttpRoute, ThePatchTestsWhatWasReadAndReplacesWeightsAlone) {
  const HttpRouteRule rule = Read(RouteObject()).value();
  const Json patch = Json::parse(HttpRoutePatch(rule, {600'000, 3, 399'997}, "note"));
  EXPECT_EQ(patch[0],
            Json::parse(R"({"op":"test","path":"/metadata/resourceVersion","value":"17"})"));
  const std::string refs = "/spec/rules/0/backendRefs/";
  std::vector<std::string> words;
  for (const Json& one : patch)
    words.push_back(one["op"].get<std::string>() + " " + one["path"].get<std::string>());
  EXPECT_EQ(
      words,
      (std::vector<std::string>{
          "test /metadata/resourceVersion", "test " + refs + "0/name", "add " + refs + "0/weight",
          "test " + refs + "1/name", "test " + refs + "2/name", "replace " + refs + "2/weight",
          "add /metadata/annotations", "add /metadata/annotations/rudderfish.io~1split"}));
  // Applied to the object it gives the weights, and nothing else is another one.
  Json after = RouteObject().patch(patch);
  EXPECT_EQ(after["spec"]["rules"][0]["backendRefs"][0]["weight"], 600'000);
  EXPECT_EQ(after["spec"]["rules"][0]["backendRefs"][2]["weight"], 399'997);
  EXPECT_EQ(after["metadata"]["annotations"]["rudderfish.io/split"], "note");
  // A newer object refuses it.
  Json newer = RouteObject();
  newer["metadata"]["resourceVersion"] = "18";
  EXPECT_THROW(newer.patch(patch), Json::other_error);
}

TEST(HttpRoute, RefusesWhatItCannotSplit) {
  const auto refusal = [](const Json& object, std::optional<int> rule = {}) {
    const auto read = Read(object, rule);
    return read ? "accepted" : read.error().message;
  };
  Json object = RouteObject();
  Json& rules = object["spec"]["rules"];
  Json& refs = rules[0]["backendRefs"];
  const Json backend = refs[0];
  rules.push_back(rules[0]);
  EXPECT_EQ(refusal(object), "httproute shop/web: has 2 rules; name one with --rule");
  EXPECT_EQ(refusal(object, 1), "accepted");
  EXPECT_EQ(refusal(object, 2), "httproute shop/web: has no rule 2; it has 0 to 1");
  object = RouteObject();
  Json many = Json::array();
  for (int i = 0; i < 17; ++i) many.push_back({{"name", fmt::format("b{}", i)}});
  object["spec"]["rules"][0]["backendRefs"] = many;
  EXPECT_EQ(refusal(object),
            "httproute shop/web: has 17 backends in a rule; Gateway API allows 16");
  object["spec"]["rules"][0]["backendRefs"] = Json::array({backend});
  EXPECT_EQ(refusal(object),
            "httproute shop/web: the rule has one backend; a split needs two or more");
  object["spec"]["rules"][0].erase("backendRefs");
  EXPECT_THAT(refusal(object), HasSubstr("the rule has no backend"));
  object = RouteObject();
  object["spec"]["rules"][0]["backendRefs"][1]["weight"] = 1'000'001;
  EXPECT_THAT(refusal(object), HasSubstr("expected an integer from 0 to 1000000"));
  EXPECT_THAT(refusal(Json::object()), HasSubstr("metadata"));
}

TEST(HttpRoute, SaysWhoWritesIt) {
  Json object = RouteObject();
  object["metadata"]["ownerReferences"] = Json::parse(
      R"([{"kind": "Gateway", "name": "g"},
          {"kind": "Rollout", "name": "web", "controller": true}])");
  EXPECT_EQ(Read(object)->owner, "Rollout/web");
  object = RouteObject();
  object["metadata"]["managedFields"].push_back(
      {{"manager", "flagger"},
       {"time", "2026-03-02T03:04:05Z"},
       {"fieldsV1", Json::parse(R"({"f:spec": {"f:rules": {}}})")}});
  EXPECT_EQ(Read(object)->manager, "flagger");
}

TEST(HttpRoute, AServiceIsHealthyWithOneReadyEndpoint) {
  const auto state = [](const char* items) {
    return ReadyEndpoints(fmt::format(R"({{"items": {}}})", items), "slices").value();
  };
  EXPECT_EQ(state("[]"), RegionState::kUnseen);
  EXPECT_EQ(state(R"([{"endpoints": []}])"), RegionState::kUnhealthy);
  EXPECT_EQ(state(R"([{"endpoints": null}])"), RegionState::kUnhealthy);
  EXPECT_EQ(state(R"([{"endpoints": [{"conditions": {"ready": false}}]}])"),
            RegionState::kUnhealthy);
  EXPECT_EQ(state(R"([{"endpoints": [{"conditions": {"ready": false}}]},
                      {"endpoints": [{"conditions": {}}]}])"),
            RegionState::kHealthy);
}

}  // namespace
}  // namespace rudderfish
