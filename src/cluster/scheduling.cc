// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduling.h"

#include <algorithm>
#include <functional>

namespace rudderfish {
namespace {

constexpr size_t kMixer = 0x9e3779b97f4a7c15u;

}  // namespace

bool PodToleration::Tolerates(const NodeTaint& taint) const {
  if (effect && *effect != taint.effect) return false;
  if (!key.empty() && key != taint.key) return false;
  return op == Operator::kExists || value == taint.value;
}

bool Tolerate(std::span<const PodToleration> tolerations, const NodeTaint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const PodToleration& t) { return t.Tolerates(taint); });
}

bool HostPort::ConflictsWith(const HostPort& other) const {
  if (port != other.port || protocol != other.protocol) return false;
  return ip == other.ip || ip == "0.0.0.0" || other.ip == "0.0.0.0";
}

size_t HashOf(const PodAffinityTerm& term) {
  size_t hash = 0;
  const auto mix = [&](std::string_view text) {
    hash = hash * kMixer + std::hash<std::string_view>()(text);
  };
  for (const std::string& name : term.namespaces) mix(name);
  for (const auto* selector : {&term.namespace_selector, &term.selector}) {
    if (!*selector) continue;
    for (const LabelRequirement& requirement : (*selector)->requirements) {
      mix(requirement.key);
      for (const std::string& value : requirement.values) mix(value);
    }
  }
  mix(term.topology_key);
  return hash;
}

// All terms count: pods of many that differ in the last must not be compared term by term.
size_t HashOf(const PodClass& pod) {
  size_t hash = std::hash<std::string>()(pod.object_namespace);
  const auto mix = [&](size_t more) { hash = hash * kMixer + more; };
  for (const auto* terms : {&pod.required_pods, &pod.forbidden_pods}) {
    for (const PodAffinityTerm& term : *terms) mix(HashOf(term));
  }
  for (const auto& [term, weight] : pod.preferred_pods) mix(HashOf(term));
  for (const HostPort& port : pod.host_ports) mix(static_cast<size_t>(port.port));
  for (const auto& [key, value] : pod.labels) mix(std::hash<std::string>()(value));
  mix(static_cast<size_t>(pod.amounts.requests.cpu_millis));
  mix(static_cast<size_t>(pod.amounts.requests.memory_bytes));
  mix(pod.required_pods.size() + 3 * pod.forbidden_pods.size() + 7 * pod.spread.size() +
      11 * pod.tolerations.size() + 13 * pod.host_ports.size());
  for (const std::string& claim : pod.claims) mix(std::hash<std::string>()(claim));
  for (const auto& [key, value] : pod.node_selector) mix(std::hash<std::string>()(value));
  return hash;
}

}  // namespace rudderfish
