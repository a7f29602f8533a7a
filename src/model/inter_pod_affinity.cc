// SPDX-License-Identifier: Apache-2.0
#include "model/inter_pod_affinity.h"

#include <algorithm>
#include <limits>
#include <span>

namespace rudderfish {
namespace {

template <class Count>
void SumByDomain(const TopologyDomains& domains, std::span<const Count> by_node,
                 std::vector<int64_t>* by_domain) {
  by_domain->assign(domains.count, 0);
  for (size_t n = 0; n < by_node.size(); ++n) {
    if (domains.of_node[n] != kNone) (*by_domain)[domains.of_node[n]] += by_node[n];
  }
}

// Whether any pod that the terms select runs where one of their keys is.
bool AnyAttracts(const NodeTable& nodes, const PodCounts& counts, const CompiledPod& pod) {
  const std::span<const int32_t> by_node = counts.by_node(pod.attracted_by);
  for (NodeId n = 0; n < nodes.size(); ++n) {
    if (by_node[n] == 0) continue;
    for (const int key : pod.attracted_keys) {
      if (nodes.domains(key).of_node[n] != kNone) return true;
    }
  }
  return false;
}

void FilterAttraction(const NodeTable& nodes, const PodCounts& counts, const CompiledPod& pod,
                      Feasibility* out) {
  if (pod.attracted_by == kNone) return;
  // The first of a group that attracts itself may go wherever the keys are.
  const bool is_first = pod.attracts_itself && !AnyAttracts(nodes, counts, pod);
  for (const int key : pod.attracted_keys) {
    const TopologyDomains& domains = nodes.domains(key);
    SumByDomain(domains, counts.by_node(pod.attracted_by), &out->by_domain);
    for (NodeId n = 0; n < nodes.size(); ++n) {
      if (!out->IsFeasible(n)) continue;
      const int32_t domain = domains.of_node[n];
      if (domain == kNone || (!is_first && out->by_domain[domain] <= 0))
        out->rejection[n] = Rejection::kAffinity;
    }
  }
}

template <class Count>
void RejectWhereAny(const TopologyDomains& domains, std::span<const Count> by_node,
                    Rejection rejection, Feasibility* out) {
  SumByDomain(domains, by_node, &out->by_domain);
  for (size_t n = 0; n < by_node.size(); ++n) {
    if (out->rejection[n] != Rejection::kNone || domains.of_node[n] == kNone) continue;
    if (out->by_domain[domains.of_node[n]] > 0) out->rejection[n] = rejection;
  }
}

template <class Count>
void AddScores(const TopologyDomains& domains, std::span<const Count> by_node, int64_t weight,
               std::vector<int64_t>* by_domain, std::vector<int64_t>* scores) {
  SumByDomain(domains, by_node, by_domain);
  for (size_t n = 0; n < by_node.size(); ++n) {
    if (domains.of_node[n] != kNone) (*scores)[n] += weight * (*by_domain)[domains.of_node[n]];
  }
}

}  // namespace

void FilterAffinity(const NodeTable& nodes, const PodCounts& counts, PodClassId id,
                    const CompiledPod& pod, Feasibility* out) {
  FilterAttraction(nodes, counts, pod, out);
  for (const CompiledPod::Preferred& term : pod.repelled_by) {
    if (counts.total(term.matcher) == 0) continue;
    RejectWhereAny(nodes.domains(term.key_row), counts.by_node(term.matcher),
                   Rejection::kAntiAffinity, out);
  }
  for (const PodCounts::BurdenId burden : counts.burdens_on(id)) {
    const PodCounts::Burden& brought = counts.burden(burden);
    if (brought.effect != PodCounts::Effect::kForbids || brought.bearers == 0) continue;
    RejectWhereAny<int64_t>(nodes.domains(brought.key_row), brought.by_node,
                            Rejection::kExistingAntiAffinity, out);
  }
}

void ScoreAffinity(const NodeTable& nodes, const PodCounts& counts, PodClassId id,
                   const CompiledPod& pod, const Feasibility& feasibility,
                   std::vector<int64_t>* by_domain, std::vector<int64_t>* scores) {
  std::fill(scores->begin(), scores->end(), 0);
  if (pod.preferred.empty() && counts.burdens_on(id).empty()) return;
  for (const CompiledPod::Preferred& term : pod.preferred) {
    if (counts.total(term.matcher) == 0) continue;
    AddScores(nodes.domains(term.key_row), counts.by_node(term.matcher), term.weight, by_domain,
              scores);
  }
  for (const PodCounts::BurdenId burden : counts.burdens_on(id)) {
    const PodCounts::Burden& brought = counts.burden(burden);
    if (brought.effect != PodCounts::Effect::kScores || brought.bearers == 0) continue;
    AddScores<int64_t>(nodes.domains(brought.key_row), brought.by_node, 1, by_domain, scores);
  }
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = std::numeric_limits<int64_t>::min();
  for (NodeId n = 0; n < nodes.size(); ++n) {
    if (!feasibility.IsFeasible(n)) continue;
    least = std::min(least, (*scores)[n]);
    most = std::max(most, (*scores)[n]);
  }
  const int64_t range = feasibility.feasible > 0 ? most - least : 0;
  for (int64_t& score : *scores) {
    score = range > 0 ? static_cast<int64_t>(
                            100 * (static_cast<double>(score - least) / static_cast<double>(range)))
                      : 0;
  }
}

}  // namespace rudderfish
