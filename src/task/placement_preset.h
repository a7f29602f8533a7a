// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/graph_batch.h"
#include "base/result.h"
#include "cluster/state.h"
#include "model/cluster_totals.h"
#include "task/reward_presets.h"
#include "task/task.h"

// Earlier systems that placed pods, as presets of the placement task: each shows a network what its
// own agent saw of a node, and rewards as it did (task/reward_presets.h). To compare learning like
// for like; for new work there is the objective.
//
//   thesis-ee, -lb, -lc, -el-rl   the four policies of S. Matranga's thesis, by its text: a worker
//                                 is in use from its first pod on (its code has 5 pods instead)
//   drs-code, drs-paper           DRS; the paper's with alpha, beta and all weights 1, which it
//                                 leaves open
//
// To the digit are rewards, when an episode ends, and what is seen of a node, but for a scale by
// which each feature is divided. Ours is who sees it: one row a node and a network that is the same
// for all of them, where theirs are tied to 3 and to 4 nodes.
//
// What the simulator takes for what they measured:
//
//   pods          bound to the node, those that start included
//   CPU, memory   what its pods request of what it has: a simulated pod uses what it requests.
//                 For memory free, what is left, in units of 10^9 bytes
//   latency       round trip between the users and the node
//   connections   sum of `measured.connections` over its pods
//   network, disk sum of `measured` over its pods; without that, of the profiles that DRS knows by
//                 name (video, net, disk). A node's total, which its normalisation caps at 100
//   the pod       for DRS: the profile of its name, else what it would add to the mean node
//
// Thesis rewards judge the state before the choice, as theirs. DRS's judges the state with the pod
// in place: theirs waits 5 s for that to show, here it shows at once, and nothing else changes
// meanwhile.

namespace rudderfish {

struct PlacementQuestion;
struct PlacementSpace;

enum class PlacementPreset { kThesisEe, kThesisLb, kThesisLc, kThesisElRl, kDrsCode, kDrsPaper };

std::span<const std::string_view> PlacementPresetNames();  // In the order of the values.
std::string_view PlacementPresetName(PlacementPreset preset);
// The nearest of them in the message.
Result<PlacementPreset> PlacementPresetNamed(std::string_view name);

// As published; and after how many decisions an episode is cut off.
presets::DqnSettings DqnSettingsOf(PlacementPreset preset);
int EpisodeStepsOf(PlacementPreset preset);

// Whether a world says what the preset looks at, in words that name the key to give. `arriving`:
// how many pods of each workload come, or 0. `world` is what a message calls it.
Result<void> CheckPresetSuits(PlacementPreset preset, const Catalog& catalog,
                              const PlacementLaws& laws, std::span<const int64_t> arriving,
                              std::string_view world);

// A node as such an agent measures it.
struct WorkerSight {
  double pods = 0, connections = 0;
  double cpu_percent = 0, memory_free_gb = 0, latency_ms = 0;
  presets::DrsUsage usage;  // Not yet normalised,
  presets::DrsRow drs{};    // and normalised.
};

// All nodes, and the pod that is asked about. Working space of one thread: allocates nothing once
// it has seen the most nodes.
struct PresetSight {
  std::vector<WorkerSight> workers;  // [node], lost ones too.
  presets::DrsRow pod{};

  void Look(PlacementPreset preset, const PlacementQuestion& question);

 private:
  std::vector<MeasuredUsage> of_workload_;
};

inline constexpr GraphWidths kPresetWidths{
    .candidate = 16, .node = 0, .workload = 0, .context = 16};
const FeatureTable& PresetFeatures(PlacementPreset preset);

// Appends the question to `batch`, a candidate a row. REQUIRES: space.sight is of this preset.
void EncodePreset(PlacementPreset preset, const PlacementSpace& space, GraphBatch* batch);

// Rewards choices. One a thread: it keeps its working space.
class PresetJudge {
 public:
  explicit PresetJudge(PlacementPreset preset) : preset_(preset) {}

  // Of binding the pod to `node`, before that is done. REQUIRES: `space` is of the question and of
  // a task of this preset; the node is ready.
  presets::Reward Judge(const PlacementQuestion& question, const PlacementSpace& space,
                        NodeId node);

 private:
  presets::Reward JudgeDrs(const PlacementQuestion& question, const PlacementSpace& space,
                           NodeId node);

  PlacementPreset preset_;
  std::vector<double> values_;         // Of ready nodes.
  std::vector<presets::DrsRow> rows_;  // Likewise.
};

}  // namespace rudderfish
