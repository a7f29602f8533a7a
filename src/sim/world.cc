// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace rudderfish {
namespace {

// Uniform among the nodes with room, or kNone: few places, so look at all of them at once.
NodeId PickOfFew(const std::vector<NodeId>& places, const Resources& requests, const std::vector<Resources>& free, Rng* rng) {
  uint64_t fitting = 0;
  for (size_t i = 0; i < places.size(); ++i) fitting |= static_cast<uint64_t>(free[places[i]].Fits(requests)) << i;
  if (fitting == 0) return kNone;
  for (uint32_t pick = rng->Below(static_cast<uint32_t>(std::popcount(fitting))); pick > 0; --pick) fitting &= fitting - 1;
  return places[std::countr_zero(fitting)];
}

// The same for many places. Guessing until a guess has room is uniform among those with room too, and takes a step or
// two where most have it, however many they are.
NodeId PickOfMany(const std::vector<NodeId>& places, const Resources& requests, const std::vector<Resources>& free, Rng* rng) {
  constexpr int kGuesses = 8;
  const uint32_t count = static_cast<uint32_t>(places.size());
  for (int guess = 0; guess < kGuesses; ++guess) {
    const NodeId node = places[rng->Below(count)];
    if (free[node].Fits(requests)) return node;
  }
  uint32_t fitting = 0;
  for (NodeId node : places) fitting += free[node].Fits(requests) ? 1 : 0;
  if (fitting == 0) return kNone;
  uint32_t pick = rng->Below(fitting);
  for (NodeId node : places) {
    if (free[node].Fits(requests) && pick-- == 0) return node;
  }
  return kNone;
}

}  // namespace

World::World(std::shared_ptr<const Scenario> scenario) : scenario_(std::move(scenario)), kind_(scenario_->KindsOfNodes()) {
  const std::vector<double>& weights = scenario_->pattern_weights;
  if (std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to<>()) != weights.end()) {
    weight_below_.resize(weights.size());
    std::partial_sum(weights.begin(), weights.end(), weight_below_.begin());
  }
  std::vector<std::vector<LayerId>> layer_sets;
  for (const WorkloadStart& start : scenario_->starts) {
    const auto known = std::find(layer_sets.begin(), layer_sets.end(), start.initial_layers);
    places_of_.push_back(static_cast<int>(known - layer_sets.begin()));
    if (known != layer_sets.end()) continue;
    layer_sets.push_back(start.initial_layers);
    std::vector<NodeId>& places = places_.emplace_back();
    for (NodeId node = 0; node < static_cast<NodeId>(kind_.size()); ++node) {
      const LayerId layer = scenario_->catalog->kinds[kind_[node]].layer;
      if (std::binary_search(start.initial_layers.begin(), start.initial_layers.end(), layer)) places.push_back(node);
    }
    CHECK(!places.empty());  // Loaders refuse workloads that fit nowhere.
  }
}

Result<void> World::Draw(Rng* rng, State* state) const {
  Shape(state);
  const auto& calls = scenario_->patterns[DrawPattern(rng)];
  if (state->calls != calls) state->calls = calls;
  for (int attempt = 0; attempt < scenario_->retry_limit; ++attempt) {
    DrawNodes(rng, state);
    if (DrawPods(rng, state)) return {};
  }
  return GiveUp();
}

int World::DrawPattern(Rng* rng) const {
  const int count = static_cast<int>(scenario_->patterns.size());
  if (count == 1) return 0;
  if (weight_below_.empty()) return static_cast<int>(rng->Below(static_cast<uint32_t>(count)));
  const double at = rng->Uniform() * weight_below_.back();
  const auto above = std::upper_bound(weight_below_.begin(), weight_below_.end(), at);
  return std::min(static_cast<int>(above - weight_below_.begin()), count - 1);
}

// Gives the State the sizes of this world and room for its largest episode. What is shared is assigned only where it
// differs: counting references is what threads would wait for.
void World::Shape(State* state) const {
  state->at = std::chrono::nanoseconds(0);
  ++state->version;
  if (state->catalog != scenario_->catalog) state->catalog = scenario_->catalog;
  if (state->names != scenario_->names) state->names = scenario_->names;
  state->nodes.kind = kind_;
  state->nodes.allocatable.resize(kind_.size());
  state->nodes.free.resize(kind_.size());
  state->nodes.background_mbytes_per_s.resize(kind_.size());
  state->network.layers = scenario_->catalog->layer_count();
  state->network.latency_ms.resize(scenario_->latency_ms.size());
  const size_t pods = static_cast<size_t>(scenario_->pod_limit());
  state->pods.workload.resize(pods);
  state->pods.node.resize(pods);
}

void World::DrawNodes(Rng* rng, State* state) const {
  Nodes& nodes = state->nodes;
  NodeId node = 0;
  for (const NodeGroup& group : scenario_->node_groups) {
    const double bandwidth = scenario_->catalog->kinds[group.kind].bandwidth_mbytes_per_s;
    for (int i = 0; i < group.count; ++i, ++node) {
      nodes.allocatable[node] = {static_cast<int64_t>(group.cpu_millis.Draw(rng)),
                                 static_cast<int64_t>(group.memory_bytes.Draw(rng))};
      nodes.background_mbytes_per_s[node] = group.background.Draw(rng) * bandwidth;
    }
  }
  std::copy(nodes.allocatable.begin(), nodes.allocatable.end(), nodes.free.begin());
  for (size_t pair = 0; pair < scenario_->latency_ms.size(); ++pair) {
    state->network.latency_ms[pair] = scenario_->latency_ms[pair].Draw(rng);
  }
}

// False if some pod fits nowhere.
bool World::DrawPods(Rng* rng, State* state) const {
  const Catalog& catalog = *scenario_->catalog;
  PodId pod = 0;
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w) {
    const Resources requests = catalog.workloads[w].requests;
    const std::vector<NodeId>& places = places_[places_of_[w]];
    const int replicas = scenario_->starts[w].replicas.DrawInteger(rng);
    for (int i = 0; i < replicas; ++i, ++pod) {
      const NodeId node = places.size() <= 64 ? PickOfFew(places, requests, state->nodes.free, rng)
                                              : PickOfMany(places, requests, state->nodes.free, rng);
      if (node == kNone) return false;
      state->nodes.free[node] -= requests;
      state->pods.workload[pod] = w;
      state->pods.node[pod] = node;
    }
  }
  state->pods.workload.resize(pod);
  state->pods.node.resize(pod);
  return true;
}

Result<void> World::GiveUp() const {
  return Fail(ErrorCode::kFailedPrecondition,
              "{}: in {} draws some pod found no node with room; give nodes more cpu or memory, or workloads fewer replicas",
              scenario_->name, scenario_->retry_limit);
}

}  // namespace rudderfish
