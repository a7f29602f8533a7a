// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/clock.h"
#include "model/layer_targets.h"
#include "model/placement_cursor.h"
#include "policy/plan.h"
#include "policy/tree_walk.h"

// Beam search over plans of several moves: at every depth the `width` placements of lowest latency
// survive and are expanded by every move that is allowed; the plan that costs least at any depth
// wins. A placement is visited once, at the smallest depth at which it is reached (equal counts of
// pods of each workload on each node are one placement). Latency and gains are by kind of node
// (model/kind_evaluator.h): plans that come out near each other must be appraised exactly.
//
// A search runs in passes. First, narrow ones that only bring whole workloads to the layers that
// model/layer_targets.h ranks best: they cross hills that a look of a few moves cannot. Then free
// ones, each eight times as wide as the one before, until the width or the budget is reached. The
// best plans of earlier passes stay in the beam of later ones, so that these look around them.
// Budgets of evaluations give the same plan everywhere; budgets of time do not.
//
// Where a workload would gain on a kind of node that has no room for it, the best placements of a
// level are also expanded by pairs of moves: one pod out of a node of that kind, the other in. What
// is gained lies two moves ahead, and the first of them alone may look bad.
//
// Where there are more than kExhaustiveMoves moves, a placement is expanded by the kBranches best
// moves by workload and kinds only, each from the fullest node and from the one with most of its
// pods, to the tightest and to the roomiest node that fits: the representatives of
// task/migration.h.
//
// Memory is bounded by width and depth. Allocates nothing once it has run a search as large.

namespace rudderfish {

struct SearchBudget {
  int width = 512;
  int64_t evaluations = 1'000'000;  // Alternatives whose gain is looked at, over all passes.
  Duration time{0};                 // 0: not limited.
  int patience = 4;                 // Depths without a better plan before a pass ends.
};

// A set of hashes: open addressing, a power of two in size, never more than half full.
class SeenSet {
 public:
  void Clear();
  // False if it was there before.
  bool Insert(uint64_t hash);

 private:
  void Grow();

  std::vector<uint64_t> slots_;
  size_t used_ = 0;
};

class Beam {
 public:
  static constexpr int kExhaustiveMoves = 1024;
  static constexpr int kBranches = 64;
  static constexpr int kFinalists = 4;

  // Searches from the model's placement, around the plan `known` too. plans() are then the best few
  // by kind, best first, each once.
  void Search(const Evaluator& model, const Task& task, const Question& question,
              const SearchBudget& budget, const Clock& clock, const Plan& known);

  std::span<const Plan> plans() const { return {plans_.data(), static_cast<size_t>(plan_count_)}; }
  int64_t evaluations() const { return evaluations_; }
  int width() const { return width_; }  // Of the last pass.

 private:
  struct TreeNode {
    int32_t parent = kNone;
    Move move;
    double latency_ms = 0;
  };
  // A placement that may become one of the next level, by one move from its parent, or by `first`
  // and then one.
  struct Offer {
    double latency_ms = 0;
    int32_t parent = 0;
    int32_t order = 0;  // Among all of its level; settles ties.
    Move move;
    Move first{kNone, kNone, kNone};
    uint64_t hash = 0;
  };
  struct KindMove {
    float gain_ms = 0;
    WorkloadId workload = 0;
    KindId from = 0, to = 0;
  };
  struct Finalist {
    double cost_ms = 0;
    int32_t node = 0;
  };
  struct Guide {
    Plan plan;
    int32_t at = 0;  // Its node of the level at hand; kNone once it has ended.
  };

  struct Pass {
    int width = 0;
    int patience = 0;
    std::span<const LayerId> direction;  // [workload]; empty: anywhere.
  };

  void RunDirectedPasses(const Evaluator& model);
  void RunFreePasses();
  bool Run(const Pass& pass);  // False if the budget ended it.
  void StartPass(const Pass& pass);
  bool PairsPromise(double latency_ms) const;
  void ExpandLevel();
  bool OutOfBudget() const;
  bool FewMoves() const;

  void Expand(int32_t parent);
  void LoadGains();
  void ExpandAll(int32_t parent);
  void ExpandByPairs(int32_t parent);
  void PairUp(int32_t parent, const KindMove& wanted, WorkloadId other, KindId to);
  void ExpandRepresentatives(int32_t parent);
  void Consider(int32_t parent, const Move& move, double latency_ms);
  bool Directed(WorkloadId workload, KindId from) const;
  bool Directed(WorkloadId workload, KindId from, KindId to) const;
  float& Gain(WorkloadId w, KindId from, KindId to) {
    return gains_[(w * kinds_ + from) * kinds_ + to];
  }

  void Prune(std::vector<Offer>* offers);
  void Select();
  void KeepGuides(int depth);
  void NoteFinalist(double cost_ms, int32_t node);
  void KeepPlans();

  const Clock* clock_ = nullptr;
  SearchBudget budget_;
  Instant deadline_;
  std::vector<double> step_costs_ms_;  // [depth] sum of the steps to there
  PlacementCursor cursor_;
  std::vector<LayerId> layer_of_;  // [kind]
  LayerTargets targets_;
  int kinds_ = 0;
  bool exhaustive_ = true;
  int64_t evaluations_ = 0;

  Pass pass_;
  int width_ = 0;
  bool filled_ = false;  // Some level of the pass had more placements than its width.
  std::vector<TreeNode> tree_;
  TreeWalk walk_;  // Of the cursor through the tree.
  int32_t level_begin_ = 0, level_end_ = 0;
  double here_ms_ = 0;                 // Latency at the cursor.
  std::vector<float> gains_;           // [workload][kind][kind] at the cursor
  std::vector<Offer> offers_, later_;  // For the next level; for the one after it.
  int32_t order_ = 0;
  double bar_ms_ = 0;                 // Latency an offer must be below.
  double pair_bar_ms_ = 0;            // Latency up to which a placement is expanded by pairs.
  std::vector<double> latencies_ms_;  // Scratch.
  std::vector<KindMove> kind_moves_;  // Scratch.
  SeenSet seen_;

  Finalist finalists_[kFinalists];
  int finalist_count_ = 0;
  std::vector<Plan> plans_;
  int plan_count_ = 0;
  std::vector<Guide> guides_;
  int guide_count_ = 0;
};

}  // namespace rudderfish
