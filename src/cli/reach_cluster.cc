// SPDX-License-Identifier: Apache-2.0
#include "cli/reach_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/wall_time.h"

namespace rudderfish {
namespace {

constexpr Duration kReachListLimit = std::chrono::seconds(30);
constexpr std::string_view kControlPlane = "node-role.kubernetes.io/control-plane";
constexpr const char* kFailedByUs = "rudderfish.io/failed-by-experiment";

std::string NodePath(const std::string& name) { return "/api/v1/nodes/" + name; }

}  // namespace

ReachCluster::ReachCluster(std::shared_ptr<const Application> application)
    : application_(std::move(application)), mirror_(&clock_), pods_(&mirror_, application_) {}

ReachCluster::~ReachCluster() {
  if (const Result<void> opened = OpenAll(); !opened) LogError("{}", opened.error().message);
}

Result<std::unique_ptr<ReachCluster>> ReachCluster::Open(
    kube::ClusterAccess access, std::shared_ptr<const Application> application) {
  std::unique_ptr<ReachCluster> cluster(new ReachCluster(std::move(application)));
  TRY_ASSIGN(cluster->client_, kube::ApiClient::Open(std::move(access), &cluster->clock_));
  cluster->feed_ = std::make_unique<kube::ClusterFeed>(cluster->client_.get());
  cluster->feed_->Add(&cluster->mirror_);
  TRY(cluster->feed_->Sync(kReachListLimit));
  return cluster;
}

std::string ReachCluster::WhyNotReady() {
  pods_.Update();
  for (WorkloadId w = 0; w < application_->catalog->workload_count(); ++w) {
    const WorkloadObject& object = application_->objects[w];
    if (object.is_external()) continue;
    const kube::ObjectKey key{object.object_namespace, object.name};
    const kube::PodController* const controller = mirror_.FindController(object.kind, key);
    if (controller == nullptr)
      return fmt::format("{} {} is not found", object.kind, kube::KeyText(key));
    int64_t ready = 0;
    const auto& members = pods_.members(w);
    for (const auto& [pod_key, unused] : members) {
      const kube::Pod* const pod = mirror_.pods.Find(pod_key);
      ready += pod != nullptr && pod->ready ? 1 : 0;
    }
    if (ready == controller->replicas && static_cast<int64_t>(members.size()) == ready) continue;
    return fmt::format("{} {} has {} pods, {} of them ready, and wants {}", object.kind,
                       kube::KeyText(key), members.size(), ready, controller->replicas);
  }
  return "";
}

std::vector<std::string> ReachCluster::Nodes() const {
  std::vector<std::string> names;
  for (const auto& [key, node] : mirror_.nodes.objects()) {
    if (FindLabel(node.labels, kControlPlane) == nullptr) names.push_back(key.name);
  }
  return names;
}

int ReachCluster::PodsOn(WorkloadId workload, std::string_view node) {
  pods_.Update();
  const auto& members = pods_.members(workload);
  return static_cast<int>(std::count_if(members.begin(), members.end(), [&](const auto& member) {
    return member.second.node->first == node;
  }));
}

Result<void> ReachCluster::Patch(const std::string& path, const std::string& body) {
  return client_->Call({.method = kube::Method::kMergePatch, .path = path, .body = body}).outcome;
}

Result<void> ReachCluster::Set(Cordon cordon, const std::string& node) {
  const bool is_closed = cordon == Cordon::kOn;
  OrderedJson body{{"metadata", {{"annotations", {{kFailedByUs, nullptr}}}}},
                   {"spec", {{"unschedulable", is_closed}}}};
  if (is_closed) body["metadata"]["annotations"][kFailedByUs] = Rfc3339(UnixNow());
  return Patch(NodePath(node), body.dump());
}

Result<void> ReachCluster::CheckOpen(const std::string& node) const {
  const kube::Node* const known = mirror_.nodes.Find({"", node});
  if (known == nullptr) return Fail(ErrorCode::kNotFound, "node {} is not found", node);
  if (known->unschedulable) {
    return Fail(ErrorCode::kFailedPrecondition,
                "node {} is cordoned already; `kubectl uncordon {}`, or name another node", node,
                node);
  }
  return {};
}

Result<void> ReachCluster::Close(const std::string& node) {
  TRY(CheckOpen(node));
  closed_.push_back(node);  // Before the answer, which may be lost.
  return Set(Cordon::kOn, node);
}

Result<void> ReachCluster::OpenAll() {
  Result<void> result;
  for (const std::string& node : std::exchange(closed_, {})) {
    const Result<void> opened = Set(Cordon::kOff, node);
    if (opened) continue;
    closed_.push_back(node);
    result = Fail(opened.error().code, "node {} is still cordoned: {}; run `kubectl uncordon {}`",
                  node, opened.error().message, node);
  }
  return result;
}

Result<std::vector<std::string>> ReachCluster::OpenLeft() {
  TRY_ASSIGN(const std::string body, client_->Get("/api/v1/nodes"));
  TRY_ASSIGN(const Json list, ParseJson(body, "/api/v1/nodes"));
  std::vector<std::string> opened;
  for (const Json& node : list.value("items", Json::array())) {
    const Json metadata = node.value("metadata", Json::object());
    const Json notes = metadata.value("annotations", Json::object());
    if (!notes.is_object() || !notes.contains(kFailedByUs)) continue;
    opened.push_back(metadata.value("name", ""));
    TRY(Set(Cordon::kOff, opened.back()));
  }
  return opened;
}

Result<ReachCluster::Evicted> ReachCluster::EvictFrom(std::string_view node) {
  pods_.Update();
  Evicted evicted;
  for (WorkloadId w = 0; w < application_->catalog->workload_count(); ++w) {
    for (const auto& [key, member] : pods_.members(w)) {
      if (member.node->first != node) continue;
      ++evicted.left;
      const OrderedJson body{
          {"apiVersion", "policy/v1"},
          {"kind", "Eviction"},
          {"metadata", {{"name", key.name}, {"namespace", key.object_namespace}}},
          {"deleteOptions", {{"preconditions", {{"uid", member.uid}}}}}};
      const kube::ApiAnswer answer =
          client_->Call({.method = kube::Method::kPost,
                         .path = fmt::format("/api/v1/namespaces/{}/pods/{}/eviction",
                                             key.object_namespace, key.name),
                         .body = body.dump(),
                         .repeat = kube::Repeat::kNever});
      if (answer.ok() || answer.status.code == 404 || answer.status.code == 409) continue;
      if (answer.status.code != 429) return tl::unexpected(answer.outcome.error());
      evicted.refused = answer.outcome.error().message;  // By a PodDisruptionBudget.
    }
  }
  return evicted;
}

Result<int64_t> ReachCluster::Scale(WorkloadId workload, int64_t replicas) {
  const WorkloadObject& object = application_->objects[workload];
  const kube::ObjectKey key{object.object_namespace, object.name};
  const kube::PodController* const deployment =
      object.kind == "Deployment" ? mirror_.deployments.Find(key) : nullptr;
  if (deployment == nullptr) {
    return Fail(ErrorCode::kFailedPrecondition, "there is no Deployment {} to scale",
                kube::KeyText(key));
  }
  const int64_t before = deployment->replicas;
  TRY(Patch(fmt::format("/apis/apps/v1/namespaces/{}/deployments/{}/scale", key.object_namespace,
                        key.name),
            OrderedJson{{"spec", {{"replicas", replicas}}}}.dump()));
  return before;
}

}  // namespace rudderfish
