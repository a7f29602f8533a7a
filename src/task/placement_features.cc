// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/sha256.h"
#include "task/feature_rows.h"
#include "task/placement.h"

// What a network sees of a placement question. Changes of terms are times the number of nodes: one
// pod changes a mean over N nodes by a share of 1/N, and what is learned on 60 nodes is to hold on
// 5,000.

namespace rudderfish {
namespace {

using TermValues = std::array<double, kObjectiveTerms>;

struct NodeView {
  const PlacementQuestion& q;
  const PlacementSpace& space;
  const PlacementCandidate& c;
  const NodeCosts& costs;
  const TermValues& now;
  Devices devices;  // After the bind.
  int whole = 0, begun = 0, largest_millis = 0;
  int more = 0;  // Pods alike that would still fit then.
};
using N = const NodeView&;

struct PodView {
  const PlacementQuestion& q;
  const PlacementSpace& space;
  const Objective& objective;
  CallDistances::Part part;  // Of the pod's workload.
};
using P = const PodView&;

float Ratio(double part, double whole) {
  return whole > 0 ? static_cast<float>(part / whole) : 0.0f;
}
template <PlacementScore kScore>
float ScoreOf(N v) {
  return v.c.score[static_cast<int>(kScore)];
}
template <ObjectiveTerm kTerm>
float ChangeOf(N v) {
  return static_cast<float>(
      (ObjectiveTermValue(kTerm, v.c.after) - v.now[static_cast<size_t>(kTerm)]) *
      v.space.now.ready_nodes);
}
template <int kResource>
float FreeAfter(N v) {
  return static_cast<float>(v.c.free[kResource]);
}
template <int kResource>
float AboveMean(N v) {
  if (kResource == 2 && v.devices.count == 0) return 0;
  return static_cast<float>(1 - v.c.free[kResource] - v.space.now.mean_node_utilisation[kResource]);
}
const Workload& PodOf(const PlacementQuestion& q) { return q.state.catalog->workloads[q.workload]; }
const Resources& SizeOf(N v) { return v.q.state.nodes.allocatable[v.c.node]; }

float LeastFree(N v) {
  const double free = std::min(v.c.free[0], v.c.free[1]);
  return static_cast<float>(v.devices.count > 0 ? std::min(free, v.c.free[2]) : free);
}
float MostFree(N v) {
  const double free = std::max(v.c.free[0], v.c.free[1]);
  return static_cast<float>(v.devices.count > 0 ? std::max(free, v.c.free[2]) : free);
}

constexpr int64_t kMostPods = 1000;

// log(1 + count), of the counts that are usual without computing it.
float LogOfOneMore(int count) {
  static const auto known = [] {
    std::array<float, kMostPods + 1> made;
    for (size_t i = 0; i < made.size(); ++i) made[i] = std::log1p(static_cast<float>(i));
    return made;
  }();
  const auto i = static_cast<size_t>(count);
  return i < known.size() ? known[i] : std::log1p(static_cast<float>(count));
}

using Score = PlacementScore;
using Term = ObjectiveTerm;

constexpr std::array<Feature<NodeView>, 46> kCandidateTable{{
    {"score_greedy", "", 1, ScoreOf<Score::kGreedy>, "objective, below the best candidate's"},
    {"score_kube_default", "", 1, ScoreOf<Score::kKubeDefault>, "kube-scheduler's score, likewise"},
    {"score_least_allocated", "", 1, ScoreOf<Score::kLeastAllocated>, "free share, likewise"},
    {"score_most_allocated", "", 1, ScoreOf<Score::kMostAllocated>, "used share, likewise"},
    {"score_fullest", "", 1, ScoreOf<Score::kFullest>, "used share with devices, likewise"},
    {"score_balance", "", 1, ScoreOf<Score::kBalance>, "predicted balance, likewise"},
    {"score_energy", "", 1, ScoreOf<Score::kEnergy>, "predicted energy, likewise"},
    {"score_utilisation", "", 1, ScoreOf<Score::kUtilisation>, "predicted utilisation, likewise"},
    {"score_fragmentation", "", 1, ScoreOf<Score::kFragmentation>, "fragmentation, likewise"},
    {"score_cost", "", 1, ScoreOf<Score::kCost>, "predicted cost, likewise"},
    {"score_latency", "", 1, ScoreOf<Score::kLatency>, "predicted latency term, likewise"},
    {"score_calls", "", 1, ScoreOf<Score::kCalls>, "predicted distance of calls, likewise"},
    {"balance_change", "nodes", 0.5, ChangeOf<Term::kBalance>, "change of the term, times nodes"},
    {"energy_change", "nodes", 0.5, ChangeOf<Term::kEnergy>, "likewise"},
    {"utilisation_change", "nodes", 0.5, ChangeOf<Term::kUtilisation>, "likewise"},
    {"fragmentation_change", "nodes", 0.5, ChangeOf<Term::kFragmentation>, "likewise"},
    {"cost_change", "nodes", 0.5, ChangeOf<Term::kCost>, "likewise"},
    {"latency_change", "nodes", 0.5, ChangeOf<Term::kLatency>, "likewise"},
    {"calls_change", "nodes", 0.5, ChangeOf<Term::kCalls>, "likewise"},
    {"free_cpu", "", 0.5, FreeAfter<0>, "share of the node's CPU that is left with the pod there"},
    {"free_memory", "", 0.5, FreeAfter<1>, "of its memory"},
    {"free_devices", "", 0.5, FreeAfter<2>, "of its devices"},
    {"cpu_above_mean", "", 0.5, AboveMean<0>, "utilisation then, less the mean over nodes now"},
    {"memory_above_mean", "", 0.5, AboveMean<1>, "likewise"},
    {"devices_above_mean", "", 0.5, AboveMean<2>, "likewise; 0 without devices"},
    {"asleep", "", 1, [](N v) { return v.q.totals.PodsOn(v.c.node) == 0 ? 1.0f : 0.0f; },
     "whether no pod is there yet"},
    {"pods", "log pods", 2, [](N v) { return LogOfOneMore(v.q.totals.PodsOn(v.c.node)); },
     "pods that are there"},
    {"alike", "log nodes", 3, [](N v) { return std::log(static_cast<float>(v.c.nodes)); },
     "nodes that are equal to it"},
    {"idle_watts", "", 0.5,
     [](N v) { return Ratio(v.costs.idle_watts, v.space.cluster.most_watts); },
     "of the most that any kind of node draws"},
    {"busy_watts", "", 0.5,
     [](N v) { return Ratio(v.costs.busy_watts, v.space.cluster.most_watts); }, "likewise"},
    {"price", "", 0.5,
     [](N v) { return Ratio(v.costs.price_per_hour, v.space.cluster.most_price); },
     "of the most that any kind of node costs"},
    {"size_cpu", "", 1,
     [](N v) {
       return Ratio(static_cast<double>(SizeOf(v).cpu_millis), v.space.cluster.mean_cpu_millis);
     },
     "the node's CPU, of the mean over nodes"},
    {"size_memory", "", 1,
     [](N v) {
       return Ratio(static_cast<double>(SizeOf(v).memory_bytes), v.space.cluster.mean_memory_bytes);
     },
     "its memory, likewise"},
    {"devices", "devices", 4, [](N v) { return static_cast<float>(v.devices.count); },
     "devices it has"},
    {"whole_devices", "devices", 4, [](N v) { return static_cast<float>(v.whole); },
     "of them unused with the pod there"},
    {"begun_devices", "devices", 4, [](N v) { return static_cast<float>(v.begun); },
     "of them in part"},
    {"largest_device", "devices", 1,
     [](N v) { return static_cast<float>(v.largest_millis) * 1e-3f; },
     "most that is left of one of them"},
    {"more_alike", "log pods", 2, [](N v) { return LogOfOneMore(v.more); },
     "pods of the workload that would fit there still"},
    {"fits_no_more", "", 1, [](N v) { return v.more == 0 ? 1.0f : 0.0f; }, "whether none would"},
    {"least_free", "", 0.5, LeastFree, "smallest free share of what it has"},
    {"most_free", "", 0.5, MostFree, "largest"},
    {"lopsided", "", 0.5, [](N v) { return static_cast<float>(v.c.free[0] - v.c.free[1]); },
     "free share of CPU less that of memory"},
    {"stands_empty", "", 1,
     [](N v) {
       return v.q.totals.PodsOn(v.c.node) == 0 ? Ratio(v.c.nodes, v.space.now.ready_nodes) : 0.0f;
     },
     "share of nodes that are equal to it and without pods"},
    {"user_latency", "ms", 50,
     [](N v) { return static_cast<float>(v.q.totals.NodeUserMs(v.c.node)); },
     "round trip to the users"},
    {"user_penalty", "", 0.5,
     [](N v) { return static_cast<float>(v.q.totals.NodeUserPenalty(v.q.workload, v.c.node)); },
     "its penalty: 0 within the soft limit, 1/2 above it"},
    {"partner_latency", "ms", 50,
     [](N v) { return static_cast<float>(v.q.totals.PartnerMs(v.q.workload, v.c.node)); },
     "mean round trip to the bound pods that it calls or is called by"},
}};

template <int kResource>
float Used(P v) {
  return static_cast<float>(v.space.now.utilisation[kResource]);
}
template <int kResource>
float Deviation(P v) {
  return static_cast<float>(v.space.now.utilisation_sd[kResource]);
}
template <ObjectiveTerm kTerm>
float Weight(P v) {
  double sum = 0;
  for (const double weight : v.objective.weight) sum += weight;
  return Ratio(v.objective.WeightOf(kTerm), sum);
}

constexpr std::array<Feature<PodView>, 31> kContextTable{{
    {"cpu_used", "", 0.5, Used<0>, "utilisation of the cluster's CPU"},
    {"memory_used", "", 0.5, Used<1>, "of its memory"},
    {"devices_used", "", 0.5, Used<2>, "of its devices"},
    {"cpu_deviation", "", 0.25, Deviation<0>, "standard deviation of the nodes' utilisation"},
    {"memory_deviation", "", 0.25, Deviation<1>, "likewise"},
    {"devices_deviation", "", 0.25, Deviation<2>, "likewise"},
    {"active", "", 0.5,
     [](P v) { return Ratio(v.space.now.active_nodes, v.space.now.ready_nodes); },
     "share of nodes with pods"},
    {"watts", "", 0.5, [](P v) { return static_cast<float>(v.space.now.watts_share); },
     "of what all draw at full use"},
    {"price", "", 0.5, [](P v) { return static_cast<float>(v.space.now.price_share); },
     "of what all cost"},
    {"fragmentation", "", 0.25, [](P v) { return static_cast<float>(v.space.now.fragmentation); },
     "share that no pod can use"},
    {"latency_penalty", "", 0.5,
     [](P v) { return static_cast<float>(v.space.now.latency_penalty); }, "mean over the pods"},
    {"call_distance", "", 0.5, [](P v) { return static_cast<float>(v.space.now.call_distance); },
     "mean round trip of calls, of the worst there is"},
    {"wants_balance", "", 1, Weight<Term::kBalance>, "weight of the objective's term"},
    {"wants_energy", "", 1, Weight<Term::kEnergy>, "likewise"},
    {"wants_utilisation", "", 1, Weight<Term::kUtilisation>, "likewise"},
    {"wants_fragmentation", "", 1, Weight<Term::kFragmentation>, "likewise"},
    {"wants_cost", "", 1, Weight<Term::kCost>, "likewise"},
    {"wants_latency", "", 1, Weight<Term::kLatency>, "likewise"},
    {"wants_calls", "", 1, Weight<Term::kCalls>, "likewise"},
    {"asks_cpu", "", 0.25,
     [](P v) {
       return Ratio(static_cast<double>(PodOf(v.q).requests.cpu_millis),
                    v.space.cluster.mean_cpu_millis);
     },
     "the pod's CPU, of the mean node's"},
    {"asks_memory", "", 0.25,
     [](P v) {
       return Ratio(static_cast<double>(PodOf(v.q).requests.memory_bytes),
                    v.space.cluster.mean_memory_bytes);
     },
     "its memory, likewise"},
    {"asks_devices", "devices", 2, [](P v) { return static_cast<float>(PodOf(v.q).devices.count); },
     "devices it asks for"},
    {"asks_of_each", "devices", 0.5,
     [](P v) { return static_cast<float>(PodOf(v.q).devices.millis) * 1e-3f; }, "how much of each"},
    {"allowed", "", 0.5,
     [](P v) { return Ratio(v.space.cluster.allowed_nodes, v.space.now.ready_nodes); },
     "share of nodes where it may run"},
    {"choices", "log candidates", 3,
     [](P v) { return std::log1p(static_cast<float>(v.space.count())); },
     "unequal nodes among them"},
    {"pods_a_node", "pods", 4,
     [](P v) { return Ratio(v.space.now.bound_pods, v.space.now.ready_nodes); }, "bound pods"},
    {"distance", "nodes", 0.5,
     [](P v) {
       return static_cast<float>(v.space.cluster.mean_distance * v.space.now.ready_nodes);
     },
     "mean objective over those nodes less the least, times nodes"},
    {"has_devices", "", 1, [](P v) { return v.space.now.has_devices ? 1.0f : 0.0f; },
     "whether any node has devices"},
    {"has_limits", "", 1, [](P v) { return PodOf(v.q).latency_limits.any() ? 1.0f : 0.0f; },
     "whether the pod has limits of latency"},
    {"takes_calls", "", 0.25, [](P v) { return static_cast<float>(v.part.calls); },
     "share of all calls of which its workload is one end"},
    {"takes_calls_now", "", 0.25, [](P v) { return static_cast<float>(v.part.counted); },
     "of these, where the other end has pods"},
}};

// Pods of the workload that fit after this one.
int MoreThatFit(const NodeView& view) {
  const Workload& pod = PodOf(view.q);
  const Resources free = view.q.state.nodes.free[view.c.node] - pod.requests;
  int64_t more = kMostPods;
  if (pod.requests.cpu_millis > 0) more = std::min(more, free.cpu_millis / pod.requests.cpu_millis);
  if (pod.requests.memory_bytes > 0)
    more = std::min(more, free.memory_bytes / pod.requests.memory_bytes);
  if (pod.devices.count > 0) {
    int64_t places = 0;
    for (int i = 0; i < view.devices.count; ++i)
      places += view.devices.free_millis[i] / pod.devices.millis;
    more = std::min(more, places / pod.devices.count);
  }
  return static_cast<int>(more);
}

NodeView ViewOf(const PlacementQuestion& question, const PlacementSpace& space,
                const PlacementCandidate& candidate, const TermValues& now) {
  static constexpr NodeCosts kFree;
  const State& state = question.state;
  const auto& costs = question.totals.laws().costs;
  NodeView view{question,  space,
                candidate, costs.empty() ? kFree : costs[state.nodes.kind[candidate.node]],
                now,       {}};
  if (!state.nodes.devices.empty()) {
    const DeviceRequest& asked = PodOf(question).devices;
    view.devices = state.nodes.devices[candidate.node];
    view.devices.Take(view.devices.Pick(asked), asked.millis);
  }
  for (int i = 0; i < view.devices.count; ++i) {
    const int free = view.devices.free_millis[i];
    view.whole += free == kDeviceMillis ? 1 : 0;
    view.begun += free > 0 && free < kDeviceMillis ? 1 : 0;
    view.largest_millis = std::max(view.largest_millis, free);
  }
  view.more = MoreThatFit(view);
  return view;
}

}  // namespace

const FeatureTable& PlacementTask::Features(Preset preset) {
  if (preset) return PresetFeatures(*preset);
  static const auto* table = new FeatureTable{.candidate = Describe(kCandidateTable),
                                              .node = {},
                                              .workload = {},
                                              .context = Describe(kContextTable)};
  return *table;
}

std::string PlacementTask::FeatureHash(Preset preset) {
  return HashOfFeatures(kName, Features(preset));
}

void PlacementTask::Encode(const PlacementQuestion& question, const PlacementSpace& space,
                           GraphBatch* batch) const {
  if (preset_) {
    EncodePreset(*preset_, space, batch);
  } else {
    float* row = AddRows(space.count(), kWidths.candidate, &batch->candidates);
    CandidateEnds* ends = AddEnds(space.count(), batch);
    TermValues now;
    for (int i = 0; i < kObjectiveTerms; ++i)
      now[i] = ObjectiveTermValue(static_cast<ObjectiveTerm>(i), space.now);
    for (const PlacementCandidate& candidate : space.candidates) {
      WriteRow<kCandidateTable, kWidths.candidate>(ViewOf(question, space, candidate, now), row);
      row += kWidths.candidate;
      *ends++ = {kNone, kNone, kNone};
    }
    const PodView view{question, space, objective_, question.totals.CallsOf(question.workload)};
    WriteRow<kContextTable, kWidths.context>(view, AddRows(1, kWidths.context, &batch->context));
  }
  CloseWithoutTables(batch);
}

}  // namespace rudderfish
