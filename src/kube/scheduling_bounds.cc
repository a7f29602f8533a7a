// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace rudderfish::kube::internal {
namespace {

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

void BoundTopologyKeys(PodClass* pod) {
  std::set<std::string_view> keys;
  for (const auto* terms : {&pod->required_pods, &pod->forbidden_pods}) {
    for (const PodAffinityTerm& term : *terms) keys.insert(term.topology_key);
  }
  for (const PreferredPods& preferred : pod->preferred_pods)
    keys.insert(preferred.term.topology_key);
  for (const SpreadConstraint& constraint : pod->spread) keys.insert(constraint.topology_key);
  if (keys.size() <= kTopologyKeysMax) return;
  pod->unmodelled.push_back(fmt::format("names {} topology keys of other pods, more than {}",
                                        keys.size(), kTopologyKeysMax));
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

}  // namespace

void BoundTerms(PodClass* pod) {
  BoundTopologyKeys(pod);
  BoundNodeTerms(pod);
}

}  // namespace rudderfish::kube::internal
