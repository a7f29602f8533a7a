// SPDX-License-Identifier: Apache-2.0
#include "compat/reach_request.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace rudderfish {
namespace {

constexpr double kCpuMillisMax = 1e12;
constexpr double kMemoryGibMax = 1e9;

// A name that repeats its key, where it is given.
Result<void> CheckName(const JsonReader& object, std::string_view field, const std::string& key) {
  TRY_ASSIGN(const auto named, object.Find(field));
  if (!named.has_value()) return {};
  TRY_ASSIGN(const std::string name, named->AsString());
  if (name != key) return named->Refuse(fmt::format("is `{}`, but its key is `{}`", name, key));
  return {};
}

Result<ReachRequest::Node> ParseNode(const std::string& key, const JsonReader& node) {
  TRY(CheckName(node, "node_name", key));
  TRY_ASSIGN(const JsonReader cpu, node.At("cpu_availability"));
  TRY_ASSIGN(const JsonReader memory, node.At("memory_availability"));
  ReachRequest::Node parsed{.name = key};
  TRY_ASSIGN(parsed.cpu_millis, cpu.AsDouble(-kCpuMillisMax, kCpuMillisMax));
  TRY_ASSIGN(parsed.memory_gib, memory.AsDouble(-kMemoryGibMax, kMemoryGibMax));
  return parsed;
}

Result<ReachRequest::Service> ParseService(const std::string& key, const JsonReader& service) {
  TRY(CheckName(service, "service_name", key));
  ReachRequest::Service parsed{.name = key};
  TRY_ASSIGN(const auto pods, service.Find("pods"));
  if (!pods.has_value()) return parsed;  // The migrator's null: no pod of it runs.
  TRY_ASSIGN(const auto elements, pods->Elements());
  for (const JsonReader& element : elements) {
    TRY_ASSIGN(const JsonReader name, element.At("pod_name"));
    ReachRequest::Pod pod;
    TRY_ASSIGN(pod.name, name.AsString());
    if (pod.name.empty()) return name.Refuse("is empty");
    TRY_ASSIGN(const JsonReader node, element.At("node_name"));
    TRY_ASSIGN(pod.node, node.AsString());
    parsed.pods.push_back(std::move(pod));
  }
  return parsed;
}

Result<ReachRequest::Deployable> ParseDeployable(const std::string& key, const JsonReader& list) {
  ReachRequest::Deployable parsed{.pod = key};
  if (list.IsNull()) return parsed;  // The migrator's null: it fits nowhere.
  TRY_ASSIGN(const auto elements, list.Elements());
  for (const JsonReader& element : elements) {
    TRY_ASSIGN(std::string node, element.AsString());
    parsed.nodes.push_back(std::move(node));
  }
  return parsed;
}

}  // namespace

Result<ReachRequest> ParseReachRequest(std::string_view body) {
  TRY_ASSIGN(const Json json, ParseJson(body, "request"));
  const JsonReader root(json, "request");
  TRY_ASSIGN(const JsonReader state, root.At("cluster_state"));
  TRY_ASSIGN(const JsonReader nodes, state.At("nodes"));
  TRY_ASSIGN(const JsonReader services, state.At("services"));
  TRY_ASSIGN(const JsonReader deployable, root.At("pod_deployable"));
  ReachRequest request;
  TRY_ASSIGN(const auto node_members, nodes.Members());
  for (const auto& [key, node] : node_members) {
    TRY_ASSIGN(auto parsed, ParseNode(key, node));
    request.nodes.push_back(std::move(parsed));
  }
  TRY_ASSIGN(const auto service_members, services.Members());
  for (const auto& [key, service] : service_members) {
    TRY_ASSIGN(auto parsed, ParseService(key, service));
    request.services.push_back(std::move(parsed));
  }
  TRY_ASSIGN(const auto deployable_members, deployable.Members());
  for (const auto& [key, list] : deployable_members) {
    TRY_ASSIGN(auto parsed, ParseDeployable(key, list));
    request.deployable.push_back(std::move(parsed));
  }
  return request;
}

}  // namespace rudderfish
