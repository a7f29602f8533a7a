// SPDX-License-Identifier: Apache-2.0
#include "cloud/http_route.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// tests/route_live_test.py has what a real API server makes of all this.

std::string RouteJson(const std::string& rules, const std::string& managed = "[]",
                      const std::string& status = "{}") {
  return fmt::format(R"({{"metadata": {{"resourceVersion": "41", "generation": 3,
    "managedFields": {}}}, "spec": {{"rules": {}}}, "status": {}}})",
                     managed, rules, status);
}

std::string ManagedBy(const std::string& manager, const std::string& field) {
  return fmt::format(
      R"([{{"manager": "{}", "operation": "Update", "fieldsV1": {{"f:spec": {{"{}": {{}}}}}}}}])",
      manager, field);
}

constexpr const char* kTwoRefs =
    R"([{"backendRefs": [{"name": "a", "weight": 3}, {"name": "b", "namespace": "far"}]}])";

HttpRouteChoice ChoiceOf(std::optional<int> rule = std::nullopt) {
  return {{.name_space = "shop", .name = "web", .may_change = {"argo"}}, rule};
}

std::string WhyNot(const std::string& json, std::optional<int> rule = std::nullopt) {
  const auto read = ReadHttpRoute(json, ChoiceOf(rule));
  return read ? "" : read.error().message;
}

TEST(HttpRoute, ReadsBackendsWithWhatTheApiTakesWhereNothingIsSaid) {
  const auto read = ReadHttpRoute(RouteJson(kTwoRefs), ChoiceOf());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->resource_version, "41");
  ASSERT_EQ(read->backends.size(), 2u);
  EXPECT_EQ(read->backends[0].weight, 3);
  EXPECT_EQ(read->backends[0].name_space, "shop");
  EXPECT_EQ(read->backends[1].weight, 1);
  EXPECT_EQ(read->backends[1].name_space, "far");
  EXPECT_EQ(read->backends[1].kind, "Service");
}

TEST(HttpRoute, RefusesWhatItCannotSplit) {
  std::string refs;
  for (int i = 0; i < 17; ++i) refs += fmt::format(R"({}{{"name": "b{}"}})", i == 0 ? "" : ",", i);
  EXPECT_THAT(WhyNot(RouteJson(R"([{"backendRefs": [)" + refs + "]}]")),
              HasSubstr("has 17 backendRefs; the Gateway API allows 16"));
  EXPECT_THAT(WhyNot(RouteJson(R"([{"backendRefs": [{"name": "a", "weight": 1000001}]}])")),
              HasSubstr("weight: expected an integer from 0 to 1000000"));
  EXPECT_THAT(WhyNot(RouteJson("[{}]")), HasSubstr("has no backendRefs"));
  EXPECT_THAT(WhyNot(RouteJson("[]")), HasSubstr("has 0 rules"));
  EXPECT_THAT(WhyNot(RouteJson("[{}, {}]")), HasSubstr("choose one with --rule"));
  EXPECT_THAT(WhyNot(RouteJson(kTwoRefs), 1), HasSubstr("has no rule 1; it has 1 rule"));
  EXPECT_THAT(WhyNot("{}"), HasSubstr("httproute shop/web"));
  EXPECT_FALSE(WhyNot("[").empty());
}

TEST(HttpRoute, LeavesRulesOfOtherControllersAlone) {
  EXPECT_THAT(WhyNot(RouteJson(kTwoRefs, ManagedBy("rollouts", "f:rules"))),
              HasSubstr("belong to the field manager `rollouts`"));
  for (const char* manager : {"rudderfish", "kubectl-client-side-apply", "kubectl", "argo"})
    EXPECT_EQ(WhyNot(RouteJson(kTwoRefs, ManagedBy(manager, "f:rules"))), "") << manager;
  EXPECT_EQ(WhyNot(RouteJson(kTwoRefs, ManagedBy("dns", "f:hostnames"))), "");
}

TEST(HttpRoute, LeavesARouteAloneThatAControllerOwns) {
  const auto owned = [](const char* controller) {
    std::string json = RouteJson(kTwoRefs);
    const std::string version = R"("resourceVersion")";
    return json.insert(json.find(version),
                       fmt::format(R"("ownerReferences": [{{"kind": "Gateway", "name": "g"}},
                                   {{"kind": "Rollout", "name": "web", "controller": {}}}], )",
                                   controller));
  };
  EXPECT_EQ(WhyNot(owned("true")),
            "httproute shop/web: it belongs to Rollout/web, which would undo the change; "
            "change it there");
  EXPECT_EQ(WhyNot(owned("false")), "");
}

TEST(HttpRoute, TellsWhatGatewaysSay) {
  const auto notes = [](const std::string& conditions) {
    return ReadHttpRoute(RouteJson(kTwoRefs, "[]",
                                   R"({"parents": [{"controllerName": "gw", "conditions": )" +
                                       conditions + "}]}"),
                         ChoiceOf())
        ->notes;
  };
  EXPECT_THAT(notes(R"([{"type": "Accepted", "status": "True", "observedGeneration": 3}])"),
              IsEmpty());
  EXPECT_THAT(notes(R"([{"type": "Accepted", "status": "True", "observedGeneration": 2}])"),
              ElementsAre("gw has seen generation 2 of the route, not yet 3"));
  EXPECT_THAT(notes(R"([{"type": "ResolvedRefs", "status": "False", "reason": "NoSuch"}])"),
              ElementsAre("gw: ResolvedRefs is False (NoSuch)"));
  EXPECT_THAT(ReadHttpRoute(RouteJson(kTwoRefs), ChoiceOf())->notes,
              ElementsAre("no Gateway says that it has accepted the route"));
}

}  // namespace
}  // namespace rudderfish
