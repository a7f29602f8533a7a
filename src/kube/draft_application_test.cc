// SPDX-License-Identifier: Apache-2.0
#include "kube/draft_application.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/dump.h"
#include "kube/kube_cluster.h"
#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::ControllerJson;
using rudderfish::testing::ListJson;
using rudderfish::testing::NodeJson;
using rudderfish::testing::PodJson;
using ::testing::ElementsAre;

class DraftApplicationTest : public ::testing::Test {
 protected:
  Result<Application> Draft(const std::vector<std::string>& items,
                            const std::set<std::string>& namespaces = {}) {
    for (int i = 0; i < kMirroredCount; ++i) Sink(i)->BeginList();
    DumpContent content;
    const auto read = ReadDump(ListJson(items), "dump", &mirror_, &content);
    EXPECT_TRUE(read) << read.error().message;
    for (int i = 0; i < kMirroredCount; ++i) Sink(i)->EndList();
    return DraftApplication(mirror_, namespaces);
  }
  ObjectSink* Sink(int i) { return mirror_.SinkOf(static_cast<Resource>(i)); }

  static std::vector<std::string> TwoZones() {
    const auto labels = [](const char* zone, const char* type) {
      return fmt::format(R"({{"topology.kubernetes.io/zone":"{}",)"
                         R"("node.kubernetes.io/instance-type":"{}"}})",
                         zone, type);
    };
    return {
        NodeJson{.name = "a1", .labels = labels("a", "large")}.Text(),
        NodeJson{.name = "b1", .labels = labels("b", "large")}.Text(),
        NodeJson{.name = "b2"}.Text(),
        ControllerJson("ReplicaSet", "web-1", 1, "Deployment", "web"),
        PodJson{.name = "web-1-x", .owner = "web-1", .node = "a1"}.Text(),
        PodJson{.name = "db-0", .owner_kind = "StatefulSet", .owner = "db", .node = "b1"}.Text(),
        PodJson{.name = "alone", .node = "b1"}.Text(),
        PodJson{.name = "waits", .owner = "later"}.Text(),
        PodJson{.name = "dns", .object_namespace = "kube-system", .owner = "dns", .node = "a1"}
            .Text()};
  }

  ManualClock clock_;
  Mirror mirror_{&clock_};
};

TEST_F(DraftApplicationTest, TakesLayersFromZonesAndWorkloadsFromControllers) {
  const auto draft = Draft(TwoZones());
  ASSERT_TRUE(draft) << draft.error().message;
  const Catalog& catalog = *draft->catalog;
  std::vector<std::string> layers, kinds, workloads;
  for (const Layer& layer : catalog.layers) layers.push_back(layer.name);
  for (const NodeKind& kind : catalog.kinds) kinds.push_back(kind.name);
  for (const Workload& workload : catalog.workloads) workloads.push_back(workload.name);
  EXPECT_THAT(layers, ElementsAre("a", "b", "cluster", "outside"));
  EXPECT_THAT(kinds, ElementsAre("a-large", "b-large", "cluster-node", "outside"));
  EXPECT_THAT(workloads, ElementsAre("db", "web", "outside"));
}

TEST_F(DraftApplicationTest, MakesAStateOfAllItsNodes) {
  const auto draft = Draft(TwoZones());
  ASSERT_TRUE(draft) << draft.error().message;
  KubeCluster cluster(&mirror_, std::make_shared<const Application>(*draft));
  State state;
  const auto refreshed = cluster.Refresh(&state);
  ASSERT_TRUE(refreshed) << refreshed.error().message;
  CheckConsistent(state);
  EXPECT_THAT(state.names->nodes, ElementsAre("a1", "b1", "b2", "external-outside"));
  EXPECT_THAT(state.names->pods, ElementsAre("db-0", "web-1-x", "outside"));
}

TEST_F(DraftApplicationTest, TakesTheNamespacesChosen) {
  const auto draft = Draft(TwoZones(), {"kube-system"});
  ASSERT_TRUE(draft) << draft.error().message;
  EXPECT_EQ(draft->objects[0], (WorkloadObject{"ReplicaSet", "kube-system", "dns"}));
  EXPECT_EQ(Draft(TwoZones(), {"nowhere"}).error().message,
            "no running pods owned by a controller in the selected namespaces");
}

TEST_F(DraftApplicationTest, SaysThatThereAreTooManyZones) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 40; ++i) {
    nodes.push_back(NodeJson{.name = fmt::format("n{}", i),
                             .labels = fmt::format(R"({{"topology.kubernetes.io/zone":"z{}"}})", i)}
                        .Text());
  }
  EXPECT_EQ(Draft(nodes).error().message,
            "40 zones with 40 kinds of node are more than a scenario can have (31 and 63); "
            "describe an application with fewer");
}

}  // namespace
}  // namespace rudderfish::kube
