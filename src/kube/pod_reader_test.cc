// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kube/object_reader.h"
#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::ParsedJson;
using rudderfish::testing::PodJson;

constexpr int64_t kMib = 1024 * 1024;

Result<Pod> PodOf(const std::string& text) {
  static auto* shapes = new PodShapes;
  const ParsedJson json(text);
  return ReadPod(json.root(), shapes);
}

Resources RequestsOf(const std::string& spec, const std::string& status = "{}") {
  const auto pod = PodOf(fmt::format(
      R"({{"metadata":{{"name":"p","namespace":"n"}},"spec":{},"status":{}}})", spec, status));
  EXPECT_TRUE(pod) << pod.error().message;
  return pod->shape->requests;
}

std::string ErrorOf(const std::string& text) {
  const auto pod = PodOf(text);
  return pod ? "none" : pod.error().message;
}

TEST(ReadPod, TakesWhatIsNeeded) {
  const auto pod = PodOf(PodJson{.name = "web-1",
                                 .owner = "web-abc",
                                 .node = "n1",
                                 .labels = R"({"app":"web"})",
                                 .more_metadata = R"(,"deletionTimestamp":"2026-11-21T09:30:00Z")"}
                             .Text());
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(KeyText(pod->meta.key), "default/web-1");
  EXPECT_EQ(pod->meta.uid, "uid-web-1");
  EXPECT_EQ(pod->node, "n1");
  EXPECT_EQ(pod->phase, PodPhase::kRunning);
  EXPECT_TRUE(pod->ready);
  EXPECT_TRUE(pod->occupies());
  EXPECT_FALSE(pod->counts()) << "it terminates";
  EXPECT_EQ(pod->shape->owner, (ObjectRef{"ReplicaSet", "web-abc", "u"}));
  EXPECT_EQ(pod->shape->requests, (Resources{100, 64 * kMib}));
  EXPECT_TRUE(pod->shape->obstacles.empty());
}

TEST(ReadPod, SharesWhatReplicasHaveInCommon) {
  const auto a = PodOf(PodJson{.name = "a", .owner = "rs"}.Text());
  const auto b = PodOf(PodJson{.name = "b", .owner = "rs"}.Text());
  const auto other = PodOf(PodJson{.name = "c", .owner = "rs", .cpu = "200m"}.Text());
  EXPECT_EQ(a->shape, b->shape);
  EXPECT_NE(a->shape, other->shape);
}

// Worked by hand after the rules of component-helpers/resource.PodRequests of Kubernetes 1.36.
TEST(ReadPod, CountsRequestsAsKubeSchedulerDoes) {
  EXPECT_EQ(RequestsOf(R"({"containers":[{"resources":{"requests":{"cpu":"1","memory":"1Mi"}}},
                                         {"resources":{"requests":{"cpu":"500m"}}}]})"),
            (Resources{1500, kMib}));
  EXPECT_EQ(RequestsOf(R"({"containers":[{"resources":{"requests":{"cpu":"1","memory":"1Mi"}}}],
              "initContainers":[{"resources":{"requests":{"cpu":"3"}}},
                                {"resources":{"requests":{"memory":"9Mi"}}}]})"),
            (Resources{3000, 9 * kMib}))
      << "the largest init container, if larger than all containers together";
  EXPECT_EQ(RequestsOf(R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
              "initContainers":[{"resources":{"requests":{"cpu":"2500m"}}},
                                {"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                                {"resources":{"requests":{"cpu":"1800m"}}}]})"),
            (Resources{2800, 0}))
      << "an init container runs beside the sidecars started before it";
  EXPECT_EQ(RequestsOf(R"({"overhead":{"cpu":"10m"},
              "containers":[{"resources":{"requests":{"cpu":"1"}}}]})"),
            (Resources{1010, 0}));
  EXPECT_EQ(RequestsOf(R"({"resources":{"requests":{"cpu":"4"}},
              "containers":[{"resources":{"requests":{"cpu":"1","memory":"1Mi"}}}]})"),
            (Resources{4000, kMib}))
      << "what is given for the pod replaces the sum";
  EXPECT_EQ(RequestsOf(R"({"containers":[{"resources":{"requests":{"memory":"1500m"}}},
                                         {"resources":{"requests":{"memory":"1500m"}}}]})"),
            (Resources{0, 3}))
      << "added before it is rounded";
}

TEST(ReadPod, CountsAResizeUnderWayWithTheLarger) {
  const std::string spec = R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]})";
  const std::string granted =
      R"("containerStatuses":[{"name":"a","allocatedResources":{"cpu":"3"},
          "resources":{"requests":{"cpu":"2"}}}])";
  EXPECT_EQ(RequestsOf(spec, "{" + granted + "}").cpu_millis, 3000);
  const std::string infeasible =
      R"(,"conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}])";
  const std::string large = R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"9"}}}]})";
  EXPECT_EQ(RequestsOf(large, "{" + granted + "}").cpu_millis, 9000);
  EXPECT_EQ(RequestsOf(large, "{" + granted + infeasible + "}").cpu_millis, 3000);
}

TEST(ReadPod, SaysWhatOfItsSchedulingIsNotModelled) {
  const auto obstacles = [](const std::string& more_spec) {
    const auto pod = PodOf(PodJson{.name = "p", .more_spec = more_spec}.Text());
    return fmt::format("{}", fmt::join(pod->shape->obstacles, "; "));
  };
  EXPECT_EQ(obstacles(""), "");
  EXPECT_EQ(obstacles(R"(,"nodeSelector":{"disk":"ssd"},"affinity":{})"), "");
  const auto term = [](const char* affinity, const char* list) {
    return fmt::format(R"(,"affinity":{{"{}":{{"{}DuringSchedulingIgnoredDuringExecution":[)",
                       affinity, list);
  };
  constexpr char kTerm[] = R"({"topologyKey":"zone","labelSelector":{}})";
  EXPECT_EQ(obstacles(term("podAntiAffinity", "required") + kTerm + "]}}"),
            "has required anti-affinity to other pods");
  EXPECT_EQ(obstacles(term("podAffinity", "required") + kTerm + "]}}"),
            "has required affinity to other pods");
  EXPECT_EQ(obstacles(term("podAntiAffinity", "preferred") + R"({"weight":1,"podAffinityTerm":)" +
                      kTerm + "}]}}"),
            "")
      << "a preference keeps it from no node";
  EXPECT_THAT(obstacles(term("podAffinity", "required") + R"({"topologyKey":7}]}})"),
              ::testing::StartsWith("cannot be judged: "))
      << "what it requests counts all the same";
  const auto spread = [](const char* when) {
    return fmt::format(R"(,"topologySpreadConstraints":[{{"maxSkew":1,"topologyKey":"zone",)"
                       R"("whenUnsatisfiable":"{}","labelSelector":{{}}}}])",
                       when);
  };
  EXPECT_EQ(obstacles(spread("DoNotSchedule")),
            "has topology spread constraints with DoNotSchedule");
  EXPECT_EQ(obstacles(spread("ScheduleAnyway")), "");
  EXPECT_EQ(obstacles(R"(,"hostNetwork":true)"), "uses the host's network");
  EXPECT_EQ(obstacles(R"(,"initContainers":[{"ports":[{"hostPort":80}],
                           "resources":{"requests":{"example.com/gpu":"1"}}}])"),
            "uses a port of its host; requests example.com/gpu");
  EXPECT_EQ(obstacles(R"(,"volumes":[{"hostPath":{"path":"/x"}},{"emptyDir":{}}])"),
            "mounts a folder of its host");
}

TEST(ReadPod, SaysWhichNodesItDemands) {
  const auto pod = PodOf(PodJson{
      .name = "p",
      .more_spec =
          R"(,"nodeSelector":{"disk":"ssd"},"affinity":{"nodeAffinity":{)"
          R"("requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)"
          R"({"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]},)"
          R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n9"]}]}]}}})"}
                             .Text());
  const NodeDemand& nodes = pod->shape->nodes;
  EXPECT_TRUE(nodes.Allows("n1", {{"disk", "ssd"}, {"zone", "b"}}));
  EXPECT_TRUE(nodes.Allows("n9", {{"disk", "ssd"}}));
  EXPECT_FALSE(nodes.Allows("n9", {{"disk", "hdd"}}));
  EXPECT_FALSE(nodes.Allows("n1", {{"disk", "ssd"}, {"zone", "c"}}));
  EXPECT_FALSE(nodes.empty());
  EXPECT_TRUE(PodOf(PodJson{.name = "q"}.Text())->shape->nodes.empty());
}

TEST(ReadPod, ADetachedPodNamesItsWorkload) {
  const auto pod = PodOf(
      PodJson{.name = "p",
              .more_metadata = R"(,"annotations":{"rudderfish.io/detached-from":"Deployment/web"})"}
          .Text());
  EXPECT_EQ(pod->shape->owner, (ObjectRef{"Deployment", "web", ""}));
}

TEST(ReadPod, AMalformedObjectIsAnErrorThatNamesIt) {
  EXPECT_EQ(ErrorOf(PodJson{.name = "p", .cpu = "much"}.Text()),
            "pod default/p: spec.containers[0].resources.requests.cpu: expected a quantity such as "
            "500m, 2 or 1.5Gi, found `much`");
  EXPECT_EQ(ErrorOf(PodJson{.name = "p", .labels = R"({"a":1})"}.Text()),
            "pod default/p: metadata.labels.a: expected text");
  EXPECT_EQ(ErrorOf(PodJson{.name = "p", .phase = "Sleeping"}.Text()),
            "pod default/p: status.phase: expected a phase of a pod, found `Sleeping`");
  EXPECT_EQ(ErrorOf(R"({"metadata":{}})"), "a pod without a name: metadata.name: is missing");
  EXPECT_EQ(ErrorOf(R"([])"), "a pod without a name: metadata.name: expected an object");
  EXPECT_EQ(ErrorOf(R"({"metadata":{"name":"p"},"spec":7})"), "pod p: spec: expected an object");
  EXPECT_EQ(ErrorOf(R"({"metadata":{"name":"p"},"spec":{"containers":{}}})"),
            "pod p: spec.containers: expected a list");
  EXPECT_EQ(ErrorOf(R"({"metadata":{"name":"p","creationTimestamp":"now"}})"),
            "pod p: metadata.creationTimestamp: expected a time such as 2026-11-21T09:30:00Z");
}

}  // namespace
}  // namespace rudderfish::kube
