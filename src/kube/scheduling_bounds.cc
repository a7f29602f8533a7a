// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace rudderfish::kube::internal {
namespace {

size_t CountValues(const std::optional<LabelSelector>& selector) {
  size_t count = 0;
  if (!selector) return count;
  for (const LabelRequirement& one : selector->requirements) count += 1 + one.values.size();
  return count;
}

size_t CountValues(const PodAffinityTerm& term) {
  return term.namespaces.size() + CountValues(term.namespace_selector) + CountValues(term.selector);
}

size_t CountValues(std::span<const PodAffinityTerm> terms) {
  size_t count = 0;
  for (const PodAffinityTerm& term : terms) count += CountValues(term);
  return count;
}

struct NodeWords {
  size_t expressions = 0, values = 0;

  void Add(const NodeTerm& term) {
    // A term without expressions is looked at, too.
    expressions += std::max<size_t>(term.expressions.size() + term.fields.size(), 1);
    for (const auto* rules : {&term.expressions, &term.fields}) {
      for (const NodeRequirement& rule : *rules) values += rule.values.size();
    }
  }
};

void BoundPodTerms(PodClass* pod) {
  const size_t terms = pod->required_pods.size() + pod->forbidden_pods.size() +
                       pod->preferred_pods.size() + pod->spread.size();
  size_t values = CountValues(pod->required_pods) + CountValues(pod->forbidden_pods);
  for (const PreferredPods& preferred : pod->preferred_pods) values += CountValues(preferred.term);
  for (const SpreadConstraint& constraint : pod->spread) values += CountValues(constraint.selector);
  if (terms > kPodTermsMax) {
    pod->unmodelled.push_back(
        fmt::format("has {} terms about other pods, more than {}", terms, kPodTermsMax));
  } else if (values > kPodValuesMax) {
    pod->unmodelled.push_back(fmt::format(
        "names {} labels and namespaces of other pods, more than {}", values, kPodValuesMax));
  } else {
    return;
  }
  pod->required_pods.clear();
  pod->preferred_pods.clear();
  pod->spread.clear();
  pod->default_spread.reset();
  // What it forbids others is heeded where that alone is within the bounds.
  if (pod->forbidden_pods.size() <= kPodTermsMax &&
      CountValues(pod->forbidden_pods) <= kPodValuesMax)
    return;
  pod->forbidden_pods.clear();
  pod->holds_unknown = true;
}

void BoundNodeTerms(PodClass* pod) {
  NodeWords all{.expressions = pod->node_selector.size() + pod->tolerations.size()};
  if (pod->required_nodes) {
    for (const NodeTerm& term : *pod->required_nodes) all.Add(term);
  }
  for (const PreferredNodes& preferred : pod->preferred_nodes) all.Add(preferred.term);
  if (all.expressions > kNodeTermsMax) {
    pod->unmodelled.push_back(
        fmt::format("has {} selectors, expressions and tolerations about nodes, more than {}",
                    all.expressions, kNodeTermsMax));
  } else if (all.values > kNodeValuesMax) {
    pod->unmodelled.push_back(fmt::format("names {} values of labels of nodes, more than {}",
                                          all.values, kNodeValuesMax));
  } else {
    return;
  }
  pod->node_selector.clear();
  pod->tolerations.clear();
  pod->required_nodes.reset();
  pod->preferred_nodes.clear();
}

void BoundHostPorts(PodClass* pod) {
  const size_t count = pod->host_ports.size();
  if (count <= kHostPortsMax) return;
  pod->unmodelled.push_back(
      fmt::format("has {} ports of the host, more than {}", count, kHostPortsMax));
  pod->host_ports.clear();
  pod->holds_unknown = true;
}

}  // namespace

void BoundTerms(PodClass* pod) {
  BoundPodTerms(pod);
  BoundNodeTerms(pod);
  BoundHostPorts(pod);
}

}  // namespace rudderfish::kube::internal
