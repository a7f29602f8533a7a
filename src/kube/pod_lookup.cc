// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_lookup.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "kube/fields.h"

namespace rudderfish::kube {
namespace {

constexpr Duration kLookUpDeadline = std::chrono::seconds(10);

}  // namespace

namespace internal {

Result<PodStanding> ReadPodStanding(std::string_view list, const PodIdentity& pod) {
  simdjson::dom::parser parser;
  Element root;
  // Another server that may answer, such as a proxy, knows nothing of the pod.
  if (parser.parse(list.data(), list.size()).get(root) != simdjson::SUCCESS ||
      TextOf(root, "kind") != "PodList")
    return Fail(ErrorCode::kCorruption, "pod {}: the answer is no list of pods", pod.Key());
  PodStanding found;
  TRY(Fields(root).ForEach("items", [&](const Fields& item) -> Result<void> {
    TRY_ASSIGN(const std::string_view uid, item.Text("metadata.uid"));
    TRY_ASSIGN(const std::string_view phase, item.Text("status.phase"));
    if (uid != pod.uid || phase == "Succeeded" || phase == "Failed") return {};
    found.is_there = true;
    TRY_ASSIGN(found.node, item.Text("spec.nodeName"));
    TRY_ASSIGN(const std::string_view deleted, item.Text("metadata.deletionTimestamp"));
    found.is_terminating = !deleted.empty();
    return {};
  }));
  return found;
}

}  // namespace internal

void LookUpPod(ApiClient* client, const PodIdentity& pod,
               std::function<void(const Result<PodStanding>& found)> on_found) {
  client->Send({.path = fmt::format("/api/v1/namespaces/{}/pods?fieldSelector=metadata.name%3D{}",
                                    pod.object_namespace, pod.name),
                .deadline = kLookUpDeadline},
               [pod, on_found = std::move(on_found)](const ApiAnswer& answer) {
                 on_found(answer.ok()
                              ? internal::ReadPodStanding(answer.body, pod)
                              : Result<PodStanding>(tl::unexpected(answer.outcome.error())));
               });
}

}  // namespace rudderfish::kube
