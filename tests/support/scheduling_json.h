// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cluster/scheduling.h"

// Nodes and pods of cluster/scheduling.h as the API server takes them.

namespace rudderfish::testing {

using nlohmann::json;

inline json ToMap(const Labels& labels) {
  json map = json::object();
  for (const auto& [key, value] : labels) map[key] = value;
  return map;
}

inline json ToJson(const NodeTaint& taint) {
  const char* const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
  return {{"key", taint.key},
          {"value", taint.value},
          {"effect", effects[static_cast<int>(taint.effect)]}};
}

inline json TaintsOf(const SchedulingNode& node) {
  json taints = json::array();
  for (const NodeTaint& taint : node.taints) taints.push_back(ToJson(taint));
  return taints;
}

inline json ToJson(const SchedulingNode& node) {
  json amounts = {{"cpu", std::to_string(node.allocatable.cpu_millis) + "m"},
                  {"memory", std::to_string(node.allocatable.memory_bytes)},
                  {"ephemeral-storage", std::to_string(node.ephemeral_bytes)},
                  {"pods", std::to_string(node.pods_max)}};
  for (const auto& [name, amount] : node.scalars) amounts[name] = std::to_string(amount);
  json images = json::array();
  for (const NodeImage& image : node.images) {
    if (!images.empty() && images.back()["sizeBytes"] == image.size_bytes) {
      images.back()["names"].push_back(image.name);  // Of one image.
    } else {
      images.push_back({{"names", {image.name}}, {"sizeBytes", image.size_bytes}});
    }
  }
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", node.name}, {"labels", ToMap(node.labels)}}},
          {"spec", {{"unschedulable", node.unschedulable}, {"taints", TaintsOf(node)}}},
          {"status",
           {{"allocatable", amounts},
            {"capacity", amounts},
            {"images", images},
            {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

inline json CsiNodeOf(const SchedulingNode& node) {
  json drivers = json::array();
  for (const VolumeLimit& limit : node.volume_limits) {
    drivers.push_back({{"name", limit.driver},
                       {"nodeID", node.name},
                       {"allocatable", {{"count", limit.volumes_max}}}});
  }
  json made = {{"metadata", {{"name", node.name}}}, {"spec", {{"drivers", drivers}}}};
  std::string plugins;
  for (const std::string& plugin : node.migrated_plugins)
    plugins += (plugins.empty() ? "" : ",") + plugin;
  if (!plugins.empty())
    made["metadata"]["annotations"]["storage.alpha.kubernetes.io/migrated-plugins"] = plugins;
  return made;
}

inline json ToJson(const LabelSelector& selector) {
  const char* const operators[] = {"In", "NotIn", "Exists", "DoesNotExist"};
  json rules = json::array();
  for (const LabelRequirement& r : selector.requirements) {
    rules.push_back({{"key", r.key}, {"operator", operators[static_cast<int>(r.op)]}});
    if (!r.values.empty()) rules.back()["values"] = r.values;
  }
  return rules.empty() ? json::object() : json{{"matchExpressions", rules}};
}

inline json ToJson(const std::vector<NodeRequirement>& requirements) {
  const char* const operators[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
  json rules = json::array();
  for (const NodeRequirement& r : requirements) {
    rules.push_back({{"key", r.key}, {"operator", operators[static_cast<int>(r.op)]}});
    if (!r.values.empty()) rules.back()["values"] = r.values;
  }
  return rules;
}

inline json ToJson(const NodeTerm& term) {
  json made = json::object();
  if (!term.expressions.empty()) made["matchExpressions"] = ToJson(term.expressions);
  if (!term.fields.empty()) made["matchFields"] = ToJson(term.fields);
  return made;
}

inline json ToJson(const PodAffinityTerm& term) {
  json made = {{"topologyKey", term.topology_key}};
  if (!term.namespaces.empty()) made["namespaces"] = term.namespaces;
  if (term.namespace_selector) made["namespaceSelector"] = ToJson(*term.namespace_selector);
  if (term.selector) made["labelSelector"] = ToJson(*term.selector);
  return made;
}

inline json ToJson(const SpreadConstraint& constraint) {
  const bool anyway = constraint.when == SpreadConstraint::When::kScheduleAnyway;
  const auto word = [](SpreadConstraint::Policy policy) {
    return policy == SpreadConstraint::Policy::kHonor ? "Honor" : "Ignore";
  };
  json made = {{"topologyKey", constraint.topology_key},
               {"maxSkew", constraint.skew_max},
               {"whenUnsatisfiable", anyway ? "ScheduleAnyway" : "DoNotSchedule"},
               {"nodeAffinityPolicy", word(constraint.node_affinity)},
               {"nodeTaintsPolicy", word(constraint.node_taints)}};
  if (constraint.selector) made["labelSelector"] = ToJson(*constraint.selector);
  if (constraint.domains_min > 1) made["minDomains"] = constraint.domains_min;
  return made;
}

inline json TolerationsOf(const PodClass& pod) {
  const char* const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
  json made = json::array();
  for (const PodToleration& toleration : pod.tolerations) {
    const bool exists = toleration.op == PodToleration::Operator::kExists;
    json one = {{"operator", exists ? "Exists" : "Equal"}};
    if (!toleration.key.empty()) one["key"] = toleration.key;
    if (!exists) one["value"] = toleration.value;
    if (toleration.effect) one["effect"] = effects[static_cast<int>(*toleration.effect)];
    made.push_back(one);
  }
  return made;
}

inline json AffinityOf(const PodClass& pod) {
  json node = json::object(), with = json::object(), without = json::object();
  if (pod.required_nodes) {
    json terms = json::array();
    for (const NodeTerm& term : *pod.required_nodes) terms.push_back(ToJson(term));
    node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = terms;
  }
  const char* const required = "requiredDuringSchedulingIgnoredDuringExecution";
  const char* const preferred = "preferredDuringSchedulingIgnoredDuringExecution";
  for (const PreferredNodes& one : pod.preferred_nodes)
    node[preferred].push_back({{"weight", one.weight}, {"preference", ToJson(one.term)}});
  for (const PodAffinityTerm& term : pod.required_pods) with[required].push_back(ToJson(term));
  for (const PodAffinityTerm& term : pod.forbidden_pods) without[required].push_back(ToJson(term));
  for (const PreferredPods& one : pod.preferred_pods) {
    json& side = one.weight > 0 ? with : without;
    side[preferred].push_back(
        {{"weight", std::abs(one.weight)}, {"podAffinityTerm", ToJson(one.term)}});
  }
  json affinity = json::object();
  if (!node.empty()) affinity["nodeAffinity"] = node;
  if (!with.empty()) affinity["podAffinity"] = with;
  if (!without.empty()) affinity["podAntiAffinity"] = without;
  return affinity;
}

inline json ToJson(const PodClass& pod, const std::string& name) {
  json asks = json::object();
  const PodAmounts& amounts = pod.amounts;
  if (amounts.requests.cpu_millis > 0)
    asks["cpu"] = std::to_string(amounts.requests.cpu_millis) + "m";
  if (amounts.requests.memory_bytes > 0)
    asks["memory"] = std::to_string(amounts.requests.memory_bytes);
  if (amounts.ephemeral_bytes > 0)
    asks["ephemeral-storage"] = std::to_string(amounts.ephemeral_bytes);
  json limits = json::object();
  for (const auto& [scalar, amount] : amounts.scalars)
    asks[scalar] = limits[scalar] = std::to_string(amount);
  json container = {{"name", "main"},
                    {"image", pod.images.empty() ? "none" : pod.images.front()},
                    {"resources", {{"requests", asks}, {"limits", limits}}}};
  for (const HostPort& port : pod.host_ports) {
    container["ports"].push_back({{"containerPort", port.port},
                                  {"hostPort", port.port},
                                  {"protocol", port.protocol},
                                  {"hostIP", port.ip}});
  }
  json containers = {container};
  for (size_t i = 1; i < pod.images.size(); ++i)
    containers.push_back({{"name", "main-" + std::to_string(i)}, {"image", pod.images[i]}});
  json spec = {{"automountServiceAccountToken", false},
               {"containers", containers},
               {"tolerations", TolerationsOf(pod)},
               {"affinity", AffinityOf(pod)}};
  if (!pod.node_selector.empty()) spec["nodeSelector"] = ToMap(pod.node_selector);
  for (const SpreadConstraint& constraint : pod.spread)
    spec["topologySpreadConstraints"].push_back(ToJson(constraint));
  for (const std::string& claim : pod.claims) {
    spec["volumes"].push_back({{"name", claim}, {"persistentVolumeClaim", {{"claimName", claim}}}});
  }
  for (const CsiVolume& disk : pod.attached) {
    if (disk.driver != "cinder.csi.openstack.org") continue;  // Of a claim.
    spec["volumes"].push_back(
        {{"name", "disk-" + disk.handle}, {"cinder", {{"volumeID", disk.handle}}}});
  }
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", name}, {"namespace", pod.object_namespace}, {"labels", ToMap(pod.labels)}}},
          {"spec", spec}};
}

}  // namespace rudderfish::testing
