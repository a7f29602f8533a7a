// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <span>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr size_t kFew = 64;

// The nodes of a few places that have room for one pod more of a workload.
class FewPlaces {
 public:
  FewPlaces(const std::vector<NodeId>& places, const Resources& requests,
            const std::vector<Resources>& free) {
    for (NodeId node : places) {  // Without branches: which nodes have room cannot be predicted.
      nodes_[count_] = node;
      count_ += free[node].Fits(requests) ? 1 : 0;
    }
  }

  // Takes the room of one pod on one of them, each as likely; kNone if there is none.
  NodeId Take(const Resources& requests, std::vector<Resources>* free, Rng* rng) {
    if (count_ == 0) return kNone;
    const uint32_t pick = rng->Below(count_);
    const NodeId node = nodes_[pick];
    Resources& room = (*free)[node];
    room -= requests;
    if (!room.Fits(requests)) nodes_[pick] = nodes_[--count_];
    return node;
  }

 private:
  std::array<NodeId, kFew + 1> nodes_;
  uint32_t count_ = 0;
};

// The same for many places, found again for each pod. Guessing until a guess has room is uniform
// among those with room too, and takes a step or two where most have it, however many they are.
NodeId FindOfMany(const std::vector<NodeId>& places, const Resources& requests,
                  const std::vector<Resources>& free, Rng* rng) {
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

World::World(std::shared_ptr<const Scenario> scenario)
    : scenario_(std::move(scenario)),
      kind_(scenario_->KindsOfNodes()),
      pod_limit_(scenario_->pod_limit()),
      has_devices_(std::any_of(scenario_->node_groups.begin(), scenario_->node_groups.end(),
                               [](const NodeGroup& group) { return group.devices > 0; })) {
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
      if (std::binary_search(start.initial_layers.begin(), start.initial_layers.end(), layer))
        places.push_back(node);
    }
    // Loaders refuse workloads that fit nowhere, if any pod of them is there from the start.
    CHECK(!places.empty() || start.replicas.max() == 0);
  }
}

Result<void> World::Draw(Rng* rng, State* state) const {
  Shape(state);
  if (scenario_->patterns.empty()) {
    state->calls = nullptr;
  } else {
    const auto& calls = scenario_->patterns[DrawPattern(rng)];
    if (state->calls != calls) state->calls = calls;
  }
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

// Gives the State the sizes of this world and room for its largest episode. What is shared is
// assigned only where it differs: counting references is what threads would wait for.
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
  state->pods.workload.resize(pod_limit_);
  state->pods.node.resize(pod_limit_);
  state->pods.held.clear();
  state->nodes.devices.assign(has_devices_ ? kind_.size() : 0, Devices());
  state->nodes.lost.clear();
  state->pods.devices.clear();
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
      if (has_devices_) nodes.devices[node] = Devices::Of(group.devices);
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
    const int replicas = scenario_->starts[w].replicas.DrawInteger(rng);
    std::fill_n(state->pods.workload.begin() + pod, replicas, w);
    if (!PlacePods(w, std::span(state->pods.node).subspan(pod, replicas), rng, &state->nodes.free))
      return false;
    pod += replicas;
  }
  state->pods.workload.resize(pod);
  state->pods.node.resize(pod);
  if (has_devices_) state->pods.devices.resize(pod);
  return true;
}

bool World::PlacePods(WorkloadId workload, std::span<NodeId> pods, Rng* rng,
                      std::vector<Resources>* free) const {
  const Resources requests = scenario_->catalog->workloads[workload].requests;
  const std::vector<NodeId>& places = places_[places_of_[workload]];
  if (places.size() <= kFew) {
    FewPlaces few(places, requests, *free);
    for (NodeId& node : pods) {
      node = few.Take(requests, free, rng);
      if (node == kNone) return false;
    }
    return true;
  }
  for (NodeId& node : pods) {
    node = FindOfMany(places, requests, *free, rng);
    if (node == kNone) return false;
    (*free)[node] -= requests;
  }
  return true;
}

Result<void> World::GiveUp() const {
  return Fail(ErrorCode::kFailedPrecondition,
              "{}: in {} draws some pod found no node with room; give nodes more cpu or memory, or "
              "workloads fewer replicas",
              scenario_->name, scenario_->retry_limit);
}

}  // namespace rudderfish
