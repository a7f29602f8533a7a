// SPDX-License-Identifier: Apache-2.0
#include "task/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/kube_scores.h"

namespace rudderfish {
namespace {

constexpr Devices kWithoutDevices;

double ShareOf(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

const Devices& DevicesOn(const State& state, NodeId node) {
  return state.nodes.devices.empty() ? kWithoutDevices : state.nodes.devices[node];
}

// Equal devices in another order are equal devices.
std::array<int16_t, kMaxDevices> InOrder(const Devices& devices) {
  std::array<int16_t, kMaxDevices> free = devices.free_millis;
  for (int i = 1; i < kMaxDevices; ++i) {
    for (int j = i; j > 0 && free[j] < free[j - 1]; --j) std::swap(free[j], free[j - 1]);
  }
  return free;
}

bool AreEqual(const PlacementQuestion& question, NodeId a, NodeId b) {
  const Nodes& nodes = question.state.nodes;
  if (nodes.kind[a] != nodes.kind[b] || !(nodes.allocatable[a] == nodes.allocatable[b]) ||
      !(nodes.free[a] == nodes.free[b]) || question.totals.PodsOn(a) != question.totals.PodsOn(b)) {
    return false;
  }
  if (nodes.devices.empty()) return true;
  if (nodes.devices[a] == nodes.devices[b]) return true;
  return nodes.devices[a].count == nodes.devices[b].count &&
         InOrder(nodes.devices[a]) == InOrder(nodes.devices[b]);
}

uint64_t Mixed(uint64_t hash, uint64_t value) {
  hash ^= value;
  hash *= 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

uint64_t HashOfNode(const PlacementQuestion& question, NodeId node) {
  const Nodes& nodes = question.state.nodes;
  uint64_t hash = Mixed(0x8BB84B93962EACC9ULL, static_cast<uint64_t>(nodes.kind[node]));
  for (const Resources* resources : {&nodes.allocatable[node], &nodes.free[node]}) {
    hash = Mixed(hash, static_cast<uint64_t>(resources->cpu_millis));
    hash = Mixed(hash, static_cast<uint64_t>(resources->memory_bytes));
  }
  hash = Mixed(hash, static_cast<uint64_t>(question.totals.PodsOn(node)));
  if (nodes.devices.empty()) return hash;
  return Mixed(hash, static_cast<uint64_t>(nodes.devices[node].TotalFreeMillis()));
}

void Describe(const PlacementQuestion& question, const Objective& objective,
              PlacementCandidate* candidate) {
  const State& state = question.state;
  const Workload& asked = state.catalog->workloads[question.workload];
  const NodeId node = candidate->node;
  const Resources& all = state.nodes.allocatable[node];
  const Resources before = all - state.nodes.free[node], with = before + asked.requests;
  const Devices& devices = DevicesOn(state, node);
  candidate->after = question.totals.Try(question.workload, node);
  candidate->cost = objective.Cost(candidate->after);
  candidate->free[0] = ShareOf(all.cpu_millis - with.cpu_millis, all.cpu_millis);
  candidate->free[1] = ShareOf(all.memory_bytes - with.memory_bytes, all.memory_bytes);
  candidate->free[2] =
      ShareOf(devices.TotalFreeMillis() - asked.devices.total_millis(), devices.total_millis());
  candidate->kube_score =
      static_cast<int32_t>(LeastAllocatedOf(with, all) + BalancedAllocationOf(before, with, all));
}

using RawScores = std::array<double, kPlacementScores>;

// Smaller is better.
RawScores RawScoresOf(const State& state, const PlacementCandidate& candidate) {
  RawScores raw;
  const auto set = [&](PlacementScore score, double value) {
    raw[static_cast<size_t>(score)] = value;
  };
  const auto term = [&](ObjectiveTerm one) { return ObjectiveTermValue(one, candidate.after); };
  const double free = (candidate.free[0] + candidate.free[1]) / 2;
  set(PlacementScore::kGreedy, candidate.cost);
  set(PlacementScore::kKubeDefault, -candidate.kube_score);
  set(PlacementScore::kLeastAllocated, -free);
  set(PlacementScore::kMostAllocated, free);
  set(PlacementScore::kFullest,
      DevicesOn(state, candidate.node).count > 0 ? (2 * free + candidate.free[2]) / 3 : free);
  set(PlacementScore::kBalance, term(ObjectiveTerm::kBalance));
  set(PlacementScore::kEnergy, term(ObjectiveTerm::kEnergy));
  set(PlacementScore::kUtilisation, term(ObjectiveTerm::kUtilisation));
  set(PlacementScore::kFragmentation, term(ObjectiveTerm::kFragmentation));
  set(PlacementScore::kCost, term(ObjectiveTerm::kCost));
  set(PlacementScore::kLatency, term(ObjectiveTerm::kLatency));
  set(PlacementScore::kCalls, term(ObjectiveTerm::kCalls));
  return raw;
}

// The scores of all candidates, relative to the best and to how far the others are from it. All
// scores at once: candidates of thousands of nodes are more than a near cache holds.
void Score(const State& state, PlacementSpace* space) {
  thread_local std::vector<RawScores> all;  // Working space, and nothing from call to call.
  const size_t count = space->candidates.size();
  all.resize(std::max(all.size(), count));
  RawScores best, sum{}, per_distance;
  best.fill(std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < count; ++i) {
    all[i] = RawScoresOf(state, space->candidates[i]);
    for (int s = 0; s < kPlacementScores; ++s) best[s] = std::min(best[s], all[i][s]);
  }
  for (size_t i = 0; i < count; ++i) {
    const int nodes = space->candidates[i].nodes;
    for (int s = 0; s < kPlacementScores; ++s) sum[s] += nodes * (all[i][s] - best[s]);
  }
  for (int s = 0; s < kPlacementScores; ++s) {
    const double mean = sum[s] / std::max(1, space->cluster.allowed_nodes);
    if (s == static_cast<int>(PlacementScore::kGreedy)) space->cluster.mean_distance = mean;
    per_distance[s] = mean > 1e-12 ? 1 / mean : 0;  // Else all are equal but for rounding.
  }
  for (size_t i = 0; i < count; ++i) {
    for (int s = 0; s < kPlacementScores; ++s) {
      space->candidates[i].score[s] = static_cast<float>((best[s] - all[i][s]) * per_distance[s]);
    }
  }
}

}  // namespace

const std::array<std::string_view, kPlacementScores> kPlacementScoreNames = {
    "greedy", "kube-default", "least-allocated", "most-allocated", "fullest", "balance",
    "energy", "utilisation",  "fragmentation",   "cost",           "latency", "calls"};

bool MayRunOn(const PlacementQuestion& question, NodeId node) {
  if (!HasRoom(question.state, question.workload, node)) return false;
  const LatencyLimits& limits = question.state.catalog->workloads[question.workload].latency_limits;
  return question.totals.NodeUserMs(node) <= limits.hard_ms;
}

double MixOf(const PlacementCandidate& candidate, const PlacementMix& mix) {
  double sum = 0;
  for (int s = 0; s < kPlacementScores; ++s)
    sum += mix[s] * static_cast<double>(candidate.score[s]);
  return sum;
}

int BestCandidate(std::span<const PlacementCandidate> candidates, const PlacementMix& mix) {
  int best = -1;
  double most = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double sum = MixOf(candidates[i], mix);
    if (best >= 0 && sum <= most) continue;
    best = static_cast<int>(i);
    most = sum;
  }
  return best;
}

bool PlacementTask::MayTake(const PlacementQuestion& question, NodeId node) const {
  return limits_ == LatencyFilter::kKept ? MayRunOn(question, node)
                                         : HasRoom(question.state, question.workload, node);
}

void PlacementTask::Space(const PlacementQuestion& question, std::span<const uint8_t> allowed,
                          PlacementSpace* space) const {
  const State& state = question.state;
  const int nodes = state.nodes.size();
  CHECK(allowed.empty() || allowed.size() == static_cast<size_t>(nodes));
  space->candidates.clear();
  space->candidate_of.assign(nodes, kNone);
  const size_t slots = std::bit_ceil(2 * static_cast<size_t>(nodes) + 1);
  space->slots.assign(slots, kNone);
  PlacementSpace::Cluster& cluster = space->cluster = {};
  for (NodeId node = 0; node < nodes; ++node) {
    if (!state.nodes.IsReady(node)) continue;
    cluster.mean_cpu_millis += static_cast<double>(state.nodes.allocatable[node].cpu_millis);
    cluster.mean_memory_bytes += static_cast<double>(state.nodes.allocatable[node].memory_bytes);
    if (!allowed.empty() && allowed[node] == 0) continue;
    if (!MayTake(question, node)) continue;
    ++cluster.allowed_nodes;
    if (preset_) {
      space->candidate_of[node] = space->count();
      space->candidates.push_back({.node = node, .nodes = 1});
      continue;
    }
    size_t slot = HashOfNode(question, node) & (slots - 1);
    for (;; slot = (slot + 1) & (slots - 1)) {
      const int32_t known = space->slots[slot];
      if (known != kNone && !AreEqual(question, space->candidates[known].node, node)) continue;
      if (known == kNone) {
        space->slots[slot] = space->count();
        space->candidates.emplace_back().node = node;
      }
      break;
    }
    space->candidate_of[node] = space->slots[slot];
    ++space->candidates[space->slots[slot]].nodes;
  }
  space->now = question.totals.Now();
  space->cost_now = objective_.Cost(space->now);
  const int ready = std::max(1, space->now.ready_nodes);
  cluster.mean_cpu_millis /= ready;
  cluster.mean_memory_bytes /= ready;
  for (const NodeCosts& costs : question.totals.laws().costs) {
    cluster.most_watts = std::max(cluster.most_watts, costs.MostWatts());
    cluster.most_price = std::max(cluster.most_price, costs.price_per_hour);
  }
  for (PlacementCandidate& candidate : space->candidates)
    Describe(question, objective_, &candidate);
  Score(state, space);
  if (preset_) space->sight.Look(*preset_, question);
}

std::string ObjectiveText(const Objective& objective) {
  std::string text;
  for (int i = 0; i < kObjectiveTerms; ++i) {
    const double weight = objective.weight[i];
    if (weight == 0) continue;
    if (objective == Objective::Of(static_cast<ObjectiveTerm>(i)))
      return std::string(kObjectiveTermNames[i]);
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", kObjectiveTermNames[i], weight);
  }
  return text;
}

bool AreAlike(const Objective& a, const Objective& b) {
  constexpr double kTolerance = 1e-5;
  const double all_of_a = std::accumulate(a.weight.begin(), a.weight.end(), 0.0);
  const double all_of_b = std::accumulate(b.weight.begin(), b.weight.end(), 0.0);
  for (int i = 0; i < kObjectiveTerms; ++i) {
    const double apart = a.weight[i] * all_of_b - b.weight[i] * all_of_a;
    if (std::abs(apart) > kTolerance * all_of_a * all_of_b) return false;
  }
  return true;
}

Result<Objective> ParseObjectiveText(std::string_view text, std::string_view source) {
  std::string yaml;
  for (const char letter : text) yaml += letter == ':' ? std::string(": ") : std::string(1, letter);
  if (text.find(':') != std::string_view::npos) yaml = "{" + yaml + "}";
  TRY_ASSIGN(const YamlNode node, ParseYaml(yaml, source));
  return ParseObjective(node);
}

}  // namespace rudderfish
