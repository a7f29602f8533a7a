// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduling.h"

#include <algorithm>
#include <charconv>
#include <functional>

namespace rudderfish {
namespace {

// As strconv.ParseInt: a sign, decimal digits, nothing else, 64 bits.
std::optional<int64_t> WholeNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(text.starts_with("+-") ? 0 : 1);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool FieldHolds(const NodeRequirement& field, std::string_view node) {
  const std::string_view found = field.key == "metadata.name" ? node : std::string_view();
  const bool equal = !field.values.empty() && field.values.front() == found;
  return field.op == NodeRequirement::Operator::kNotIn ? !equal : equal;
}

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

bool NodeRequirement::Holds(const Labels& labels) const {
  const std::string* value = FindLabel(labels, key);
  const auto is_listed = [&] {
    return std::find(values.begin(), values.end(), *value) != values.end();
  };
  switch (op) {
    case Operator::kIn:
      return value != nullptr && is_listed();
    case Operator::kNotIn:
      return value == nullptr || !is_listed();
    case Operator::kExists:
      return value != nullptr;
    case Operator::kDoesNotExist:
      return value == nullptr;
    case Operator::kGt:
    case Operator::kLt:
      break;
  }
  const std::optional<int64_t> number = value == nullptr ? std::nullopt : WholeNumber(*value);
  if (!number) return false;
  return op == Operator::kGt ? *number > bound : *number < bound;
}

bool NodeTerm::Matches(std::string_view node, const Labels& labels) const {
  if (malformed || (expressions.empty() && fields.empty())) return false;
  return std::all_of(expressions.begin(), expressions.end(),
                     [&](const NodeRequirement& r) { return r.Holds(labels); }) &&
         (node.empty() || std::all_of(fields.begin(), fields.end(), [&](const NodeRequirement& f) {
            return FieldHolds(f, node);
          }));
}

bool AnyMatches(std::span<const NodeTerm> terms, std::string_view node, const Labels& labels) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const NodeTerm& term) { return term.Matches(node, labels); });
}

bool HostPort::ConflictsWith(const HostPort& other) const {
  if (port != other.port || protocol != other.protocol) return false;
  return ip == other.ip || ip == "0.0.0.0" || other.ip == "0.0.0.0";
}

size_t HashOf(const PodClass& pod) {
  size_t hash = std::hash<std::string>()(pod.object_namespace);
  const auto mix = [&](size_t more) { hash = hash * 0x9e3779b97f4a7c15u + more; };
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
