// SPDX-License-Identifier: Apache-2.0
#include "model/inter_pod_affinity.h"

#include <algorithm>
#include <limits>
#include <span>

namespace rudderfish {
namespace {

void SumByDomain(const TopologyDomains& domains, std::span<const int32_t> by_node,
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

void RejectWhereAny(const TopologyDomains& domains, const std::vector<int64_t>& by_domain,
                    Rejection rejection, Feasibility* out) {
  for (size_t n = 0; n < out->rejection.size(); ++n) {
    if (out->rejection[n] != Rejection::kNone || domains.of_node[n] == kNone) continue;
    if (by_domain[domains.of_node[n]] > 0) out->rejection[n] = rejection;
  }
}

void AddScores(const TopologyDomains& domains, const std::vector<int64_t>& by_domain,
               std::vector<int64_t>* scores) {
  for (size_t n = 0; n < scores->size(); ++n) {
    if (domains.of_node[n] != kNone) (*scores)[n] += by_domain[domains.of_node[n]];
  }
}

// Sums what bearers bring by domain of each topology that they do so for, and calls `each` with the
// domains: one look at the nodes, however many burdens there are.
template <class Each>
void ForBurdens(const NodeTable& nodes, const PodCounts& counts, PodClassId id,
                PodCounts::Effect effect, std::vector<int64_t>* by_domain, const Each& each) {
  const std::span<const PodCounts::BurdenOn> burdens = counts.burdens_on(id);
  for (size_t begin = 0, end = 0; begin < burdens.size(); begin = end) {
    const PodCounts::Burden& first = counts.burden(burdens[begin].id);
    while (end < burdens.size() && counts.burden(burdens[end].id).effect == first.effect &&
           counts.burden(burdens[end].id).key_row == first.key_row)
      ++end;
    const TopologyDomains& domains = nodes.domains(first.key_row);
    if (first.effect != effect || domains.count == 0) continue;
    by_domain->assign(domains.count, 0);
    bool is_borne = false;
    for (size_t i = begin; i < end; ++i) {
      for (const auto& [node, bearers] : counts.burden(burdens[i].id).on_nodes) {
        if (domains.of_node[node] == kNone) continue;
        (*by_domain)[domains.of_node[node]] += bearers * burdens[i].value;
        is_borne = true;
      }
    }
    if (is_borne) each(domains);
  }
}

}  // namespace

void FilterAffinity(const NodeTable& nodes, const PodCounts& counts, PodClassId id,
                    const CompiledPod& pod, Feasibility* out) {
  FilterAttraction(nodes, counts, pod, out);
  for (const CompiledPod::Others& term : pod.repelled_by) {
    if (counts.total(term.matcher) == 0) continue;
    const TopologyDomains& domains = nodes.domains(term.key_row);
    SumByDomain(domains, counts.by_node(term.matcher), &out->by_domain);
    RejectWhereAny(domains, out->by_domain, Rejection::kAntiAffinity, out);
  }
  ForBurdens(nodes, counts, id, PodCounts::Effect::kForbids, &out->by_domain,
             [&](const TopologyDomains& domains) {
               RejectWhereAny(domains, out->by_domain, Rejection::kExistingAntiAffinity, out);
             });
}

void ScoreAffinity(const NodeTable& nodes, const PodCounts& counts, PodClassId id,
                   const CompiledPod& pod, const Feasibility& feasibility,
                   std::vector<int64_t>* by_domain, std::vector<int64_t>* scores) {
  std::fill(scores->begin(), scores->end(), 0);
  if (pod.preferred.empty() && counts.burdens_on(id).empty()) return;
  for (const CompiledPod::Others& term : pod.preferred) {
    if (counts.total(term.matcher) == 0) continue;
    const TopologyDomains& domains = nodes.domains(term.key_row);
    SumByDomain(domains, counts.by_node(term.matcher), by_domain);
    AddScores(domains, *by_domain, scores);
  }
  ForBurdens(nodes, counts, id, PodCounts::Effect::kScores, by_domain,
             [&](const TopologyDomains& domains) { AddScores(domains, *by_domain, scores); });
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
