// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <iostream>

#include "base/log.h"
#include "kube/api_client.h"
#include "kube/kubeconfig.h"
#include "kube/reflector.h"
#include "tests/support/object_store.h"
#include "tests/support/testbed.h"

// The client against a real API server, which is killed, frozen and made to forget meanwhile.

namespace rudderfish::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ObjectStore;
using testing::ObjectVersions;

testing::Testbed* g_testbed = nullptr;

const Clock& TheClock() {
  static const SystemClock clock;
  return clock;
}

std::unique_ptr<ApiClient> Open(ClusterAccess access, ApiClientOptions options = {}) {
  auto client = ApiClient::Open(std::move(access), &TheClock(), options);
  EXPECT_TRUE(client.has_value()) << client.error().message;
  return *std::move(client);
}

ClusterAccess AdminAccess() {
  auto access = FindCluster({.kubeconfig = g_testbed->kubeconfig()}, {});
  EXPECT_TRUE(access.has_value()) << access.error().message;
  return *std::move(access);
}

std::unique_ptr<ApiClient> OpenAsAdmin(ApiClientOptions options = {}) {
  return Open(AdminAccess(), options);
}

// Polls until `condition` holds.
bool Eventually(ApiClient* client, const std::function<bool()>& condition,
                Duration limit = seconds(30)) {
  const Instant end = TheClock().Now() + limit;
  while (!condition()) {
    if (TheClock().Now() > end) return false;
    client->Poll(milliseconds(50));
  }
  return true;
}

// What a list tells at this moment.
ObjectVersions ListNow(ApiClient* client, const std::string& path) {
  const auto body = client->Get(path);
  EXPECT_TRUE(body.has_value()) << body.error().message;
  simdjson::dom::parser parser;
  simdjson::dom::element list;
  simdjson::dom::array items;
  ObjectVersions objects;
  EXPECT_EQ(parser.parse(*body).get(list), simdjson::SUCCESS);
  EXPECT_EQ(list["items"].get(items), simdjson::SUCCESS);
  for (const simdjson::dom::element item : items) {
    objects[testing::NameOf(item)] = std::string(testing::MetadataText(item, "uid")) + "@" +
                                     std::string(testing::MetadataText(item, "resourceVersion"));
  }
  return objects;
}

std::string ConfigMap(const std::string& name, int value) {
  return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name +
         R"("},"data":{"value":")" + std::to_string(value) + R"("}})";
}

constexpr char kConfigMaps[] = "/api/v1/namespaces/default/configmaps";

// Makes, changes and deletes, and compares after that.
void ExpectFollowsChanges(ApiClient* client, const Reflector& reflector, const ObjectStore& store) {
  for (int i = 0; i < 10; ++i) {
    const std::string name = "follow-" + std::to_string(i);
    ASSERT_TRUE(
        client->Call({.method = Method::kPost, .path = kConfigMaps, .body = ConfigMap(name, i)})
            .ok());
    if (i % 2 == 0) {
      ASSERT_TRUE(client
                      ->Call({.method = Method::kMergePatch,
                              .path = kConfigMaps + ("/" + name),
                              .body = R"({"data":{"value":"changed"}})"})
                      .ok());
    }
    if (i % 3 == 0) {
      ASSERT_TRUE(
          client->Call({.method = Method::kDelete, .path = kConfigMaps + ("/" + name)}).ok());
    }
  }
  EXPECT_TRUE(Eventually(client, [&] { return store.objects == ListNow(client, kConfigMaps); }));
  EXPECT_TRUE(store.objects.contains("default/follow-1"));
  EXPECT_FALSE(store.objects.contains("default/follow-0"));
  EXPECT_GE(reflector.counts().events, 10 + 5 + 4);
  for (int i = 0; i < 10; ++i) {
    client->Call(
        {.method = Method::kDelete, .path = kConfigMaps + ("/follow-" + std::to_string(i))});
  }
}

TEST(LiveReflector, StreamedListFollowsEveryChange) {
  const auto client = OpenAsAdmin();
  ObjectStore store;
  Reflector reflector(client.get(), {.path = kConfigMaps}, &store);
  reflector.Start();
  ASSERT_TRUE(Eventually(client.get(), [&] { return reflector.is_synced(); }));
  EXPECT_EQ(reflector.initial(), InitialList::kStreamed);
  EXPECT_EQ(store.objects, ListNow(client.get(), kConfigMaps));
  ExpectFollowsChanges(client.get(), reflector, store);
  EXPECT_EQ(store.lists, 1);
  EXPECT_EQ(reflector.counts().malformed, 0);
}

TEST(LiveReflector, PagedListFollowsEveryChange) {
  const auto client = OpenAsAdmin();
  ObjectStore store;
  Reflector reflector(
      client.get(), {.path = kConfigMaps, .initial = InitialList::kPaged, .page_size = 1}, &store);
  reflector.Start();
  ASSERT_TRUE(Eventually(client.get(), [&] { return reflector.is_synced(); }));
  ExpectFollowsChanges(client.get(), reflector, store);
  EXPECT_EQ(store.lists, 1);
}

TEST(LiveReflector, SeesNodesAndPodsOfAllNamespaces) {
  const auto client = OpenAsAdmin();
  ObjectStore nodes, pods;
  Reflector of_nodes(client.get(), {.path = "/api/v1/nodes"}, &nodes);
  Reflector of_pods(client.get(), {.path = "/api/v1/pods"}, &pods);
  of_nodes.Start();
  of_pods.Start();
  ASSERT_TRUE(
      Eventually(client.get(), [&] { return of_nodes.is_synced() && of_pods.is_synced(); }));
  EXPECT_EQ(nodes.objects.size(), 1u);
  g_testbed->Kubectl({"run", "seen", "--image=localhost/pause:1", "--restart=Never"});
  EXPECT_TRUE(Eventually(client.get(), [&] { return pods.objects.contains("default/seen"); }));
  g_testbed->Kubectl({"delete", "pod", "seen", "--grace-period=0", "--force"});
  EXPECT_TRUE(Eventually(client.get(), [&] { return !pods.objects.contains("default/seen"); }));
  EXPECT_TRUE(Eventually(client.get(),
                         [&] { return pods.objects == ListNow(client.get(), "/api/v1/pods"); }));
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
  rudderfish::testing::Testbed testbed("test-client", {"--nodes", "1"});
  rudderfish::kube::UseTestbed(&testbed);
  return RUN_ALL_TESTS();
}
