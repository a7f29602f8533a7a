// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/graph_batch.h"
#include "base/result.h"
#include "task/gym_hpa_readings.h"
#include "task/task.h"

// Earlier systems that scaled one application, as presets of the scaling task: each shows a network
// what its own agent saw of a deployment, lets it change one deployment a step as its own agent
// could, and rewards as it did (task/gym_hpa.h). To compare learning like for like; for new work
// there is the objective (task/scaling.h).
//
//   gym-hpa-cost, gym-hpa-latency   gym-hpa, and the first releases of graph-gym-hpa: six values a
//                                   deployment, 15 moves of each, by up to seven pods
//   graph-gym-hpa-slo               the later releases: four values a deployment and the rates of
//                                   who calls whom, nothing or one of six moves of each, by up to
//                                   three pods
//
// To the digit are moves, that one beyond a bound is not made and is punished, rewards, and what is
// seen of a deployment (the first generation counts the replicas asked for, the graph generation
// the pods that run), but for a scale by which each feature is divided; eight times that is the
// most that is told apart. Ours is who sees it: one row a deployment, and a network that is the
// same for all of them, where theirs are tied to eleven. Bounds are those of the workload.
//
// ScalingPresetTask is immutable; any thread may use it, each with its own sight. Nothing allocates
// once a sight and a batch have been used.

namespace rudderfish {

enum class ScalingPreset { kGymHpaCost, kGymHpaLatency, kGraphGymHpaSlo };

std::span<const std::string_view> ScalingPresetNames();  // In the order of the values.
std::string_view ScalingPresetName(ScalingPreset preset);
// The nearest of them in the message.
Result<ScalingPreset> ScalingPresetNamed(std::string_view name);

GymHpaGoal GoalOf(ScalingPreset preset);
inline bool SeesGraph(ScalingPreset preset) { return preset == ScalingPreset::kGraphGymHpaSlo; }

// All deployments, as such an agent measures them.
struct ScalingPresetSight {
  std::vector<GymHpaReading> readings;
  std::vector<GymHpaShares> shares;
  std::vector<double> calls_per_s;
};

class ScalingPresetTask {
 public:
  // `name`: of the application; see GymHpaApplicationOf.
  ScalingPresetTask(ScalingPreset preset, const ServedApplication& application,
                    std::string_view name);

  static constexpr GraphWidths kWidths{.candidate = 16, .node = 0, .workload = 16, .context = 16};
  static const FeatureTable& Features(ScalingPreset preset);
  static std::string FeatureHash(ScalingPreset preset);
  static constexpr int kEpisodeSteps = 25;

  ScalingPreset preset() const { return preset_; }
  const GymHpaApplication& application() const { return reader_.application(); }
  int actions() const { return static_cast<int>(moves_.size()); }
  const GymHpaMove& move(int action) const { return moves_[action]; }

  // Besides latencies, which are those that readings had.
  void Look(const GymHpaMetrics& metrics, ScalingPresetSight* sight) const;

  // Appends the question to `batch`, an action a candidate.
  void Encode(const ScalingPresetSight& sight, GraphBatch* batch) const;

  // Makes the move, unless it is beyond the bounds of its workload. `replicas` [workload].
  GymHpaBound Apply(const GymHpaMove& move, std::span<int> replicas) const;

 private:
  struct Bounds {
    int least = 1, most = 1;
  };

  ScalingPreset preset_;
  GymHpaReader reader_;
  std::vector<GymHpaMove> moves_;  // [action]
  std::vector<Bounds> bounds_;     // [deployment]
  std::vector<GraphEdge> calls_;   // Between deployments: shares of the callee's calls.
};

}  // namespace rudderfish
