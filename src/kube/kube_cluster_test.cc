// SPDX-License-Identifier: Apache-2.0
#include "kube/kube_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "base/timestamp.h"
#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::ControllerJson;
using rudderfish::testing::NodeJson;
using rudderfish::testing::ParsedJson;
using rudderfish::testing::PodJson;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMib = 1024 * 1024;

LabelSelector ZoneIs(const char* zone) {
  return {{{.key = "zone", .op = LabelRequirement::Operator::kIn, .values = {zone}}}};
}

// Users outside, who call the Deployment web, which calls the Deployment db.
std::shared_ptr<const Application> Shop() {
  Catalog catalog;
  catalog.layers = {{"cloud"}, {"edge"}, {"users", false}};
  catalog.kinds = {{"big", 0, "x", 100}, {"small", 1, "x", 50}, {"phone", 2, "x", 10}};
  catalog.workloads = {
      {.name = "users", .movable = false}, {.name = "web"}, {.name = "db", .movable = true}};
  CallGraph calls;
  calls.name = "shop";
  calls.calls = {{.workload = 0, .first_group = 0, .last_group = 1}, {.workload = 1, .caller = 0}};
  calls.groups = {{0, 1}};
  calls.sequence = {1};
  calls.endpoints = {{.name = "buy", .root = 0, .end = 2, .rate_per_second = 1, .qos_ms = 100}};
  calls.kind_count = 3;
  calls.execution_ms.assign(6, 1.0);
  auto application = std::make_shared<Application>();
  application->name = "shop";
  application->catalog = std::make_shared<const Catalog>(catalog);
  application->calls = std::make_shared<const CallGraph>(calls);
  application->network = {3, std::vector<double>(9, 1.0)};
  application->kind_nodes = {ZoneIs("cloud"), ZoneIs("edge"), ZoneIs("nowhere")};
  application->kind_costs.resize(3);
  application->objects = {{}, {"Deployment", "default", "web"}, {"Deployment", "default", "db"}};
  application->external_layers = {2, kNone, kNone};
  return application;
}

NodeJson CloudNode(const std::string& name) {
  return {.name = name, .labels = R"({"zone":"cloud"})"};
}

class KubeClusterTest : public ::testing::Test {
 protected:
  KubeClusterTest() {
    Put(Resource::kNodes, CloudNode("n2").Text());
    Put(Resource::kNodes, CloudNode("n1").Text());
    Put(Resource::kNodes, NodeJson{.name = "e1", .labels = R"({"zone":"edge"})"}.Text());
    Put(Resource::kNodes, NodeJson{.name = "other"}.Text());
    for (const char* name : {"web", "db"}) {
      Put(Resource::kReplicaSets,
          ControllerJson("ReplicaSet", fmt::format("{}-rs", name), 1, "Deployment", name));
    }
    Put(Resource::kPods, PodJson{.name = "web-b", .owner = "web-rs", .node = "n1"}.Text());
    Put(Resource::kPods, PodJson{.name = "web-a", .owner = "web-rs", .node = "n2"}.Text());
    Put(Resource::kPods, PodJson{.name = "db-a", .owner = "db-rs", .node = "e1"}.Text());
    Put(Resource::kPods, PodJson{.name = "stranger", .node = "n1", .cpu = "1"}.Text());
    Sync();
  }

  void Put(Resource resource, const std::string& text) {
    const ParsedJson json(text);
    const auto put = mirror_.SinkOf(resource)->Changed(json.root());
    ASSERT_TRUE(put) << put.error().message;
  }
  void Delete(Resource resource, const std::string& text) {
    const ParsedJson json(text);
    ASSERT_TRUE(mirror_.SinkOf(resource)->Deleted(json.root()));
  }
  // As a list that tells what is there already.
  void Sync() {
    for (const Resource resource : {Resource::kNodes, Resource::kPods, Resource::kReplicaSets}) {
      mirror_.SetSynced(resource);
      mirror_.SetFreshAt(resource, clock_.Now());
    }
  }
  State Refreshed() {
    const auto refreshed = cluster_.Refresh(&state_);
    EXPECT_TRUE(refreshed) << refreshed.error().message;
    if (refreshed) CheckConsistent(state_);
    return state_;
  }
  std::string Failure() {
    const auto refreshed = cluster_.Refresh(&state_);
    return refreshed ? "none" : refreshed.error().message;
  }

  ManualClock clock_{Instant(std::chrono::hours(1))};
  Mirror mirror_{&clock_};
  KubeCluster cluster_{&mirror_, Shop()};
  State state_;
};

TEST_F(KubeClusterTest, FillsAStateInCanonicalOrder) {
  const State state = Refreshed();
  EXPECT_THAT(state.names->nodes, ElementsAre("e1", "external-users", "n1", "n2"));
  EXPECT_THAT(state.names->addresses, ElementsAre("10.0.0.1", "", "10.0.0.1", "10.0.0.1"));
  EXPECT_THAT(state.nodes.kind, ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(state.names->pods, ElementsAre("users", "web-a", "web-b", "db-a"));
  EXPECT_THAT(state.pods.workload, ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(state.pods.node, ElementsAre(1, 3, 2, 0));
  EXPECT_EQ(state.catalog->workloads[1].requests, (Resources{100, 64 * kMib}));
  EXPECT_EQ(state.catalog->workloads[1].replicas_max, 2);
  EXPECT_TRUE(state.catalog->workloads[1].movable);
  EXPECT_EQ(state.nodes.allocatable[0], (Resources{4000, 8192 * kMib}));
  EXPECT_EQ(state.nodes.free[0], (Resources{3900, 8128 * kMib}));
  EXPECT_EQ(state.nodes.allocatable[1], Resources{}) << "outside";
  EXPECT_EQ(state.nodes.allocatable[2], (Resources{3000, 8128 * kMib})) << "less the stranger";
  EXPECT_EQ(state.at, std::chrono::hours(1));
  EXPECT_EQ(state.version, 1u);
}

TEST_F(KubeClusterTest, TheVersionGrowsOnlyWithWhatDiffers) {
  Refreshed();
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Refreshed().version, 1u);
  EXPECT_EQ(state_.at, std::chrono::hours(1) + std::chrono::seconds(1));
  Put(Resource::kPods,
      PodJson{.name = "done", .node = "n1", .cpu = "2", .phase = "Succeeded"}.Text());
  EXPECT_EQ(Refreshed().version, 1u) << "a pod that has ended takes nothing";
  Put(Resource::kPods, PodJson{.name = "web-c", .owner = "web-rs", .node = "n2"}.Text());
  EXPECT_EQ(Refreshed().version, 2u);
  EXPECT_THAT(state_.names->pods, ElementsAre("users", "web-a", "web-b", "web-c", "db-a"));
}

TEST_F(KubeClusterTest, ATerminatingPodTakesRoomButIsNoReplica) {
  Put(Resource::kPods, PodJson{.name = "web-c",
                               .owner = "web-rs",
                               .node = "n2",
                               .more_metadata = R"(,"deletionTimestamp":"2026-11-21T09:30:00Z")"}
                           .Text());
  const State state = Refreshed();
  EXPECT_EQ(state.pods.size(), 4);
  EXPECT_EQ(state.nodes.free[3].cpu_millis, 3800);
}

TEST_F(KubeClusterTest, ANodeThatTakesNoPodsHasNothingFree) {
  const auto closed = [&](NodeJson node) {
    Put(Resource::kNodes, node.Text());
    const State state = Refreshed();
    EXPECT_EQ(state.nodes.free[3], Resources{});
    EXPECT_EQ(state.nodes.allocatable[3], (Resources{100, 64 * kMib})) << "what web-a asks for";
    return cluster_.closed_because(3);
  };
  NodeJson node = CloudNode("n2");
  node.spec = R"({"unschedulable":true})";
  EXPECT_EQ(closed(node), "cordoned");
  node.spec = R"({"taints":[{"key":"gpu","effect":"NoSchedule"}]})";
  EXPECT_EQ(closed(node), "tainted gpu:NoSchedule");
  node.spec = "{}";
  node.ready = false;
  EXPECT_EQ(closed(node), "not ready");
  node.ready = true;
  node.pods = "1";
  EXPECT_EQ(closed(node), "full with 1 pods");
  node.pods = "110";
  node.spec = R"({"taints":[{"key":"gpu","effect":"PreferNoSchedule"}]})";
  Put(Resource::kNodes, node.Text());
  EXPECT_EQ(Refreshed().nodes.free[3].cpu_millis, 3900);
}

TEST_F(KubeClusterTest, ATaintCountsUnlessEveryMovableWorkloadToleratesIt) {
  NodeJson node = CloudNode("n2");
  node.spec = R"({"taints":[{"key":"gpu","value":"a","effect":"NoSchedule"}]})";
  Put(Resource::kNodes, node.Text());
  const std::string tolerates = R"(,"tolerations":[{"key":"gpu","operator":"Exists"}])";
  for (const auto& [name, on] : {std::pair("web-a", "n2"), std::pair("web-b", "n1")}) {
    Put(Resource::kPods,
        PodJson{.name = name, .owner = "web-rs", .node = on, .more_spec = tolerates}.Text());
  }
  EXPECT_EQ(Refreshed().nodes.free[3], Resources{}) << "db does not";
  Put(Resource::kPods,
      PodJson{.name = "db-a", .owner = "db-rs", .node = "e1", .more_spec = tolerates}.Text());
  EXPECT_EQ(Refreshed().nodes.free[3].cpu_millis, 3900);
}

TEST_F(KubeClusterTest, WhatIsNotModelledIsNotMoved) {
  Put(Resource::kPods,
      PodJson{
          .name = "web-b", .owner = "web-rs", .node = "n1", .more_spec = R"(,"hostNetwork":true)"}
          .Text());
  EXPECT_FALSE(Refreshed().catalog->workloads[1].movable);
  EXPECT_THAT(cluster_.obstacles(1), ElementsAre("uses the host's network"));
  EXPECT_TRUE(state_.catalog->workloads[2].movable);
}

TEST_F(KubeClusterTest, AWorkloadIsMovedWhereItMayBeOnEveryNodeThatPodsAreMovedTo) {
  const auto select = [&](const char* what, const char* more = "") {
    Put(Resource::kPods, PodJson{.name = "db-a",
                                 .owner = "db-rs",
                                 .node = "e1",
                                 .more_spec = std::string(R"(,"nodeSelector":)") + what + more}
                             .Text());
  };
  const auto is_movable = [&] { return Refreshed().catalog->workloads[2].movable; };
  select(R"({"disk":"ssd"})");
  EXPECT_FALSE(is_movable());
  ASSERT_EQ(cluster_.obstacles(2).size(), 1u);
  EXPECT_THAT(cluster_.obstacles(2)[0],
              ::testing::MatchesRegex("its node selector or node affinity allows 0 of . nodes"));
  for (const auto& [key, node] : mirror_.nodes.objects()) {
    const std::string* zone = FindLabel(node.labels, "zone");
    if (zone == nullptr) continue;  // Of no kind.
    EXPECT_FALSE(is_movable());
    NodeJson labelled{.name = key.name, .labels = R"({"disk":"ssd","zone":")" + *zone + R"("})"};
    labelled.spec = R"({"unschedulable":true})";
    Put(Resource::kNodes, labelled.Text());
  }
  EXPECT_TRUE(is_movable()) << "looked at again as nodes differ";
  Put(Resource::kNodes, CloudNode("n1").Text());
  EXPECT_FALSE(is_movable());
  select("{}", R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
               R"({"nodeSelectorTerms":[{"matchExpressions":[)"
               R"({"key":"zone","operator":"Exists"}]}]}}})");
  EXPECT_TRUE(is_movable());
}

TEST_F(KubeClusterTest, AWorkloadWhoseControllerOptsOutIsNotMoved) {
  EXPECT_TRUE(Refreshed().catalog->workloads[1].movable);
  const std::string deployment = ControllerJson("Deployment", "web");
  const std::string annotated =
      std::string(deployment)
          .replace(deployment.find(R"("metadata":{)"), 12,
                   R"("metadata":{"annotations":{"rudderfish.io/do-not-move":"TRUE"},)");
  Put(Resource::kDeployments, annotated);
  EXPECT_FALSE(Refreshed().catalog->workloads[1].movable);
  EXPECT_THAT(cluster_.obstacles(1),
              ElementsAre("its Deployment is annotated rudderfish.io/do-not-move=TRUE"));
  EXPECT_TRUE(state_.catalog->workloads[2].movable);
  Put(Resource::kDeployments, deployment);
  EXPECT_TRUE(Refreshed().catalog->workloads[1].movable);
}

TEST_F(KubeClusterTest, AnOptOutOfSomeTimeEndsByItself) {
  const auto annotated = [&](const std::string& text) {
    Put(Resource::kPods,
        PodJson{
            .name = "db-a",
            .owner = "db-rs",
            .node = "e1",
            .more_metadata = R"(,"annotations":{"karpenter.sh/do-not-disrupt":")" + text + R"("})"}
            .Text());
    return Refreshed().catalog->workloads[2].movable;
  };
  EXPECT_FALSE(annotated("30m")) << "it has not started";
  const auto started = [&](const std::string& text, int64_t seconds_ago) {
    std::string pod =
        PodJson{
            .name = "db-a",
            .owner = "db-rs",
            .node = "e1",
            .more_metadata = R"(,"annotations":{"karpenter.sh/do-not-disrupt":")" + text + R"("})"}
            .Text();
    const std::string at = R"("status":{"startTime":")" +
                           ToMicroTime(Today() - std::chrono::seconds(seconds_ago)) + R"(",)";
    pod.replace(pod.find(R"("status":{)"), 10, at);
    Put(Resource::kPods, pod);
    return Refreshed().catalog->workloads[2].movable;
  };
  EXPECT_FALSE(started("30m", 60));
  EXPECT_TRUE(started("30m", 3600));
  EXPECT_FALSE(started("half an hour", 3600));
}

TEST_F(KubeClusterTest, AVolumeBoundToNodesHoldsItsPod) {
  const std::string claim = R"(,"volumes":[{"persistentVolumeClaim":{"claimName":"data"}}])";
  Put(Resource::kPods,
      PodJson{.name = "db-a", .owner = "db-rs", .node = "e1", .more_spec = claim}.Text());
  EXPECT_FALSE(Refreshed().catalog->workloads[2].movable);
  EXPECT_THAT(cluster_.obstacles(2), ElementsAre("uses the claim data, whose volume is not known"));
  Put(Resource::kPersistentVolumeClaims,
      R"({"metadata":{"name":"data","namespace":"default"},"spec":{"volumeName":"v"}})");
  Put(Resource::kPersistentVolumes, R"({"metadata":{"name":"v"},"spec":{}})");
  EXPECT_TRUE(Refreshed().catalog->workloads[2].movable) << "a volume of the network";
  Put(Resource::kPersistentVolumes, R"({"metadata":{"name":"v"},"spec":{"local":{"path":"/d"}}})");
  EXPECT_FALSE(Refreshed().catalog->workloads[2].movable);
}

TEST_F(KubeClusterTest, AWorkloadCountsWithTheMostThatOneOfItsPodsRequests) {
  Put(Resource::kPods,
      PodJson{.name = "web-b", .owner = "web-rs", .node = "n1", .cpu = "250m"}.Text());
  const State state = Refreshed();
  EXPECT_EQ(state.catalog->workloads[1].requests.cpu_millis, 250);
  EXPECT_EQ(state.nodes.free[3].cpu_millis, 3900) << "what is free is what is";
  EXPECT_EQ(state.nodes.free[2].cpu_millis, 4000 - 1000 - 250);
}

TEST_F(KubeClusterTest, SaysWhyThereIsNoState) {
  Refreshed();
  const State before = state_;
  Delete(Resource::kPods, PodJson{.name = "db-a"}.Text());
  EXPECT_EQ(Failure(),
            "Deployment default/db of the application shop has no pod on a node; no decision "
            "without it");
  EXPECT_EQ(state_.version, before.version);
  EXPECT_EQ(state_.pods.node, before.pods.node);
  Put(Resource::kPods, PodJson{.name = "db-a", .owner = "db-rs", .node = "other"}.Text());
  EXPECT_THAT(Failure(), HasSubstr("default/db-a of the application shop is on the node other"));
  Put(Resource::kPods, PodJson{.name = "db-a", .owner = "db-rs", .node = "e1"}.Text());
  EXPECT_EQ(Failure(), "none");
}

TEST_F(KubeClusterTest, RefusesWhatIsTooOld) {
  Refreshed();
  clock_.Advance(std::chrono::seconds(30));
  EXPECT_EQ(Failure(), "none");
  clock_.Advance(std::chrono::seconds(1));
  mirror_.SetFreshAt(Resource::kNodes, clock_.Now());
  EXPECT_EQ(Failure(),
            "what is known of the pods of the cluster is 31 s old, more than the limit of 30 s");
  Sync();
  EXPECT_EQ(Failure(), "none");
  Mirror empty(&clock_);
  KubeCluster unlisted(&empty, Shop());
  State state;
  EXPECT_EQ(unlisted.Refresh(&state).error().message,
            "the nodes of the cluster have not been listed yet");
}

TEST_F(KubeClusterTest, APodJoinsWhenItsReplicaSetComesToBeKnown) {
  Put(Resource::kPods, PodJson{.name = "web-new", .owner = "web-2", .node = "n2"}.Text());
  EXPECT_EQ(Refreshed().pods.size(), 4);
  Put(Resource::kReplicaSets, ControllerJson("ReplicaSet", "web-2", 1, "Deployment", "web"));
  EXPECT_EQ(Refreshed().pods.size(), 5);
  Delete(Resource::kReplicaSets, ControllerJson("ReplicaSet", "web-2"));
  EXPECT_EQ(Refreshed().pods.size(), 4);
}

TEST_F(KubeClusterTest, ADetachedPodStaysAReplicaOfItsDeployment) {
  Put(Resource::kPods,
      PodJson{.name = "web-a",
              .node = "n2",
              .more_metadata = R"(,"annotations":{"rudderfish.io/detached-from":"Deployment/web"})"}
          .Text());
  EXPECT_THAT(Refreshed().names->pods, ElementsAre("users", "web-a", "web-b", "db-a"));
}

TEST_F(KubeClusterTest, TakesTheNetworkAsMeasured) {
  Refreshed();
  cluster_.SetNetwork({3, std::vector<double>(9, 7.5)});
  EXPECT_EQ(Refreshed().network.LatencyMs(0, 1), 7.5);
  EXPECT_EQ(state_.version, 2u);
}

TEST_F(KubeClusterTest, RefusesToAct) {
  const State state = Refreshed();
  const auto outcome = [&](Migrate move, uint64_t version) {
    const Intent intent{move, {.state_version = version, .pod_was_on = move.from}};
    Completions completions;
    cluster_.Submit({&intent, 1}, &completions);
    EXPECT_EQ(completions.size(), 1u);
    return completions[0].outcome.error();
  };
  EXPECT_EQ(outcome({1, 3, 0}, 1).code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(outcome({1, 3, 0}, 1).message, "the cluster is read-only: web-a stays on n2");
  EXPECT_EQ(outcome({1, 2, 0}, 1).code, ErrorCode::kConflict) << "it was never there";
  EXPECT_EQ(outcome({1, 3, 0}, 0).code, ErrorCode::kConflict) << "ids of another version";
  EXPECT_EQ(outcome({9, 3, 0}, 1).code, ErrorCode::kConflict);
  EXPECT_EQ(outcome({1, 3, 9}, 1).code, ErrorCode::kConflict);
  Delete(Resource::kPods, PodJson{.name = "web-a"}.Text());
  EXPECT_EQ(outcome({1, 3, 0}, 1).code, ErrorCode::kConflict) << "gone, though not yet refreshed";
}

// What is kept up to date must equal what is read from scratch.
TEST_F(KubeClusterTest, FollowsRandomChangesAsIfItReadEverythingAgain) {
  Rng rng(7, 0);
  const char* nodes[] = {"n1", "n2", "e1", "other", ""};
  const char* owners[] = {"web-rs", "db-rs", "late-rs", ""};
  const char* phases[] = {"Running", "Pending", "Succeeded"};
  for (int step = 0; step < 2000; ++step) {
    const PodJson pod{.name = fmt::format("p{}", rng.Below(12)),
                      .owner = owners[rng.Below(4)],
                      .node = nodes[rng.Below(5)],
                      .cpu = rng.Below(4) == 0 ? "200m" : "100m",
                      .phase = phases[rng.Below(3)]};
    const std::string late = ControllerJson("ReplicaSet", "late-rs", 1, "Deployment", "db");
    switch (rng.Below(8)) {
      case 0:
        Put(Resource::kReplicaSets, late);
        break;
      case 1:
        Delete(Resource::kReplicaSets, late);
        break;
      case 2:
      case 3:
        Delete(Resource::kPods, pod.Text());
        break;
      default:
        Put(Resource::kPods, pod.Text());
    }
    State kept, fresh;
    const auto refreshed = cluster_.Refresh(&kept);
    KubeCluster other(&mirror_, Shop());
    const auto read = other.Refresh(&fresh);
    ASSERT_EQ(refreshed.has_value(), read.has_value());
    if (!read) continue;
    CheckConsistent(kept);
    ASSERT_EQ(kept.names->pods, fresh.names->pods);
    ASSERT_EQ(kept.pods.node, fresh.pods.node);
    ASSERT_EQ(kept.nodes.free, fresh.nodes.free);
    ASSERT_EQ(kept.nodes.allocatable, fresh.nodes.allocatable);
  }
}

}  // namespace
}  // namespace rudderfish::kube
