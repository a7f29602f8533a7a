// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "kube/kubeconfig.h"
#include "kube/pod_writer.h"
#include "kube/watch_event.h"

// Pods by the thousand, for bench/scheduling:
//
//   pods_live KUBECONFIG create COUNT PREFIX < POD   # COUNT copies, in the namespace bench.
//   pods_live KUBECONFIG bind                        # Those that wait there, node after node.
//
// What `bind` reaches is what the API server can do at most: nothing is looked at.

namespace rudderfish {
namespace {

using kube::ApiAnswer;
using kube::ApiClient;

constexpr char kPods[] = "/api/v1/namespaces/bench/pods";
constexpr int kAtATime = 24;

std::string TextAt(const simdjson::dom::element& object, const char* part, const char* key) {
  std::string_view text;
  return object[part][key].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

// All objects of a list, page by page.
void ForEach(ApiClient* client, const std::string& path,
             const std::function<void(const simdjson::dom::element&)>& visit) {
  std::string next;
  do {
    const auto body = client->Get(path + "limit=500" + (next.empty() ? "" : "&continue=" + next));
    simdjson::dom::parser parser;
    const auto page = kube::ReadListPage(&parser, body.value());
    for (const auto item : page.value().items.get_array()) visit(item);
    next = page->next;
  } while (!next.empty());
}

// As many calls as there are, so many at a time; how many failed.
int DoAll(ApiClient* client, size_t count,
          const std::function<void(size_t, ApiClient::OnAnswer)>& begin) {
  size_t begun = 0, ended = 0;
  int failed = 0;
  while (ended < count) {
    for (; begun < count && begun - ended < kAtATime; ++begun) {
      begin(begun, [&](const ApiAnswer& answer) {
        ++ended;
        if (answer.ok()) return;
        if (failed++ < 3) std::cerr << answer.outcome.error().message << "\n";
      });
    }
    client->Poll(std::chrono::milliseconds(100));
  }
  return failed;
}

int Main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string command = argv[2];
  auto access = kube::FindCluster({.kubeconfig = argv[1]}, {});
  const SystemClock clock;
  const auto client =
      kube::ApiClient::Open(*std::move(access), &clock, {.requests_max = kAtATime}).value();
  if (command == "create" && argc == 5) {
    const std::string pod{std::istreambuf_iterator<char>(std::cin), {}};
    const size_t at = pod.find("NAME");
    return DoAll(client.get(), static_cast<size_t>(std::atoi(argv[3])),
                 [&](size_t i, ApiClient::OnAnswer on_answer) {
                   std::string body = pod;
                   body.replace(at, 4, argv[4] + std::to_string(i));
                   client->Send({.method = kube::Method::kPost, .path = kPods, .body = body},
                                std::move(on_answer));
                 }) == 0
               ? 0
               : 1;
  }
  if (command != "bind") return 2;
  std::vector<std::string> nodes;
  std::vector<PodIdentity> pods;
  ForEach(client.get(), "/api/v1/nodes?",
          [&](const auto& node) { nodes.push_back(TextAt(node, "metadata", "name")); });
  ForEach(
      client.get(), std::string(kPods) + "?fieldSelector=spec.nodeName%3D&", [&](const auto& pod) {
        pods.push_back({"bench", TextAt(pod, "metadata", "name"), TextAt(pod, "metadata", "uid")});
      });
  return DoAll(client.get(), pods.size(),
               [&](size_t i, ApiClient::OnAnswer on_answer) {
                 kube::BindPod(client.get(), pods[i], nodes[i % nodes.size()], nullptr,
                               std::move(on_answer));
               }) == 0
             ? 0
             : 1;
}

}  // namespace
}  // namespace rudderfish

int main(int argc, char** argv) { return rudderfish::Main(argc, argv); }
