// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_writer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/one_line.h"
#include "base/wall_time.h"

namespace rudderfish::kube {
namespace {

constexpr Duration kBindingDeadline = std::chrono::seconds(10);
constexpr size_t kMessageBytesMax = 32 << 10;

std::string PathOf(const PodIdentity& pod, std::string_view subresource) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}/{}", pod.object_namespace, pod.name,
                     subresource);
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

namespace internal {

std::string BindingBody(const PodIdentity& pod, const std::string& node) {
  return Dump(
      {{"apiVersion", "v1"},
       {"kind", "Binding"},
       {"metadata", {{"name", pod.name}, {"namespace", pod.object_namespace}, {"uid", pod.uid}}},
       {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}});
}

std::string UnschedulableBody(const PodIdentity& pod, const std::string& message,
                              const std::string& now) {
  Json condition = {{"type", "PodScheduled"},
                    {"status", "False"},
                    {"reason", "Unschedulable"},
                    {"message", OneLine(message, kMessageBytesMax)},
                    {"lastProbeTime", nullptr}};
  if (!now.empty()) condition["lastTransitionTime"] = now;
  return Dump(
      {{"metadata", {{"uid", pod.uid}}}, {"status", {{"conditions", Json::array({condition})}}}});
}

}  // namespace internal

void BindPod(ApiClient* client, const PodIdentity& pod, const std::string& node,
             std::function<bool()> may_go, ApiClient::OnAnswer on_answer) {
  client->Send({.method = Method::kPost,
                .path = PathOf(pod, "binding"),
                .body = internal::BindingBody(pod, node),
                .deadline = kBindingDeadline,
                .may_go = std::move(may_go)},
               std::move(on_answer));
}

ApiClient::Id MarkUnschedulable(ApiClient* client, const PodIdentity& pod,
                                const std::string& message, Transition since,
                                std::function<bool()> may_go, ApiClient::OnAnswer on_answer) {
  const std::string now =
      since == Transition::kNow ? Rfc3339(UnixNow()).substr(0, 19) + "Z" : std::string();
  return client->Send({.method = Method::kStrategicMergePatch,
                       .path = PathOf(pod, "status"),
                       .body = internal::UnschedulableBody(pod, message, now),
                       .may_go = std::move(may_go)},
                      std::move(on_answer));
}

}  // namespace rudderfish::kube
