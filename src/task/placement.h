// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/graph_batch.h"
#include "cluster/state.h"
#include "model/cluster_totals.h"
#include "model/objective.h"
#include "task/placement_preset.h"
#include "task/task.h"

// Where one pending pod goes: a choice among the nodes that may take it, for the sake of an
// objective (model/objective.h). A pod that fits somewhere is always placed: there is no stop.
//
// Nodes that are equal in all that is looked at (kind, size, what is free of it and of each of its
// devices, how many pods) are one candidate, so that an empty cluster of 5,000 nodes of three kinds
// asks about three. A candidate is described by its room after the bind and by what the Model
// predicts of every term of the objective: no feature names a node, a workload or a kind, so one
// set of weights serves clusters of any size.
//
// PlacementTask is immutable; any thread may use it, each with its own PlacementSpace. A space
// allocates nothing once it has seen the largest question.

namespace rudderfish {

// What is asked. REQUIRES: `totals` are of `state`; the pod is pending.
struct PlacementQuestion {
  const State& state;
  const ClusterTotals& totals;
  WorkloadId workload;
  // Pods that wait behind it, in the order in which they will be asked about, as far as the caller
  // lists them.
  std::span<const WorkloadId> next = {};
};

// Whether a node has room for the pod, is of a kind it may run on, and within its hard latency.
bool MayRunOn(const PlacementQuestion& question, NodeId node);

// Ways to rank candidates that need no learning. The objective's terms count by what is predicted.
enum class PlacementScore {
  kGreedy,          // The objective with the pod there.
  kKubeDefault,     // LeastAllocated + BalancedAllocation, as kube-scheduler's integers.
  kLeastAllocated,  // Mean free share of CPU and memory.
  kMostAllocated,   // The opposite.
  kFullest,         // Mean used share of all that the node has, devices included.
  kBalance,
  kEnergy,
  kUtilisation,
  kFragmentation,
  kCost,
  kLatency,
  kCalls,
};
inline constexpr int kPlacementScores = 12;
extern const std::array<std::string_view, kPlacementScores> kPlacementScoreNames;

// By how much each score counts, relative to the others. Plain value.
using PlacementMix = std::array<double, kPlacementScores>;

struct PlacementCandidate {
  NodeId node = kNone;               // The first of those that are equal,
  int32_t nodes = 0;                 // so many.
  ClusterTerms after;                // With the pod there.
  double cost = 0;                   // The objective then.
  double free[kResourceKinds] = {};  // Shares of the node that are left then; 0 of what it has not.
  int32_t kube_score = 0;            // 0 to 200.
  // 0 for the best candidate, below 0 for others, in units of the question's mean distance from the
  // best; 0 for all where they are equal.
  std::array<float, kPlacementScores> score{};
};

// The sum of its scores by weight.
double MixOf(const PlacementCandidate& candidate, const PlacementMix& mix);

// The best by a mix of scores, of equals the first; -1 without candidates.
int BestCandidate(std::span<const PlacementCandidate> candidates, const PlacementMix& mix);

struct PlacementSpace {
  std::vector<PlacementCandidate> candidates;  // In the order of their first nodes.
  std::vector<int32_t> candidate_of;           // [node] kNone where the pod may not run.
  ClusterTerms now;
  double cost_now = 0;

  int count() const { return static_cast<int>(candidates.size()); }

  // Of the task: what is said of the whole cluster, and a table of hashes.
  struct Cluster {
    double mean_cpu_millis = 0, mean_memory_bytes = 0;  // Of a ready node.
    double most_watts = 0, most_price = 0;              // Of a kind.
    double mean_distance = 0;                           // From the best cost; over nodes.
    int allowed_nodes = 0;
  } cluster;
  std::vector<int32_t> slots;
  PresetSight sight;  // Of a task with a preset.
};

// Whether nodes beyond the pod's hard limit of latency are no candidates. Earlier systems had them
// among theirs while they learned.
enum class LatencyFilter { kKept, kLearned };

class PlacementTask {
 public:
  using Preset = std::optional<PlacementPreset>;

  // With a preset, every node is a candidate of its own, shown as the preset's system saw it.
  explicit PlacementTask(const Objective& objective, Preset preset = {},
                         LatencyFilter limits = LatencyFilter::kKept)
      : objective_(objective), preset_(preset), limits_(limits) {}

  static constexpr std::string_view kName = "placement";
  static constexpr GraphWidths kWidths{.candidate = 48, .node = 0, .workload = 0, .context = 32};
  static const FeatureTable& Features(Preset preset = {});
  static std::string FeatureHash(Preset preset = {});
  static GraphWidths Widths(Preset preset) { return preset ? kPresetWidths : kWidths; }

  const Objective& objective() const { return objective_; }
  const Preset& preset() const { return preset_; }

  // Lists the candidates among the nodes where MayRunOn holds (LatencyFilter::kLearned: where there
  // is room); with `allowed` (one entry a node, 0 or 1) among those of them that it allows.
  void Space(const PlacementQuestion& question, std::span<const uint8_t> allowed,
             PlacementSpace* space) const;

  // Appends the question to `batch`, candidates in the order of `space`, which must come from Space
  // of the same question.
  void Encode(const PlacementQuestion& question, const PlacementSpace& space,
              GraphBatch* batch) const;

 private:
  bool MayTake(const PlacementQuestion& question, NodeId node) const;

  Objective objective_;
  Preset preset_;
  LatencyFilter limits_;
};

// "balance", or "balance:1,energy:0.5": what a checkpoint says that it was trained for. Reads back
// exactly.
std::string ObjectiveText(const Objective& objective);
// The same, read; `source` is what a message calls it.
Result<Objective> ParseObjectiveText(std::string_view text, std::string_view source);
// Whether both weigh terms in the same proportion, to five digits: checkpoints of earlier versions
// tell six.
bool AreAlike(const Objective& a, const Objective& b);

}  // namespace rudderfish
