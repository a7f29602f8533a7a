// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "kube/object_reader.h"

namespace rudderfish::kube::internal {
namespace {

constexpr int64_t kWeightMax = 100;

Result<NodeRequirement::Operator> ReadOperator(const Fields& rule) {
  constexpr std::string_view kOperators[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
  TRY_ASSIGN(const std::string_view op, rule.Text("operator"));
  const auto at = std::find(std::begin(kOperators), std::end(kOperators), op);
  if (at == std::end(kOperators)) {
    return Invalid("operator: expected In, NotIn, Exists, DoesNotExist, Gt or Lt, found `{}`",
                   op.substr(0, 40));
  }
  return static_cast<NodeRequirement::Operator>(at - std::begin(kOperators));
}

// Whether kube-scheduler can make a requirement of it; a term that has another fits no node.
bool IsWellFormed(NodeRequirement* requirement) {
  using Operator = NodeRequirement::Operator;
  const std::vector<std::string>& values = requirement->values;
  switch (requirement->op) {
    case Operator::kIn:
    case Operator::kNotIn:
      return !values.empty();
    case Operator::kExists:
    case Operator::kDoesNotExist:
      return values.empty();
    case Operator::kGt:
    case Operator::kLt:
      break;
  }
  if (values.size() != 1) return false;
  std::string_view text = values.front();
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), requirement->bound);
  return error == std::errc() && end == text.data() + text.size();
}

bool IsWellFormedField(const NodeRequirement& field) {
  return field.values.size() == 1 && (field.op == NodeRequirement::Operator::kIn ||
                                      field.op == NodeRequirement::Operator::kNotIn);
}

Result<std::vector<NodeRequirement>> ReadRequirements(const Fields& object, std::string_view path) {
  std::vector<NodeRequirement> made;
  TRY(object.ForEach(path, [&](const Fields& rule) -> Result<void> {
    NodeRequirement requirement;
    TRY_ASSIGN(requirement.key, rule.Text("key"));
    TRY_ASSIGN(requirement.op, ReadOperator(rule));
    TRY_ASSIGN(requirement.values, ReadTexts(rule, "values"));
    made.push_back(std::move(requirement));
    return {};
  }));
  return made;
}

Result<NodeTerm> ReadNodeTerm(const Fields& object, const std::string& prefix) {
  NodeTerm term;
  TRY_ASSIGN(term.expressions, ReadRequirements(object, prefix + "matchExpressions"));
  TRY_ASSIGN(term.fields, ReadRequirements(object, prefix + "matchFields"));
  for (NodeRequirement& requirement : term.expressions)
    term.malformed |= !IsWellFormed(&requirement);
  for (const NodeRequirement& field : term.fields) term.malformed |= !IsWellFormedField(field);
  return term;
}

bool IsEmpty(const NodeTerm& term) { return term.expressions.empty() && term.fields.empty(); }

Result<int64_t> ReadWeight(const Fields& object) {
  TRY_ASSIGN(const int64_t weight, object.Integer("weight"));
  if (weight < 0 || weight > kWeightMax)
    return Invalid("weight: expected 1 to {}, found {}", kWeightMax, weight);
  return weight;
}

// The pod's own values of these labels become part of the selector, as the API server makes them.
void AddLabelKeys(const std::vector<std::string>& keys, LabelRequirement::Operator op,
                  const Labels& labels, std::optional<LabelSelector>* selector) {
  if (!*selector) return;
  for (const std::string& key : keys) {
    const std::string* value = FindLabel(labels, key);
    if (value == nullptr) continue;
    LabelRequirement requirement{key, op, {*value}};
    std::vector<LabelRequirement>& known = (*selector)->requirements;
    if (std::find(known.begin(), known.end(), requirement) == known.end())
      known.push_back(std::move(requirement));
  }
}

Result<PodAffinityTerm> ReadPodTerm(const Fields& object, const std::string& prefix,
                                    const PodClass& pod) {
  using Operator = LabelRequirement::Operator;
  PodAffinityTerm term;
  TRY_ASSIGN(term.topology_key, object.Text(prefix + "topologyKey"));
  if (term.topology_key.empty()) return Invalid("{}topologyKey: is missing", prefix);
  TRY_ASSIGN(term.namespaces, ReadTexts(object, prefix + "namespaces"));
  TRY_ASSIGN(term.namespace_selector, ReadOptionalSelector(object, prefix + "namespaceSelector"));
  TRY_ASSIGN(term.selector, ReadOptionalSelector(object, prefix + "labelSelector"));
  TRY_ASSIGN(const auto match, ReadTexts(object, prefix + "matchLabelKeys"));
  TRY_ASSIGN(const auto mismatch, ReadTexts(object, prefix + "mismatchLabelKeys"));
  AddLabelKeys(match, Operator::kIn, pod.labels, &term.selector);
  AddLabelKeys(mismatch, Operator::kNotIn, pod.labels, &term.selector);
  if (term.namespaces.empty() && !term.namespace_selector)
    term.namespaces.push_back(pod.object_namespace);
  std::sort(term.namespaces.begin(), term.namespaces.end());
  return term;
}

Result<void> ReadPodAffinity(const Fields& pod, const std::string& path, int64_t sign,
                             std::vector<PodAffinityTerm>* required, PodClass* made) {
  TRY(pod.ForEach(path + ".requiredDuringSchedulingIgnoredDuringExecution",
                  [&](const Fields& fields) -> Result<void> {
                    TRY_ASSIGN(PodAffinityTerm term, ReadPodTerm(fields, "", *made));
                    required->push_back(std::move(term));
                    return {};
                  }));
  return pod.ForEach(path + ".preferredDuringSchedulingIgnoredDuringExecution",
                     [&](const Fields& fields) -> Result<void> {
                       PreferredPods preferred;
                       TRY_ASSIGN(preferred.weight, ReadWeight(fields));
                       preferred.weight *= sign;
                       TRY_ASSIGN(preferred.term, ReadPodTerm(fields, "podAffinityTerm.", *made));
                       made->preferred_pods.push_back(std::move(preferred));
                       return {};
                     });
}

Result<void> ReadNodeAffinity(const Fields& pod, PodClass* made) {
  const std::string required =
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
  TRY_ASSIGN(const Fields there, pod.Find(required));
  if (there.there()) {
    TRY_ASSIGN(made->required_nodes, ReadNodeTerms(pod, required + ".nodeSelectorTerms"));
  }
  return pod.ForEach("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
                     [&](const Fields& fields) -> Result<void> {
                       PreferredNodes preferred;
                       TRY_ASSIGN(preferred.weight, ReadWeight(fields));
                       TRY_ASSIGN(preferred.term, ReadNodeTerm(fields, "preference."));
                       if (preferred.weight == 0 || IsEmpty(preferred.term)) return {};
                       if (preferred.term.malformed) {
                         made->unmodelled.emplace_back(
                             "prefers nodes by a term that is malformed, which kube-scheduler "
                             "fails on");
                         return {};
                       }
                       made->preferred_nodes.push_back(std::move(preferred));
                       return {};
                     });
}

Result<SpreadConstraint::Policy> ReadPolicy(const Fields& object, std::string_view path,
                                            SpreadConstraint::Policy absent) {
  TRY_ASSIGN(const std::string_view text, object.Text(path));
  if (text.empty()) return absent;
  if (text == "Honor") return SpreadConstraint::Policy::kHonor;
  if (text == "Ignore") return SpreadConstraint::Policy::kIgnore;
  return Invalid("{}: expected Honor or Ignore, found `{}`", path, text.substr(0, 40));
}

Result<SpreadConstraint> ReadConstraint(const Fields& fields, const PodClass& pod) {
  SpreadConstraint made;
  TRY_ASSIGN(made.topology_key, fields.Text("topologyKey"));
  if (made.topology_key.empty()) return Invalid("topologyKey: is missing");
  TRY_ASSIGN(made.skew_max, fields.Integer("maxSkew"));
  TRY_ASSIGN(made.domains_min, fields.Integer("minDomains", 1));
  for (const int64_t number : {made.skew_max, made.domains_min}) {
    if (number < 1 || number > INT32_MAX)
      return Invalid("maxSkew, minDomains: expected 1 or more, found {}", number);
  }
  TRY_ASSIGN(const std::string_view when, fields.Text("whenUnsatisfiable"));
  if (when == "ScheduleAnyway") {
    made.when = SpreadConstraint::When::kScheduleAnyway;
  } else if (when != "DoNotSchedule") {
    return Invalid("whenUnsatisfiable: expected DoNotSchedule or ScheduleAnyway, found `{}`",
                   when.substr(0, 40));
  }
  TRY_ASSIGN(made.selector, ReadOptionalSelector(fields, "labelSelector"));
  TRY_ASSIGN(const auto keys, ReadTexts(fields, "matchLabelKeys"));
  AddLabelKeys(keys, LabelRequirement::Operator::kIn, pod.labels, &made.selector);
  TRY_ASSIGN(made.node_affinity, ReadPolicy(fields, "nodeAffinityPolicy", made.node_affinity));
  TRY_ASSIGN(made.node_taints, ReadPolicy(fields, "nodeTaintsPolicy", made.node_taints));
  return made;
}

// Nothing: none is given.
Result<std::optional<TaintEffect>> ReadEffect(const Fields& object) {
  TRY_ASSIGN(const std::string_view text, object.Text("effect"));
  if (text.empty()) return std::optional<TaintEffect>();
  if (text == "NoSchedule") return std::optional(TaintEffect::kNoSchedule);
  if (text == "PreferNoSchedule") return std::optional(TaintEffect::kPreferNoSchedule);
  if (text == "NoExecute") return std::optional(TaintEffect::kNoExecute);
  return Invalid("effect: expected NoSchedule, PreferNoSchedule or NoExecute, found `{}`",
                 text.substr(0, 40));
}

}  // namespace

Result<std::vector<std::string>> ReadTexts(const Fields& object, std::string_view path) {
  std::vector<std::string> texts;
  TRY(object.ForEach(path, [&](const Fields& value) -> Result<void> {
    std::string_view text;
    if (!value.there() || value.element().get(text) != simdjson::SUCCESS)
      return Invalid(": expected text");
    texts.emplace_back(text);
    return {};
  }));
  return texts;
}

Result<std::optional<LabelSelector>> ReadOptionalSelector(const Fields& object,
                                                          std::string_view path) {
  TRY_ASSIGN(const Fields there, object.Find(path));
  if (!there.there()) return std::optional<LabelSelector>();
  TRY_ASSIGN(LabelSelector selector, ReadSelector(object, path));
  return std::optional<LabelSelector>(std::move(selector));
}

Result<std::vector<NodeTerm>> ReadNodeTerms(const Fields& object, std::string_view path) {
  std::vector<NodeTerm> terms;
  TRY(object.ForEach(path, [&](const Fields& fields) -> Result<void> {
    TRY_ASSIGN(NodeTerm term, ReadNodeTerm(fields, ""));
    terms.push_back(std::move(term));
    return {};
  }));
  return terms;
}

Result<void> ReadAffinity(const Fields& pod, PodClass* made) {
  TRY(ReadNodeAffinity(pod, made));
  TRY(ReadPodAffinity(pod, "spec.affinity.podAffinity", 1, &made->required_pods, made));
  return ReadPodAffinity(pod, "spec.affinity.podAntiAffinity", -1, &made->forbidden_pods, made);
}

Result<void> ReadSpread(const Fields& pod, PodClass* made) {
  return pod.ForEach("spec.topologySpreadConstraints", [&](const Fields& fields) -> Result<void> {
    TRY_ASSIGN(SpreadConstraint constraint, ReadConstraint(fields, *made));
    made->spread.push_back(std::move(constraint));
    return {};
  });
}

Result<std::vector<NodeTaint>> ReadTaints(const Fields& node) {
  std::vector<NodeTaint> taints;
  TRY(node.ForEach("spec.taints", [&](const Fields& taint) -> Result<void> {
    NodeTaint made;
    TRY_ASSIGN(made.key, taint.Text("key"));
    TRY_ASSIGN(made.value, taint.Text("value"));
    TRY_ASSIGN(const std::optional<TaintEffect> effect, ReadEffect(taint));
    if (!effect) return Invalid("effect: is missing");
    made.effect = *effect;
    taints.push_back(std::move(made));
    return {};
  }));
  return taints;
}

Result<void> ReadTolerations(const Fields& pod, PodClass* made) {
  return pod.ForEach("spec.tolerations", [&](const Fields& fields) -> Result<void> {
    PodToleration toleration;
    TRY_ASSIGN(toleration.key, fields.Text("key"));
    TRY_ASSIGN(toleration.value, fields.Text("value"));
    TRY_ASSIGN(toleration.effect, ReadEffect(fields));
    TRY_ASSIGN(const std::string_view op, fields.Text("operator"));
    if (op == "Lt" || op == "Gt") {  // Of a feature that is off: tolerates nothing.
      made->unmodelled.push_back(fmt::format("tolerates a taint by the operator {}", op));
      return {};
    }
    if (op == "Exists") {
      toleration.op = PodToleration::Operator::kExists;
    } else if (!op.empty() && op != "Equal") {
      return Invalid("operator: expected Equal or Exists, found `{}`", op.substr(0, 40));
    }
    made->tolerations.push_back(std::move(toleration));
    return {};
  });
}

}  // namespace rudderfish::kube::internal
