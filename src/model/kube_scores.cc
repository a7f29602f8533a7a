// SPDX-License-Identifier: Apache-2.0
#include "model/kube_scores.h"

#include <algorithm>
#include <cmath>

#include "model/inter_pod_affinity.h"
#include "model/topology_spread.h"

namespace rudderfish {
namespace {

constexpr std::array<int64_t, kScorePluginCount> kWeights = {3, 2, 1, 2, 2, 1, 1};

// a / b for a >= 0 and b > 0, exactly; faster than the processor's division of integers. The
// quotient is small, so that rounding puts it off by one at most.
int64_t Divide(int64_t a, int64_t b) {
  auto quotient = static_cast<int64_t>(static_cast<double>(a) / static_cast<double>(b));
  const int64_t rest = a - quotient * b;
  quotient += (rest >= b) - (rest < 0);
  return quotient;
}

int64_t LeastScore(int64_t requested, int64_t capacity) {
  return requested > capacity ? 0 : Divide((capacity - requested) * 100, capacity);
}

double Share(int64_t requested, int64_t capacity) {
  return std::min(1.0, static_cast<double>(requested) / static_cast<double>(capacity));
}

int64_t Balance(const Resources& requested, const Resources& allocatable) {
  double spread = 0;  // Of one resource alone there is none.
  if (allocatable.cpu_millis != 0 && allocatable.memory_bytes != 0) {
    spread = std::abs((Share(requested.cpu_millis, allocatable.cpu_millis) -
                       Share(requested.memory_bytes, allocatable.memory_bytes)) /
                      2);
  }
  return static_cast<int64_t>((1 - spread) * 100);
}

// A node without a resource is judged by the other alone, and that resource is not counted.
Resources Counted(Resources amounts, const Resources& allocatable) {
  if (allocatable.cpu_millis == 0) amounts.cpu_millis = 0;
  if (allocatable.memory_bytes == 0) amounts.memory_bytes = 0;
  return amounts;
}

Resources AllocatableOf(const NodeTable& nodes, NodeId n) {
  return {nodes.allocatable(NodeTable::kCpu)[n], nodes.allocatable(NodeTable::kMemory)[n]};
}

// The shares of the most, 0 to 100.
template <class Raw>
void ShareOfMost(const CompiledPod& pod, const Feasibility& feasibility, Raw raw,
                 std::vector<int64_t>* scores) {
  int64_t most = 0;
  for (size_t n = 0; n < scores->size(); ++n) {
    (*scores)[n] = raw(pod.on_node[n]);
    if (feasibility.IsFeasible(static_cast<NodeId>(n))) most = std::max(most, (*scores)[n]);
  }
  if (most == 0) return;
  for (int64_t& score : *scores) score = Divide(100 * score, most);
}

void ScoreResources(const NodeTable& nodes, const CompiledPod& pod, KubeScores* out) {
  std::vector<int64_t>& fit = out->of_plugin[static_cast<int>(ScorePlugin::kResourcesFit)];
  std::vector<int64_t>& balanced =
      out->of_plugin[static_cast<int>(ScorePlugin::kBalancedAllocation)];
  const PodAmounts& amounts = pod.pod->amounts;
  const bool asks_nothing = amounts.held == Resources{};
  for (NodeId n = 0; n < nodes.size(); ++n) {
    const Resources allocatable = AllocatableOf(nodes, n);
    const Resources assumed{nodes.cpu_assumed()[n], nodes.memory_assumed()[n]};
    fit[n] = LeastAllocatedOf(assumed + amounts.scored_assumed, allocatable);
    if (asks_nothing) continue;
    const Resources free{nodes.free(NodeTable::kCpu)[n], nodes.free(NodeTable::kMemory)[n]};
    const Resources before = allocatable - free;
    balanced[n] = BalancedAllocationOf(before, before + amounts.held, allocatable);
  }
}

}  // namespace

std::string_view NameOf(ScorePlugin plugin) {
  constexpr std::array<std::string_view, kScorePluginCount> kNames = {
      "TaintToleration",   "NodeAffinity",     "NodeResourcesFit",
      "PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation",
      "ImageLocality"};
  return kNames[static_cast<size_t>(plugin)];
}

int64_t LeastAllocatedOf(const Resources& requested, const Resources& allocatable) {
  int64_t sum = 0, count = 0;
  if (allocatable.cpu_millis != 0) {
    sum += LeastScore(requested.cpu_millis, allocatable.cpu_millis);
    ++count;
  }
  if (allocatable.memory_bytes != 0) {
    sum += LeastScore(requested.memory_bytes, allocatable.memory_bytes);
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

int64_t BalancedAllocationOf(const Resources& before, const Resources& requested,
                             const Resources& allocatable) {
  const int64_t with = Balance(Counted(requested, allocatable), allocatable);
  const int64_t without = Balance(Counted(before, allocatable), allocatable);
  return 50 + (50 + with - without) / 2;
}

void ScoreAsKube(const SchedulingRules& rules, PodClassId id, const Feasibility& feasibility,
                 KubeScores* out) {
  const NodeTable& nodes = rules.nodes();
  const CompiledPod& pod = rules.compiled(id);
  const auto count = static_cast<size_t>(nodes.size());
  for (std::vector<int64_t>& scores : out->of_plugin) scores.assign(count, 0);
  out->total.assign(count, 0);
  out->sums.resize(count);
  out->by_domain.reserve(nodes.domains_max());
  const auto of = [&](ScorePlugin plugin) { return &out->of_plugin[static_cast<int>(plugin)]; };
  ShareOfMost(
      pod, feasibility, [](const CompiledPod::OnNode& node) { return node.avoided; },
      of(ScorePlugin::kTaintToleration));
  for (int64_t& score : *of(ScorePlugin::kTaintToleration)) score = 100 - score;
  ShareOfMost(
      pod, feasibility, [](const CompiledPod::OnNode& node) { return node.preference; },
      of(ScorePlugin::kNodeAffinity));
  ScoreResources(nodes, pod, out);
  if (!pod.may_spread.empty()) {
    ScoreSpread(nodes, rules.counts(), pod, feasibility, &out->by_domain, &out->sums,
                of(ScorePlugin::kTopologySpread));
  }
  ScoreAffinity(nodes, rules.counts(), id, pod, feasibility, &out->by_domain,
                of(ScorePlugin::kInterPodAffinity));
  for (size_t n = 0; n < count; ++n)
    (*of(ScorePlugin::kImageLocality))[n] = pod.on_node[n].image_score;
  for (int plugin = 0; plugin < kScorePluginCount; ++plugin) {
    for (size_t n = 0; n < count; ++n) {
      int64_t& score = out->of_plugin[plugin][n];
      score = feasibility.IsFeasible(static_cast<NodeId>(n)) ? score * kWeights[plugin] : 0;
      out->total[n] += score;
    }
  }
}

}  // namespace rudderfish
