// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "kube/cluster_feed.h"
#include "kube/dump.h"
#include "kube/kubeconfig.h"
#include "tests/support/testbed.h"

// The mirror beside what the API server itself says: random histories of objects with watches cut
// meanwhile, and `snapshot` beside kubectl.

namespace rudderfish::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

testing::Testbed* g_testbed = nullptr;

const Clock& TheClock() {
  static const SystemClock clock;
  return clock;
}

std::unique_ptr<ApiClient> Open() {
  auto access = FindCluster({.kubeconfig = g_testbed->kubeconfig()}, {});
  EXPECT_TRUE(access.has_value()) << access.error().message;
  auto client = ApiClient::Open(*std::move(access), &TheClock(), {.watch_timeout = seconds(1)});
  EXPECT_TRUE(client.has_value()) << client.error().message;
  return *std::move(client);
}

constexpr char kPods[] = "/api/v1/namespaces/default/pods";
constexpr char kDeployments[] = "/apis/apps/v1/namespaces/default/deployments";

// No scheduler places it, so that nothing but this test changes it.
std::string PodText(const std::string& name) {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
         R"(","labels":{"step":"0"}},"spec":{"schedulerName":"nobody","containers":[{"name":"c",)"
         R"("image":"none","resources":{"requests":{"cpu":"10m"}}}]}})";
}

std::string DeploymentText(const std::string& name) {
  return R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":")" + name +
         R"("},"spec":{"replicas":0,"selector":{"matchLabels":{"app":")" + name +
         R"("}},"template":{"metadata":{"labels":{"app":")" + name +
         R"("}},"spec":{"containers":[{"name":"c","image":"none"}]}}}})";
}

// What a list tells now, as a mirror of its own.
void ListNow(ApiClient* client, Mirror* mirror) {
  DumpContent content;
  for (const auto& [resource, path] :
       {std::pair(Resource::kPods, "/api/v1/pods"),
        std::pair(Resource::kDeployments, "/apis/apps/v1/deployments"),
        std::pair(Resource::kNodes, "/api/v1/nodes")}) {
    mirror->SinkOf(resource)->BeginList();
    const auto body = client->Get(path);
    ASSERT_TRUE(body.has_value()) << body.error().message;
    const auto read = ReadDump(*body, path, mirror, &content);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    mirror->SinkOf(resource)->EndList();
  }
}

template <class T>
bool Same(const Collection<T>& a, const Collection<T>& b) {
  return std::equal(a.objects().begin(), a.objects().end(), b.objects().begin(), b.objects().end(),
                    [](const auto& x, const auto& y) {
                      return x.second == y.second && x.second.meta.resource_version.text ==
                                                         y.second.meta.resource_version.text;
                    });
}

bool ComesToEqualAList(ApiClient* client, ClusterFeed* feed, const Mirror& mirror) {
  const Instant end = TheClock().Now() + seconds(20);
  while (TheClock().Now() < end) {
    feed->Poll(milliseconds(20));
    Mirror fresh(&TheClock());
    ListNow(client, &fresh);
    if (Same(mirror.pods, fresh.pods) && Same(mirror.deployments, fresh.deployments) &&
        Same(mirror.nodes, fresh.nodes)) {
      return true;
    }
  }
  return false;
}

// One step of the history of one object: made, changed, deleted, in the order that chance has it.
void Step(ApiClient* client, int number, Rng* rng, std::vector<int>* life, int* under_way) {
  const bool pod = number % 2 == 0;
  const std::string name = "history-" + std::to_string(number);
  const std::string list = pod ? kPods : kDeployments;
  int& lived = (*life)[number];
  const auto send = [&](Method method, const std::string& path, const std::string& body) {
    ++*under_way;
    client->Send({.method = method, .path = path, .body = body}, [=](const ApiAnswer& answer) {
      --*under_way;
      EXPECT_TRUE(answer.ok()) << path << ": " << answer.outcome.error().message;
    });
  };
  if (lived == 0) {
    send(Method::kPost, list, pod ? PodText(name) : DeploymentText(name));
  } else if (rng->Below(4) == 0) {
    send(Method::kDelete, list + "/" + name + "?gracePeriodSeconds=0", "");
    lived = -1;
  } else {
    send(Method::kMergePatch, list + "/" + name,
         R"({"metadata":{"labels":{"step":")" + std::to_string(lived) + R"("}}})");
  }
  ++lived;
}

TEST(MirrorLive, EqualsAFreshListAfterRandomHistoriesWithWatchesCut) {
  const char* full = std::getenv("RUDDERFISH_HISTORIES");
  const int histories = full == nullptr ? 100 : std::atoi(full);
  const auto client = Open(), lister = Open();
  Mirror mirror(&TheClock());
  // Watches end all the time by themselves, and now and then all are cut at once.
  const auto watch = [&] {
    auto made = std::make_unique<ClusterFeed>(client.get());
    made->Add(&mirror, EndedPods::kAll);
    return made;
  };
  auto feed = watch();
  const auto synced = feed->Sync(seconds(30));
  ASSERT_TRUE(synced.has_value()) << synced.error().message;
  Rng rng(11, 0);
  std::vector<int> life(histories, 0);
  int under_way = 0;
  constexpr int kAtATime = 20;
  for (int first = 0; first < histories; first += kAtATime) {
    for (int round = 0; round < 8; ++round) {
      for (int i = first; i < std::min(first + kAtATime, histories); ++i) {
        if (rng.Below(3) > 0) Step(client.get(), i, &rng, &life, &under_way);
      }
      // Answers come before the next change of the same object is sent.
      do {
        feed->Poll(milliseconds(10));
      } while (under_way > 0);
      if (rng.Below(8) == 0) {
        feed.reset();
        feed = watch();
      }
    }
    ASSERT_TRUE(ComesToEqualAList(lister.get(), feed.get(), mirror)) << "history " << first;
  }
  EXPECT_GT(mirror.Count(Resource::kPods), 0u);
}

int64_t Millis(const std::string& cpu) { return Quantity::Parse(cpu)->MilliValue(); }
int64_t Bytes(const std::string& memory) { return Quantity::Parse(memory)->Value(); }

std::string TextOr(const json& object, const char* key) {
  return object.contains(key) ? object[key].get<std::string>() : "";
}

void ExpectSameNodes(const json& seen, const json& told) {
  ASSERT_EQ(seen.size(), told.size());
  for (size_t i = 0; i < told.size(); ++i) {
    const json& ours = seen[i];
    const json& theirs = told[i];
    EXPECT_EQ(ours["name"], theirs["metadata"]["name"]);
    EXPECT_EQ(ours["uid"], theirs["metadata"]["uid"]);
    EXPECT_EQ(ours["labels"], theirs["metadata"]["labels"]);
    const json& allocatable = theirs["status"]["allocatable"];
    EXPECT_EQ(ours["allocatable"]["cpu_millis"], Millis(allocatable["cpu"]));
    EXPECT_EQ(ours["allocatable"]["memory_bytes"], Bytes(allocatable["memory"]));
    EXPECT_EQ(ours["pods_max"], Bytes(allocatable["pods"]));
    EXPECT_EQ(ours["unschedulable"], theirs["spec"].value("unschedulable", false));
    EXPECT_EQ(ours["taints"].size(), theirs["spec"].value("taints", json::array()).size());
  }
}

void ExpectSamePods(const json& seen, const json& told) {
  ASSERT_EQ(seen.size(), told.size());
  std::map<std::string, json> by_uid;
  for (const json& pod : seen) by_uid[pod["uid"]] = pod;
  for (const json& theirs : told) {
    ASSERT_TRUE(by_uid.contains(theirs["metadata"]["uid"])) << theirs["metadata"]["name"];
    const json& ours = by_uid[theirs["metadata"]["uid"]];
    EXPECT_EQ(ours["name"], theirs["metadata"]["name"]);
    EXPECT_EQ(ours["namespace"], theirs["metadata"]["namespace"]);
    EXPECT_EQ(ours["node"], TextOr(theirs["spec"], "nodeName"));
    EXPECT_EQ(ours["phase"], theirs["status"]["phase"]);
    EXPECT_EQ(ours["terminating"], theirs["metadata"].contains("deletionTimestamp"));
    int64_t millis = 0;
    for (const json& container : theirs["spec"]["containers"]) {
      const json requests = container["resources"].value("requests", json::object());
      if (requests.contains("cpu")) millis += Millis(requests["cpu"]);
    }
    EXPECT_EQ(ours["requests"]["cpu_millis"], millis);
  }
}

TEST(MirrorLive, SnapshotSaysWhatKubectlSays) {
  const char* program = std::getenv("RUDDERFISH");
  if (program == nullptr) GTEST_SKIP() << "RUDDERFISH does not name the program";
  g_testbed->Kubectl({"create", "namespace", "shop"});
  for (const char* name : {"web", "db"}) {
    g_testbed->Kubectl(
        {"-n", "shop", "create", "deployment", name, "--image=localhost/pause:1", "--replicas=3"});
    g_testbed->Kubectl({"-n", "shop", "set", "resources", std::string("deployment/") + name,
                        "--requests=cpu=25m,memory=16Mi"});
  }
  g_testbed->Kubectl({"cordon", "node-2"});
  // Still: what changes between the two calls would differ.
  std::string before, after;
  json seen;
  for (int attempt = 0; attempt < 20; ++attempt) {
    before = g_testbed->Kubectl({"get", "nodes,pods,deployments", "-A", "-o", "json"});
    const testing::Output output =
        testing::Run({program, "snapshot", "--kubeconfig", g_testbed->kubeconfig(), "-o", "json"});
    ASSERT_EQ(output.status, 0) << output.err;
    seen = json::parse(output.out);
    after = g_testbed->Kubectl({"get", "nodes,pods,deployments", "-A", "-o", "json"});
    if (before == after) break;
  }
  ASSERT_EQ(before, after) << "the cluster does not come to rest";
  std::map<std::string, json> told{{"Node", json::array()}, {"Pod", json::array()}};
  const json list = json::parse(after);
  for (const json& item : list["items"]) told[item["kind"]].push_back(item);
  ExpectSameNodes(seen["nodes"], told["Node"]);
  ExpectSamePods(seen["pods"], told["Pod"]);
  for (const json& theirs : told["Deployment"]) {
    const auto ours =
        std::find_if(seen["workloads"].begin(), seen["workloads"].end(), [&](const json& workload) {
          return workload["kind"] == "Deployment" &&
                 workload["name"] == theirs["metadata"]["name"] &&
                 workload["namespace"] == theirs["metadata"]["namespace"];
        });
    ASSERT_NE(ours, seen["workloads"].end());
    EXPECT_EQ((*ours)["replicas"], theirs["spec"]["replicas"]);
    EXPECT_EQ((*ours)["ready"], theirs["status"].value("readyReplicas", 0));
  }
  g_testbed->Kubectl({"uncordon", "node-2"});
}

}  // namespace

void UseTestbed(testing::Testbed* testbed) { g_testbed = testbed; }

}  // namespace rudderfish::kube

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const std::string reason = rudderfish::testing::Testbed::WhyNot(); !reason.empty()) {
    std::cout << "skipped: " << reason << "\n";
    return 77;
  }
  rudderfish::testing::Testbed testbed("test-mirror", {"--nodes", "3"});
  rudderfish::kube::UseTestbed(&testbed);
  return RUN_ALL_TESTS();
}
