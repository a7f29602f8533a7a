// SPDX-License-Identifier: Apache-2.0
#include "compat/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "base/json.h"
#include "policy/registry.h"
#include "task/migration.h"
#include "tests/support/small_world.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using testing::kMib;

// Two layers 100 ms apart, a client at the edge that calls `shop`, which calls `store`.
ReachWorld TwoLayers() {
  testing::WorldBuilder builder;
  const LayerId cloud = builder.Layer("cloud"), edge = builder.Layer("edge");
  const LayerId outside = builder.Layer("client", false);
  for (const char* name : {"vm-cloud", "vm-cloud-8"}) builder.Kind(name, cloud);
  builder.Kind("vm-edge", edge, 1.5);
  builder.Kind("vm-client", outside);
  builder.LatencyBothWays(cloud, edge, 100);
  builder.LatencyBothWays(cloud, outside, 100);
  const WorkloadId client = builder.Workload("client", 100, 100, false);
  const WorkloadId shop = builder.Workload("shop", 500, 500);
  const WorkloadId store = builder.Workload("store", 500, 500);
  builder.Endpoint({.workload = client, .groups = {{{shop, 5, 0.1, {{{store, 5}}}}}}});
  const State state = builder.Build();
  return {.catalog = state.catalog, .calls = state.calls, .network = state.network};
}

// shop far away, store and the client near.
Json Request() {
  const auto node = [](std::string_view name, double cpu, double memory) {
    return Json{{"node_name", name}, {"cpu_availability", cpu}, {"memory_availability", memory}};
  };
  const auto pod = [](std::string_view name, std::string_view on) {
    return Json{{"node_name", on}, {"pod_name", name}};
  };
  Json nodes, services, deployable;
  nodes["vm-client-1"] = node("vm-client-1", 900, 4);
  nodes["vm-cloud-1"] = node("vm-cloud-1", 1500.7, 2.5);
  nodes["vm-cloud-8-1"] = node("vm-cloud-8-1", 7000, 8);
  for (const char* edge : {"vm-edge-1", "vm-edge-2"}) nodes[edge] = node(edge, 1500, 4);
  services["client"]["service_name"] = "client";
  services["shop"]["pods"] = {pod("shop-1", "vm-cloud-1"), pod("shop-2", "vm-cloud-1")};
  services["store"]["pods"] = Json::array({pod("store-1", "vm-edge-1")});
  services["client"]["pods"] = Json::array({pod("client-1", "vm-client-1")});
  deployable["client-1"] = {"vm-client-1", "vm-edge-1"};
  for (const char* name : {"shop-1", "shop-2", "store-1"}) {
    for (const auto& [where, unused] : nodes.items()) deployable[name].push_back(where);
  }
  return {{"cluster_state", {{"nodes", nodes}, {"services", services}}},
          {"pod_deployable", deployable}};
}

class Reach : public ::testing::Test {
 protected:
  explicit Reach(const std::string& policy = "greedy")
      : policy_(std::move(MakePolicy(policy, task_).value())) {}

  Result<ReachAnswer> Decide(const Json& request) {
    ReachPlans plans;
    return ReachAdviser(&world_, LatencyLaw::Reach(), &task_, policy_.get(), &plans)
        .Decide(request.dump());
  }
  std::string Refusal(const Json& request, ErrorCode code) {
    const Result<ReachAnswer> answer = Decide(request);
    if (answer.has_value()) return "was answered";
    EXPECT_EQ(answer.error().code, code) << answer.error().message;
    return answer.error().message;
  }

  ReachWorld world_ = TwoLayers();
  MigrationTask task_{{}};
  std::unique_ptr<Policy> policy_;
};

TEST_F(Reach, StateHasWhatTheRequestSays) {
  const Result<ReachRequest> request = ParseReachRequest(Request().dump());
  ASSERT_TRUE(request.has_value());
  State state;
  ReachMask mask;
  ASSERT_TRUE(BuildReachState(world_, *request, &state, &mask).has_value());
  CheckConsistent(state);
  ASSERT_EQ(state.nodes.size(), 5);
  EXPECT_EQ(state.names->nodes[1], "vm-cloud-1");
  EXPECT_EQ(state.kind_of(1).name, "vm-cloud");
  EXPECT_EQ(state.kind_of(2).name, "vm-cloud-8");  // The longest name that fits.
  EXPECT_EQ(state.nodes.free[1], (Resources{1500, 2560 * kMib}));
  EXPECT_EQ(state.nodes.allocatable[1], (Resources{2500, 3560 * kMib}));
  EXPECT_EQ(state.names->pods,
            (std::vector<std::string>{"client-1", "shop-1", "shop-2", "store-1"}));
  EXPECT_EQ(state.pods.node, (std::vector<NodeId>{0, 1, 1, 3}));
  EXPECT_TRUE(mask.Allows(1, 3));
  EXPECT_FALSE(mask.Allows(0, 1));
}

TEST_F(Reach, MovesThePodThatShortensCalls) {
  Json request = Request();
  request["cluster_state"]["services"]["shop"]["pods"].erase(1);
  const Result<ReachAnswer> answer = Decide(request);
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->pod, "shop-1");
  EXPECT_THAT(answer->target_node, HasSubstr("vm-edge-"));
}

TEST_F(Reach, StopsWhereNothingIsToBeGained) {
  Json request = Request();
  for (Json& pod : request["cluster_state"]["services"]["shop"]["pods"])
    pod["node_name"] = "vm-edge-2";
  const Result<ReachAnswer> answer = Decide(request);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->is_stop());
  EXPECT_EQ(ReachAnswerJson(*answer),
            "{\"is_stop\":true,\"pod_name\":\"\",\"target_node\":\"\"}\n");
}

TEST_F(Reach, AnswersWithTheKeysAndTypesOfItsServer) {
  EXPECT_EQ(ReachAnswerJson({.pod = "a-1", .target_node = "n\"1"}),
            "{\"is_stop\":false,\"pod_name\":\"a-1\",\"target_node\":\"n\\\"1\"}\n");
}

TEST_F(Reach, MovesOnlyWhereThePodMayGo) {
  Json request = Request();
  request["pod_deployable"]["shop-1"] = {"vm-cloud-8-1"};
  request["pod_deployable"]["store-1"] = {"vm-edge-2"};
  request["pod_deployable"]["shop-2"] = {"vm-edge-2", "a-node-that-just-left"};
  const Result<ReachAnswer> answer = Decide(request);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->pod, "shop-2");  // Not its equal before it.
  EXPECT_EQ(answer->target_node, "vm-edge-2");
  request["pod_deployable"]["shop-2"] = nullptr;
  request["pod_deployable"].erase("store-1");
  const Result<ReachAnswer> stuck = Decide(request);
  ASSERT_TRUE(stuck.has_value());
  EXPECT_TRUE(stuck->is_stop());
}

// Every policy that can be served keeps the mask, whatever its plans imagine.
TEST_F(Reach, EveryPolicyKeepsTheMask) {
  for (const std::string& name : std::vector<std::string>{
           "stay", "random", "kube-default", "least-allocated", "most-allocated", "greedy",
           "lookahead", "best-of:samples=4,run=" + SourcePath("policies/continuum.safetensors"),
           "lookahead:run=" + SourcePath("policies/continuum.safetensors"),
           SourcePath("policies/continuum.safetensors")}) {
    policy_ = std::move(MakePolicy(name, task_).value());
    Json request = Request();
    request["pod_deployable"] = {{"shop-2", {"vm-edge-2"}}, {"store-1", {"vm-cloud-8-1"}}};
    const Result<ReachAnswer> answer = Decide(request);
    ASSERT_TRUE(answer.has_value()) << name;
    EXPECT_TRUE(answer->is_stop() ||
                (answer->pod == "shop-2" && answer->target_node == "vm-edge-2") ||
                (answer->pod == "store-1" && answer->target_node == "vm-cloud-8-1"))
        << name << ": " << answer->pod << " -> " << answer->target_node;
  }
}

TEST_F(Reach, PendingAndManyPodsAreNoError) {
  Json request = Request();
  Json& pods = request["cluster_state"]["services"]["shop"]["pods"];
  pods.push_back({{"node_name", ""}, {"pod_name", "pending"}});
  for (int i = 0; i < 40; ++i)  // More than any scenario has replicas.
    pods.push_back({{"node_name", "vm-cloud-8-1"}, {"pod_name", fmt::format("more-{}", i)}});
  EXPECT_TRUE(Decide(request).has_value());
  request["cluster_state"]["services"]["store"]["pods"] = nullptr;
  EXPECT_TRUE(Decide(request).has_value());
  request["cluster_state"]["services"] = Json::object();
  const Result<ReachAnswer> nothing = Decide(request);
  ASSERT_TRUE(nothing.has_value());
  EXPECT_TRUE(nothing->is_stop());
}

TEST_F(Reach, FailedNodeTakesNothing) {
  Json request = Request();
  for (const char* node : {"vm-edge-1", "vm-edge-2"}) {
    request["cluster_state"]["nodes"][node]["cpu_availability"] = 0;
    request["cluster_state"]["nodes"][node]["memory_availability"] = 0;
  }
  const Result<ReachAnswer> answer = Decide(request);
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(answer->target_node, Not(HasSubstr("edge")));
}

TEST_F(Reach, SaysWhatDoesNotFitItsWorld) {
  Json request = Request();
  request["cluster_state"]["nodes"]["stranger"] = {{"cpu_availability", 1},
                                                   {"memory_availability", 1}};
  world_.strangers = ReachStrangers::kRefuse;
  EXPECT_THAT(Refusal(request, ErrorCode::kFailedPrecondition), HasSubstr("`stranger` is no node"));
  world_.strangers = ReachStrangers::kIgnore;
  EXPECT_TRUE(Decide(request).has_value());
  world_.kind_of_node.emplace("stranger", 0);
  world_.strangers = ReachStrangers::kRefuse;
  EXPECT_TRUE(Decide(request).has_value());

  request = Request();
  request["cluster_state"]["services"]["billing"] = {{"pods", Json::array()}};
  EXPECT_THAT(Refusal(request, ErrorCode::kFailedPrecondition),
              HasSubstr("`billing` is no workload"));
  world_.strangers = ReachStrangers::kIgnore;
  EXPECT_TRUE(Decide(request).has_value());
  request["cluster_state"]["services"]["shop"]["pods"][0]["node_name"] = "vm-edge-9";
  EXPECT_THAT(Refusal(request, ErrorCode::kFailedPrecondition), HasSubstr("runs on `vm-edge-9`"));
}

// A control plane with pods of its own, and a service that the scenario does not name.
TEST_F(Reach, LeavesOutWhatTheWorldDoesNotKnowAndNamesIt) {
  Json request = Request();
  Json& cluster = request["cluster_state"];
  cluster["nodes"]["control-plane-1"] = {{"cpu_availability", 9000}, {"memory_availability", 9}};
  cluster["services"]["billing"] = {{"pods", Json::array()}};
  cluster["services"]["store"]["pods"].push_back(
      {{"node_name", "control-plane-1"}, {"pod_name", "store-2"}});
  for (auto& [pod, nodes] : request["pod_deployable"].items()) nodes.push_back("control-plane-1");
  request["pod_deployable"]["store-2"] = {"vm-edge-1"};
  ReachPlans plans;
  ReachAdviser adviser(&world_, LatencyLaw::Reach(), &task_, policy_.get(), &plans);
  const Result<ReachAnswer> answer = adviser.Decide(request.dump());
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(ReachAnswerJson(*answer), ReachAnswerJson(*Decide(Request())));
  EXPECT_THAT(adviser.left_out(),
              ::testing::ElementsAre(HasSubstr("`billing`"), HasSubstr("`control-plane-1`"),
                                     HasSubstr("`store` on node `control-plane-1`")));
}

// What a client without memory does: it asks, moves, and asks again, as a plan's first question.
TEST_F(Reach, LeadsNoClientBackToWhereItWas) {
  for (const std::string& name : std::vector<std::string>{
           "random", "kube-default", "least-allocated", "most-allocated", "greedy", "lookahead",
           "best-of:samples=4,run=" + SourcePath("policies/continuum.safetensors"),
           SourcePath("policies/continuum.safetensors")}) {
    policy_ = std::move(MakePolicy(name, task_).value());
    ReachPlans plans;
    Json request = Request();
    Json& services = request["cluster_state"]["services"];
    std::set<std::string> placements;
    bool stops = false;
    for (int asked = 0; asked <= task_.max_steps() && !stops; ++asked) {
      // Another adviser each time, as another thread of the server would answer.
      ReachAdviser adviser(&world_, LatencyLaw::Reach(), &task_, policy_.get(), &plans);
      const Result<ReachAnswer> answer = adviser.Decide(request.dump());
      ASSERT_TRUE(answer.has_value()) << answer.error().message;
      std::multiset<std::string> placement;
      for (const auto& [service, unused] : services.items()) {
        for (Json& pod : services[service]["pods"]) {
          placement.insert(service + " on " + pod["node_name"].get<std::string>());
          if (!answer->is_stop() && pod["pod_name"] == answer->pod)
            pod["node_name"] = answer->target_node;  // The room stays as the request says.
        }
      }
      EXPECT_TRUE(placements.insert(fmt::format("{}", fmt::join(placement, ", "))).second)
          << name << " returns";
      stops = answer->is_stop();
    }
    EXPECT_TRUE(stops) << name;
  }
}

TEST_F(Reach, SaysWhatIsMalformed) {
  const auto refused = [&](const std::function<void(Json*)>& spoil) {
    Json request = Request();
    spoil(&request);
    return Refusal(request, ErrorCode::kInvalidArgument);
  };
  EXPECT_THAT(refused([](Json* j) { j->erase("pod_deployable"); }), HasSubstr("pod_deployable"));
  EXPECT_THAT(refused([](Json* j) { (*j)["pod_deployable"] = Json::array(); }),
              HasSubstr("object"));
  EXPECT_THAT(refused([](Json* j) { (*j)["pod_deployable"]["shop-1"] = "vm-edge-1"; }),
              HasSubstr("pod_deployable.shop-1"));
  EXPECT_THAT(refused([](Json* j) { j->erase("cluster_state"); }), HasSubstr("cluster_state"));
  EXPECT_THAT(refused([](Json* j) { *j = 7; }), HasSubstr("object"));
  EXPECT_THAT(refused([](Json* j) {
                (*j)["cluster_state"]["nodes"]["vm-edge-1"]["cpu_availability"] = "1500m";
              }),
              HasSubstr("cluster_state.nodes.vm-edge-1.cpu_availability"));
  EXPECT_THAT(refused([](Json* j) {
                (*j)["cluster_state"]["nodes"]["vm-edge-1"]["memory_availability"] = 1e300;
              }),
              HasSubstr("memory_availability"));
  EXPECT_THAT(refused([](Json* j) {
                (*j)["cluster_state"]["nodes"]["vm-edge-1"]["node_name"] = "vm-edge-2";
              }),
              HasSubstr("its key is `vm-edge-1`"));
  EXPECT_THAT(refused([](Json* j) {
                (*j)["cluster_state"]["services"]["store"]["pods"][0]["pod_name"] = "shop-1";
              }),
              HasSubstr("`shop-1` is given twice"));
  EXPECT_THAT(refused([](Json* j) {
                (*j)["cluster_state"]["services"]["store"]["pods"][0].erase("node_name");
              }),
              HasSubstr("node_name"));
}

TEST_F(Reach, TurnsErrorsIntoStatuses) {
  ReachServer server(&world_, LatencyLaw::Reach(), &task_, policy_.get(), 1);
  const auto status = [&](std::string_view type, const std::string& body) {
    const HttpResponse response =
        server.GetAction({.method = "POST", .content_type = type, .body = body});
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_EQ(Json::parse(response.body).contains("is_stop"), response.status == 200);
    return response.status;
  };
  EXPECT_EQ(status("application/json", Request().dump()), 200);
  EXPECT_EQ(status("Application/JSON ; charset=utf-8", Request().dump()), 200);
  EXPECT_EQ(status("text/plain", Request().dump()), 415);
  EXPECT_EQ(status("", Request().dump()), 415);
  EXPECT_EQ(status("application/json", "{"), 400);
  EXPECT_EQ(status("application/json", ""), 400);
  Json request = Request();
  request["cluster_state"]["services"]["billing"] = {{"pods", Json::array()}};
  EXPECT_EQ(status("application/json", request.dump()), 200);
  world_.strangers = ReachStrangers::kRefuse;
  EXPECT_EQ(status("application/json", request.dump()), 422);
}

TEST_F(Reach, AnswersDoNotDependOnEarlierRequests) {
  policy_ = std::move(MakePolicy("lookahead", task_).value());
  ReachPlans plans;
  ReachAdviser adviser(&world_, LatencyLaw::Reach(), &task_, policy_.get(), &plans);
  const Result<ReachAnswer> fresh = adviser.Decide(Request().dump());
  Json other = Request();
  other["cluster_state"]["nodes"].erase("vm-edge-2");
  other["cluster_state"]["services"]["shop"]["pods"].erase(0);
  ASSERT_TRUE(adviser.Decide(other.dump()).has_value());
  ASSERT_FALSE(adviser.Decide("{}").has_value());
  const Result<ReachAnswer> again = adviser.Decide(Request().dump());
  ASSERT_TRUE(fresh.has_value() && again.has_value());
  EXPECT_EQ(ReachAnswerJson(*again), ReachAnswerJson(*fresh));
}

}  // namespace
}  // namespace rudderfish
