// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "kube/kubeconfig.h"
#include "kube/mirror.h"
#include "tests/support/polling.h"
#include "tests/support/testbed.h"

// A shop of three deployments on hollow nodes, who may watch it, and a life that changes it all the
// time: what faults are tried on.

namespace rudderfish::testing {

inline constexpr int kHollowNodes = 30;

inline constexpr char kShopObjects[] = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: default}
spec:
  replicas: 4
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      tolerations: [{key: rudderfish.io/hollow, operator: Exists}]
      containers:
      - {name: main, image: localhost/pause:1, resources: {requests: {cpu: 500m, memory: 64Mi}}}
)";

inline constexpr char kShopApplication[] = R"(
rudderfish: application/v1
name: shop
model: physical
namespace: default
layers: {cloud: {}, edge: {}}
latency:
  cloud: {cloud: 0.1ms, edge: 10ms}
  edge: {cloud: 10ms, edge: 1ms}
node_types:
  large:
    nodes:
      matchExpressions:
      - {key: topology.kubernetes.io/zone, operator: In, values: [zone-1, zone-2]}
    layer: cloud
    cpu_type: fast
    bandwidth: 1Gbit
  small:
    nodes: {matchLabels: {topology.kubernetes.io/zone: zone-3}}
    layer: edge
    cpu_type: slow
    bandwidth: 200Mbit
workloads:
  front: {object: deployment/front, execution: {fast: 2ms, slow: 3ms}}
  cart: {object: deployment/cart, execution: {fast: 7ms, slow: 12ms}}
  store: {object: deployment/store, execution: {fast: 1ms, slow: 1.5ms}}
endpoints:
  buy:
    client: front
    rate: 20
    qos: 120ms
    calls: [{cart: {data: 0.1MB, calls: [{store: {data: 0.1MB}}]}}]
)";

inline std::string PodText(const std::string& name, const std::string& node) {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + R"("},"spec":{)" +
         R"("nodeName":")" + node + R"(","containers":[{"name":"c","image":"none","resources":)" +
         R"({"requests":{"cpu":"250m","memory":"32Mi"}}}]}})";
}

// The cluster's life: about 30 writes a second, of pods bound to hollow nodes and of the sizes of
// deployments. Straight to the server; while that is dead its writes fail.
class Writer {
 public:
  explicit Writer(kube::ClusterAccess access)
      : client_(OpenClient(std::move(access), kube::ApiClientOptions{})),
        thread_([this] { Write(); }) {}
  Writer(const Writer&) = delete;

  ~Writer() {
    is_over_ = true;
    thread_.join();
  }

  void Pause() {
    is_paused_ = true;
    while (!has_paused_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void GoOn() { is_paused_ = has_paused_ = false; }
  int64_t writes() const { return writes_; }

 private:
  void Write() {
    Rng rng(3);
    std::vector<bool> there(120, false);
    for (int turn = 0; !is_over_; ++turn) {
      while (is_paused_ && !is_over_) {
        has_paused_ = true;
        client_->Poll(std::chrono::milliseconds(5));
      }
      if (turn % 20 == 0) {
        const char* const names[] = {"front", "cart", "store"};
        Send(kube::Method::kMergePatch,
             std::string("/apis/apps/v1/namespaces/default/deployments/") + names[rng.Below(3)],
             R"({"spec":{"replicas":)" + std::to_string(2 + rng.Below(6)) + "}}");
      } else {
        WritePod(&rng, &there);
      }
      const Instant next = RealClock().Now() + std::chrono::milliseconds(25);
      while (RealClock().Now() < next) client_->Poll(std::chrono::milliseconds(5));
    }
  }

  void WritePod(Rng* rng, std::vector<bool>* there) {
    const uint32_t number = rng->Below(static_cast<uint32_t>(there->size()));
    const std::string list = "/api/v1/namespaces/default/pods";
    const std::string name = "guest-" + std::to_string(number);
    if (!(*there)[number]) {
      const std::string node = "hollow-" + std::to_string(1 + rng->Below(kHollowNodes));
      (*there)[number] = Send(kube::Method::kPost, list, PodText(name, node));
    } else if (rng->Below(3) == 0) {
      Send(kube::Method::kDelete, list + "/" + name + "?gracePeriodSeconds=0", "");
      (*there)[number] = false;
    } else {
      Send(kube::Method::kMergePatch, list + "/" + name,
           R"({"metadata":{"labels":{"turn":")" + std::to_string(writes_) + R"("}}})");
    }
  }

  // Whether the object is there afterwards; a conflict says that it was.
  bool Send(kube::Method method, const std::string& path, const std::string& body) {
    const kube::ApiAnswer answer = client_->Call({.method = method,
                                                  .path = path,
                                                  .body = body,
                                                  .deadline = std::chrono::seconds(2),
                                                  .repeat = kube::Repeat::kNever});
    if (answer.ok()) ++writes_;
    return answer.ok() || answer.status.code == 409;
  }

  std::unique_ptr<kube::ApiClient> client_;  // The thread's, once it runs.
  std::atomic<bool> is_over_ = false, is_paused_ = false, has_paused_ = false;
  std::atomic<int64_t> writes_ = 0;
  std::thread thread_;
};

// And the ServiceAccount `shadow`, which may list and watch and nothing else.
inline void MakeShop(const Testbed& testbed) {
  testbed.Kubectl({"create", "serviceaccount", "shadow"});
  std::string resources;
  for (int i = 0; i < kube::kMirroredCount; ++i) {
    const kube::ResourceName& name = NameOf(static_cast<kube::Resource>(i));
    if (name.group == "metrics.k8s.io") continue;  // Not served here.
    if (!resources.empty()) resources += ",";
    resources += name.resource;
    if (!name.group.empty()) resources += "." + std::string(name.group);
  }
  testbed.Kubectl(
      {"create", "clusterrole", "shadow", "--verb=list,watch", "--resource=" + resources});
  testbed.Kubectl({"create", "clusterrolebinding", "shadow", "--clusterrole=shadow",
                   "--serviceaccount=default:shadow"});
  for (const char* name : {"front", "cart", "store"}) {
    std::string text = kShopObjects;
    for (size_t at = 0; (at = text.find("NAME", at)) != std::string::npos;) {
      text.replace(at, 4, name);
    }
    testbed.Kubectl({"apply", "-f", "-"}, text);
  }
  for (const char* name : {"front", "cart", "store"}) {
    testbed.Kubectl({"rollout", "status", std::string("deployment/") + name, "--timeout=60s"});
  }
}

}  // namespace rudderfish::testing
