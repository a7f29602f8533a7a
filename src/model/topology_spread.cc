// SPDX-License-Identifier: Apache-2.0
#include "model/topology_spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace rudderfish {
namespace {

constexpr int64_t kAbsent = -1;  // No node of this domain counts.
constexpr int64_t kIgnored = -1;

bool HasAllKeys(const NodeTable& nodes, std::span<const CompiledPod::Spread> constraints,
                NodeId node) {
  return std::all_of(constraints.begin(), constraints.end(), [&](const auto& constraint) {
    return nodes.domains(constraint.key_row).of_node[node] != kNone;
  });
}

bool Includes(const CompiledPod::Spread& constraint, const CompiledPod::OnNode& node) {
  return (!constraint.needs_affinity || node.fits_affinity) &&
         (!constraint.needs_tolerance || node.is_tolerated);
}

int64_t CountOn(const PodCounts& counts, const CompiledPod::Spread& constraint, NodeId node) {
  return constraint.matcher == kNone ? 0 : counts.by_node(constraint.matcher)[node];
}

// The least count of a domain; 0 where there are fewer domains than there must be.
int64_t LeastCount(const CompiledPod::Spread& constraint, std::span<const int64_t> by_domain) {
  int64_t least = std::numeric_limits<int64_t>::max(), domains = 0;
  for (const int64_t count : by_domain) {
    if (count == kAbsent) continue;
    least = std::min(least, count);
    ++domains;
  }
  return domains < constraint.domains_min ? 0 : least;
}

void CountByDomain(const NodeTable& nodes, const PodCounts& counts, const CompiledPod& pod,
                   const CompiledPod::Spread& constraint, std::vector<int64_t>* by_domain) {
  const TopologyDomains& domains = nodes.domains(constraint.key_row);
  by_domain->assign(domains.count, kAbsent);
  for (NodeId n = 0; n < nodes.size(); ++n) {
    if (!Includes(constraint, pod.on_node[n]) || !HasAllKeys(nodes, pod.must_spread, n)) continue;
    int64_t& sum = (*by_domain)[domains.of_node[n]];
    sum = std::max<int64_t>(sum, 0) + CountOn(counts, constraint, n);
  }
}

// Which domains the feasible nodes have, each with 0; how many, nodes without the key counting as
// one more.
int64_t StartDomains(const TopologyDomains& domains, const Feasibility& feasibility,
                     std::span<const int64_t> scores, std::vector<int64_t>* by_domain) {
  by_domain->assign(domains.count, kAbsent);
  int64_t found = 0;
  bool without = false;
  for (size_t n = 0; n < scores.size(); ++n) {
    if (!feasibility.IsFeasible(static_cast<NodeId>(n)) || scores[n] == kIgnored) continue;
    if (domains.of_node[n] == kNone) {
      without = true;
      continue;
    }
    int64_t& count = (*by_domain)[domains.of_node[n]];
    found += count == kAbsent;
    count = 0;
  }
  return found + without;
}

// What the pods of each domain that the feasible nodes have add up to.
void SumDomains(const NodeTable& nodes, const PodCounts& counts, const CompiledPod& pod,
                const CompiledPod::Spread& constraint, std::vector<int64_t>* by_domain) {
  const TopologyDomains& domains = nodes.domains(constraint.key_row);
  for (NodeId n = 0; n < nodes.size(); ++n) {
    const int32_t domain = domains.of_node[n];
    if (domain == kNone || (*by_domain)[domain] == kAbsent) continue;
    if (!Includes(constraint, pod.on_node[n])) continue;
    if (pod.spread_needs_all_keys && !HasAllKeys(nodes, pod.may_spread, n)) continue;
    (*by_domain)[domain] += CountOn(counts, constraint, n);
  }
}

void Normalise(const Feasibility& feasibility, std::vector<int64_t>* scores) {
  int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
  for (size_t n = 0; n < scores->size(); ++n) {
    if (!feasibility.IsFeasible(static_cast<NodeId>(n)) || (*scores)[n] == kIgnored) continue;
    least = std::min(least, (*scores)[n]);
    most = std::max(most, (*scores)[n]);
  }
  for (int64_t& score : *scores) {
    if (score == kIgnored) {
      score = 0;
    } else {
      score = SpreadScore(score, least, most);
    }
  }
}

}  // namespace

void FilterSpread(const NodeTable& nodes, const PodCounts& counts, const CompiledPod& pod,
                  Feasibility* out) {
  for (const CompiledPod::Spread& constraint : pod.must_spread) {
    const TopologyDomains& domains = nodes.domains(constraint.key_row);
    CountByDomain(nodes, counts, pod, constraint, &out->by_domain);
    const int64_t least = LeastCount(constraint, out->by_domain);
    for (NodeId n = 0; n < nodes.size(); ++n) {
      if (!out->IsFeasible(n)) continue;
      const int32_t domain = domains.of_node[n];
      if (domain == kNone) {
        out->rejection[n] = Rejection::kSpreadLabel;
        continue;
      }
      const int64_t count = std::max<int64_t>(out->by_domain[domain], 0);
      if (count + constraint.selects_self - least > constraint.skew_max)
        out->rejection[n] = Rejection::kSpread;
    }
  }
}

double SpreadWeight(int64_t domains) { return std::log(static_cast<double>(domains + 2)); }

int64_t SpreadScore(int64_t sum, int64_t least, int64_t most) {
  return most == 0 ? 100 : 100 * (most + least - sum) / most;
}

void ScoreSpread(const NodeTable& nodes, const PodCounts& counts, const CompiledPod& pod,
                 const Feasibility& feasibility, std::vector<int64_t>* by_domain,
                 std::vector<double>* sums, std::vector<int64_t>* scores) {
  int64_t ignored = 0;
  for (NodeId n = 0; n < nodes.size(); ++n) {
    const bool left_out = pod.spread_needs_all_keys && !HasAllKeys(nodes, pod.may_spread, n);
    (*scores)[n] = left_out ? kIgnored : 0;
    ignored += left_out && feasibility.IsFeasible(n);
    (*sums)[n] = 0;
  }
  for (const CompiledPod::Spread& constraint : pod.may_spread) {
    const TopologyDomains& domains = nodes.domains(constraint.key_row);
    int64_t size = feasibility.feasible - ignored;
    if (!constraint.by_host) {
      size = StartDomains(domains, feasibility, *scores, by_domain);
      SumDomains(nodes, counts, pod, constraint, by_domain);
    }
    const double weight = SpreadWeight(size);
    for (NodeId n = 0; n < nodes.size(); ++n) {
      if (domains.of_node[n] == kNone || !feasibility.IsFeasible(n)) continue;
      const int64_t count =
          constraint.by_host ? CountOn(counts, constraint, n) : (*by_domain)[domains.of_node[n]];
      (*sums)[n] += SpreadSum(count, weight, constraint.skew_max);
    }
  }
  for (NodeId n = 0; n < nodes.size(); ++n) {
    if ((*scores)[n] != kIgnored && feasibility.IsFeasible(n))
      (*scores)[n] = static_cast<int64_t>(std::round((*sums)[n]));
  }
  Normalise(feasibility, scores);
}

}  // namespace rudderfish
