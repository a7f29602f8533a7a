// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "cluster/state.h"
#include "scenario/scenario.h"

// Draws episodes of a scenario: a call pattern, what each node has, the latency between layers, how
// many replicas each workload has, and where each pod starts: uniformly at random among the nodes
// of its initial layers with room, in the order of pods (REACH's reset). If some pod fits nowhere,
// all but the pattern is drawn again.
//
// The same generator gives the same state whatever the State held before. Allocates nothing once a
// State has been drawn into. Immutable: any thread may draw, each with its own generator and State.

namespace rudderfish {

class World {
 public:
  explicit World(std::shared_ptr<const Scenario> scenario);

  // kFailedPrecondition after retry_limit attempts; the State is then unspecified.
  Result<void> Draw(Rng* rng, State* state) const;

  const Scenario& scenario() const { return *scenario_; }

 private:
  int DrawPattern(Rng* rng) const;
  void Shape(State* state) const;
  void DrawNodes(Rng* rng, State* state) const;
  bool DrawPods(Rng* rng, State* state) const;
  bool PlacePods(WorkloadId workload, std::span<NodeId> pods, Rng* rng,
                 std::vector<Resources>* free) const;
  Result<void> GiveUp() const;

  std::shared_ptr<const Scenario> scenario_;
  std::vector<KindId> kind_;  // [node]
  int pod_limit_;
  bool has_devices_;
  std::vector<double> weight_below_;         // [pattern] cumulative; empty if all weigh the same.
  std::vector<std::vector<NodeId>> places_;  // Nodes of a set of layers, for each set that occurs.
  std::vector<int> places_of_;               // [workload] into places_
};

}  // namespace rudderfish
