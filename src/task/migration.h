// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml.h"
#include "task/task.h"

// Which running pod to move where, one move after another until stopping is better (REACH, arXiv
// 2510.06675).
//
//   allowed(pod, node)  the workload is movable, the pod is not held (cluster/state.h), the node is
//                       another one, its layer accepts moves, and it has room
//   step cost           step_penalty_ms (constant), or step_penalty_ms * (step + 1) (growing)
//
// A plan is looked for by a walk in the Model (task/walk.h), which says what is rewarded: asked by
// one, the task lists no move that leads to a placement that the walk has been in.
//
// Put right against REACH: reaching max_steps is truncation, every state has an observation, all
// latencies are seen.
//
// Large worlds: where pods x nodes would give more than `max_candidates` alternatives, each
// (workload, kind, kind) is represented by moves from its fullest node and from the node with most
// of its pods, to the tightest and to the roomiest node that fits, or by any one where all of these
// are one node; if there are still too many, those with the largest gains stay.

namespace rudderfish {

enum class StepPenalty { kConstant, kGrowing };

// What a network sees. kModel describes every alternative by what the Model predicts of it;
// kReachAgent holds only what REACH's own agent observes, for comparison like for like.
enum class FeaturePreset { kModel, kReachAgent };

struct MigrationOptions {
  double step_penalty_ms = 0.2;
  StepPenalty step_penalty = StepPenalty::kGrowing;
  int max_steps = 100;
  FeaturePreset features = FeaturePreset::kModel;
  int max_candidates = 1024;

  static constexpr double kRewardUnitMs = 100;  // Rewards are O(1).
};

class MigrationTask final : public Task {
 public:
  explicit MigrationTask(const MigrationOptions& options);

  const MigrationOptions& options() const { return options_; }

  std::string_view name() const override { return "migration"; }
  int max_steps() const override { return options_.max_steps; }
  const FeatureTable& features() const override;
  GraphWidths widths() const override;
  void Space(Evaluator* model, const Question& question, ActionSpace* space) const override;
  void Encode(Evaluator* model, const Question& question, ActionSpace* space,
              GraphBatch* batch) const override;
  void Decode(const State& state, const ActionSpace& space, int choice,
              Decision* decision) const override;
  double StepCost(const Question& question) const override;

 private:
  void ListAll(const MoveGains& gains, ActionSpace* space) const;
  void ListRepresentatives(const Evaluator& model, const MoveGains& gains,
                           ActionSpace* space) const;

  MigrationOptions options_;
};

// The objective in words: "latency and a cost of 0.2 ms a step, growing; 100 steps at most".
std::string ObjectiveText(const MigrationOptions& options);

// Whether a pod of the workload may be moved to the node.
bool MoveAllowed(const State& state, const Placement& placement, const Move& move);

// The `task:` part of a scenario. An absent part (null node) gives the defaults.
Result<MigrationOptions> ParseMigrationOptions(const YamlNode& node);

// The migrating candidate of an action: index into `space`, or kStop if there is none.
int FindCandidate(const ActionSpace& space, const Move& move);

}  // namespace rudderfish
