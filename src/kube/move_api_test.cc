// SPDX-License-Identifier: Apache-2.0
#include "kube/move_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "tests/support/faulty_server.h"
#include "tests/support/polling.h"

namespace rudderfish::kube {
namespace {

using testing::Connection;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FaultyServer;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SeenRequest;

const std::string kMoveNamespace = "/api/v1/namespaces/shop";
const PodIdentity kMovedWeb{"shop", "web-1", "u1"};

// An API server that answers by path, without the query, and writes down what it is sent.
class MoveServer {
 public:
  MoveServer()
      : server_([this](const SeenRequest& request, Connection* to) { Serve(request, to); }) {
    client_ = testing::OpenClient({.server = server_.url()});
    Put(kMoveNamespace + "/pods/web-1", Pod("web-1", "u1", "node-1", ""));
    Put("/apis/apps/v1/namespaces/shop/replicasets/web-h",
        R"({"metadata":{"name":"web-h","uid":"rs","ownerReferences":[{"kind":"Deployment",
            "name":"web","uid":"d","controller":true}]},"spec":{"replicas":2,"selector":{
            "matchLabels":{"app":"web","pod-template-hash":"h"}}},"status":{"readyReplicas":2}})");
    Put("/apis/apps/v1/namespaces/shop/deployments/web",
        R"({"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,
            "updatedReplicas":2,"replicas":2}})");
    Put(kMoveNamespace + "/pods", R"({"items":[)" + Pod("web-1", "u1", "node-1", "") + "," +
                                      Pod("web-2", "u2", "node-2", "m1/node-2") + "]}");
    Put(kMoveNamespace + "/services",
        R"({"items":[{"metadata":{"name":"web"},"spec":{"selector":{"app":"web"}}},
            {"metadata":{"name":"other"},"spec":{"selector":{"app":"other"}}},
            {"metadata":{"name":"by-hand"},"spec":{}}]})");
    Put("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices",
        R"({"items":[{"metadata":{"labels":{"kubernetes.io/service-name":"web"}},"endpoints":[
            {"targetRef":{"uid":"u1"},"conditions":{"ready":true}},
            {"targetRef":{"uid":"u2"},"conditions":{"ready":false}},
            {"targetRef":{"uid":"u3"}}]}]})");
    Put("/apis/policy/v1/namespaces/shop/poddisruptionbudgets",
        R"({"items":[{"metadata":{"name":"web","generation":1},"spec":{"selector":{"matchLabels":
            {"app":"web"}}},"status":{"observedGeneration":1,"disruptionsAllowed":1}},
            {"metadata":{"name":"none"},"spec":{}}]})");
    Put("/api/v1/nodes/node-2",
        R"({"metadata":{"name":"node-2","labels":{"kubernetes.io/hostname":"host-2"}},
            "status":{"conditions":[{"type":"Ready","status":"True"}],"allocatable":{"cpu":"1",
            "memory":"1Gi","pods":"10"}}})");
    Put("/api/v1/namespaces/rudderfish/configmaps/rudderfish-moves",
        R"({"metadata":{"resourceVersion":"7"},"data":{"rs":"m1/node-2"}})");
  }

  static std::string Pod(const std::string& name, const std::string& uid, const std::string& node,
                         const std::string& replaces, const std::string& more = "") {
    return R"({"metadata":{"namespace":"shop","name":")" + name + R"(","uid":")" + uid +
           R"(","resourceVersion":"5","labels":{"app":"web","pod-template-hash":"h"},
                "annotations":{)" +
           (replaces.empty() ? "" : R"("rudderfish.io/replaces":")" + replaces + "\"") +
           R"(},"ownerReferences":[{"kind":"ReplicaSet","name":"web-h","uid":"rs",
             "controller":true}]},"spec":{"nodeName":")" +
           node + "\"" + more +
           R"(},"status":{"phase":"Running",
             "conditions":[{"type":"Ready","status":"True"}]}})";
  }

  void Put(const std::string& path, std::string body) {
    const std::lock_guard lock(mutex_);
    bodies_[path] = std::move(body);
  }
  void Refuse(int status) { refusal_ = status; }
  std::vector<SeenRequest> requests() const { return server_.requests(); }
  MoveApi Api() { return MoveApi(client_.get()); }

 private:
  void Serve(const SeenRequest& request, Connection* to) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (request.method != "GET") {
      to->Answer(refusal_ == 0 ? 200 : refusal_.load(), "{}");
      return;
    }
    const std::lock_guard lock(mutex_);
    const auto found = bodies_.find(path);
    to->Answer(found == bodies_.end() ? 404 : 200, found == bodies_.end() ? "{}" : found->second);
  }

  std::mutex mutex_;
  std::map<std::string, std::string> bodies_;
  std::atomic<int> refusal_ = 0;
  FaultyServer server_;
  std::unique_ptr<ApiClient> client_;
};

TEST(MoveApi, LooksAtAllThatAMoveDependsOn) {
  MoveServer server;
  MoveApi api = server.Api();
  const PodMove move{.id = "m1",
                     .target = "node-2",
                     .target_hostname = "node-2",
                     .replica_set = "web-h",
                     .replica_set_uid = "rs"};
  const auto view = api.Look(kMovedWeb, move, "node-2");
  ASSERT_TRUE(view.has_value()) << view.error().message;
  ASSERT_TRUE(view->pod.has_value());
  EXPECT_TRUE(view->pod->serves());
  EXPECT_EQ(view->pod->node, "node-1");
  EXPECT_TRUE(view->has_replica_set);
  EXPECT_EQ(view->wanted, 2);
  EXPECT_EQ(view->ready, 2);
  EXPECT_EQ(view->replicas.size(), 2);
  ASSERT_TRUE(view->replacement.has_value());
  EXPECT_EQ(view->replacement->id.name, "web-2");
  ASSERT_EQ(view->services.size(), 1);
  EXPECT_THAT(view->services[0].endpoints, ElementsAre("u1", "u2", "u3"));
  EXPECT_THAT(view->services[0].ready, ElementsAre("u1", "u3"));
  ASSERT_EQ(view->budgets.size(), 1);
  EXPECT_EQ(view->budgets[0].allowed, 1);
  EXPECT_TRUE(view->can_pin);
  EXPECT_EQ(view->pin, "m1/node-2");
  EXPECT_EQ(view->target_trouble, "");
}

TEST(MoveApi, AnotherPodOfThatNameIsNotThePod) {
  MoveServer server;
  MoveApi api = server.Api();
  const auto view = api.Look({"shop", "web-1", "u9"}, std::nullopt, "node-2");
  ASSERT_TRUE(view.has_value()) << view.error().message;
  EXPECT_FALSE(view->pod.has_value());
}

TEST(MoveApi, SaysWhatSpeaksAgainstAMove) {
  MoveServer server;
  MoveApi api = server.Api();
  const auto obstacles = [&] { return api.Look(kMovedWeb, std::nullopt, "node-2")->obstacles; };
  EXPECT_THAT(obstacles(), IsEmpty());
  server.Put("/apis/apps/v1/namespaces/shop/deployments/web",
             R"({"spec":{"replicas":3,"strategy":{"type":"Recreate"}},"status":{"replicas":2}})");
  EXPECT_THAT(obstacles(), Contains(HasSubstr("strategy Recreate")));
  EXPECT_THAT(obstacles(), Contains(HasSubstr("a rollout of Deployment web is in progress")));
  server.Put(kMoveNamespace + "/pods/web-1",
             MoveServer::Pod("web-1", "u1", "node-1", "",
                             R"(,"volumes":[{"hostPath":{"path":"/"}},
                                {"persistentVolumeClaim":{"claimName":"data"}}])"));
  server.Put(kMoveNamespace + "/persistentvolumeclaims/data",
             R"({"spec":{"accessModes":["ReadWriteOnce"]}})");
  EXPECT_THAT(obstacles(), Contains("mounts a folder of its host"));
  EXPECT_THAT(obstacles(), Contains(HasSubstr("claim data")));
  server.Put(kMoveNamespace + "/persistentvolumeclaims/data",
             R"({"spec":{"accessModes":["ReadWriteMany"]}})");
  EXPECT_THAT(obstacles(), ::testing::Not(Contains(HasSubstr("claim data"))));
}

TEST(MoveApi, WritesOnlyWhatItHasRead) {
  MoveServer server;
  MoveApi api = server.Api();
  const auto pod = api.FindPod("shop", "web-1");
  ASSERT_TRUE(pod.has_value()) << pod.error().message;
  auto move = api.Plan(*pod, "node-2", 1000, std::chrono::seconds(60));
  ASSERT_TRUE(move.has_value()) << move.error().message;
  EXPECT_EQ(move->workload, "Deployment/web");
  EXPECT_EQ(move->target_hostname, "host-2");
  EXPECT_EQ(move->deadline, 61'000);
  const auto view = api.Look(kMovedWeb, std::nullopt, "node-2");
  ASSERT_TRUE(view.has_value());
  ASSERT_TRUE(api.TakeLabels(*view, {"pod-template-hash"}, MoveStep::kDetach, &*move).has_value());
  EXPECT_THAT(move->removed,
              ElementsAre(std::pair<std::string, std::string>("pod-template-hash", "h")));
  std::string body = server.requests().back().body;
  EXPECT_THAT(body, HasSubstr(R"("resourceVersion":"5")"));
  EXPECT_THAT(body, HasSubstr(R"("pod-template-hash":null)"));
  EXPECT_THAT(body, HasSubstr("rudderfish.io/move"));
  ASSERT_TRUE(api.Restore(*view, *move).has_value());
  body = server.requests().back().body;
  EXPECT_THAT(body, HasSubstr(R"("pod-template-hash":"h")"));
  EXPECT_THAT(body, HasSubstr(R"("rudderfish.io/move":null)"));
  ASSERT_TRUE(api.Unpin(*move).has_value());
  EXPECT_THAT(server.requests().back().body, HasSubstr(R"("resourceVersion":"7")"));
  EXPECT_THAT(server.requests().back().body, HasSubstr(R"("rs":null)"));
  ASSERT_TRUE(api.Evict(*view).has_value());
  EXPECT_THAT(server.requests().back().target, HasSubstr("/pods/web-1/eviction"));
  EXPECT_THAT(server.requests().back().body, HasSubstr(R"("uid":"u1")"));
  server.Refuse(409);
  PodMove before = *move;
  EXPECT_EQ(api.TakeLabels(*view, {"app"}, MoveStep::kDrain, &*move).error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(*move, before);
  server.Refuse(429);
  EXPECT_EQ(api.Evict(*view).error().code, ErrorCode::kFailedPrecondition);
}

TEST(MoveApi, ListsPodsThatSayTheyAreMoved) {
  MoveServer server;
  server.Put("/api/v1/pods",
             R"({"items":[{"metadata":{"namespace":"shop","name":"a","uid":"1","annotations":
                {"rudderfish.io/move":"{}"}}},
                {"metadata":{"namespace":"shop","name":"b","uid":"2"}}]})");
  MoveApi api = server.Api();
  const auto listed = api.List();
  ASSERT_TRUE(listed.has_value()) << listed.error().message;
  ASSERT_EQ(listed->size(), 2);
  EXPECT_FALSE((*listed)[0].move.has_value());
  EXPECT_THAT((*listed)[0].unreadable, HasSubstr("id"));
  EXPECT_THAT(server.requests().back().target, HasSubstr("labelSelector=rudderfish.io%2Fmove"));
}

TEST(MoveApi, LinesWhosePodsAreGoneAreLeft) {
  MoveServer server;
  server.Put(
      "/api/v1/namespaces/rudderfish/configmaps/rudderfish-moves",
      R"({"metadata":{"resourceVersion":"7"},"data":{"rs":"m1/host-1","other":"m2/host-2"}})");
  PodMove move{.id = "m2", .target = "n", .target_hostname = "host-2"};
  std::string text;
  for (const char c : PodMoveText(move)) text += c == '"' ? "\\\"" : std::string(1, c);
  server.Put("/api/v1/pods", R"({"items":[{"metadata":{"namespace":"shop","name":"a","uid":"1",
                 "annotations":{"rudderfish.io/move":")" +
                                 text + R"("}}}]})");
  MoveApi api = server.Api();
  const auto left = api.LeftPins();
  ASSERT_TRUE(left.has_value()) << left.error().message;
  ASSERT_EQ(left->size(), 1);
  EXPECT_EQ((*left)[0].replica_set_uid, "rs");
  EXPECT_EQ((*left)[0].move_id, "m1");
  EXPECT_EQ((*left)[0].hostname, "host-1");
  ASSERT_TRUE(api.Remove((*left)[0]).has_value());
  EXPECT_THAT(server.requests().back().body, HasSubstr(R"("rs":null)"));
  EXPECT_THAT(server.requests().back().body, HasSubstr(R"("resourceVersion":"7")"));
}

}  // namespace
}  // namespace rudderfish::kube
