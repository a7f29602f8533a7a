// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "model/placement_cursor.h"
#include "policy/plan.h"

// Beam search over plans of several moves: at every depth the `width` placements of lowest latency survive and are
// expanded by every move that is allowed; the plan that costs least at any depth wins. A placement is visited once, at
// the smallest depth at which it is reached (equal counts of pods of each workload on each node are one placement).
// Latency and gains are by kind of node (model/kind_evaluator.h): plans that come out near each other must be appraised
// exactly.
//
// A search runs in passes, each eight times as wide as the one before, until the width or the budget is reached, so that
// it has an answer early and never wastes more than a seventh. Budgets of evaluations give the same plan everywhere;
// budgets of time do not.
//
// Where there are more than kExhaustiveMoves moves, a placement is expanded by the kBranches best moves by workload and
// kinds only, each from the fullest node and from the one with most of its pods, to the tightest and to the roomiest
// node that fits: the representatives of task/migration.h.
//
// Memory is bounded by width and depth. Allocates nothing once it has run a search as large.

namespace rudderfish {

struct SearchBudget {
  int width = 512;
  int64_t evaluations = 1'000'000;  // Alternatives whose gain is looked at, over all passes.
  Duration time{0};                 // 0: not limited.
  int patience = 3;                 // Depths without a better plan before a pass ends.
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

  // Searches from the model's placement. Plans: the best few of all passes by kind, best first, each once.
  void Search(const Evaluator& model, const Task& task, const Question& question, const SearchBudget& budget,
              const Clock& clock, const Plan& known = {});

  std::span<const Plan> plans() const { return {plans_.data(), static_cast<size_t>(plan_count_)}; }
  int64_t evaluations() const { return evaluations_; }
  int width() const { return width_; }  // Of the last pass.

 private:
  struct TreeNode {
    int32_t parent = kNone;
    Move move;
    double latency_ms = 0;  // As its parent's gains say.
  };
  struct Offer {
    double latency_ms = 0;
    int32_t parent = 0;
    Move move;
    int32_t order = 0;  // Among all of its depth; settles ties.
    Move first{kNone, kNone, kNone};
  };
  struct KindMove {
    float gain_ms = 0;
    WorkloadId workload = 0;
    KindId from = 0, to = 0;
  };

  bool RunPass(int width, int depth_max);
  bool OutOfBudget();
  void Expand(int32_t parent);
  void ExpandAll(int32_t parent, double latency_ms);
  void ExpandRepresentatives(int32_t parent, double latency_ms);
  void Consider(int32_t parent, const Move& move, double latency_ms);
  void Prune();
  void Select();
  void KeepGuides(int depth);
  void KeepPlans();
  void NoteFinalist(double cost_ms, int32_t node);
  void GoTo(int32_t node);
  bool FewMoves() const;

  const Clock* clock_ = nullptr;
  SearchBudget budget_;
  Instant deadline_;
  std::vector<double> step_costs_ms_;  // [depth] sum of the steps to there
  PlacementCursor cursor_;
  int32_t at_ = 0;                     // Where the cursor is in the tree.
  bool exhaustive_ = true;

  int width_ = 0;
  bool filled_ = false;                // Some depth of the pass had more placements than its width.
  std::vector<TreeNode> tree_;
  int32_t level_begin_ = 0, level_end_ = 0;
  std::vector<Offer> offers_;
  int32_t order_ = 0;
  double bar_ms_ = 0;                  // Latency an offer must be below.
  SeenSet seen_;
  std::vector<KindMove> kind_moves_;
  std::vector<int32_t> path_;

  struct Finalist {
    double cost_ms = 0;
    int32_t node = 0;
  };
  Finalist finalists_[kFinalists];
  int finalist_count_ = 0;
  std::vector<Plan> plans_;
  int plan_count_ = 0;
  int64_t evaluations_ = 0;
  struct Guide { Plan plan; int32_t at; };
  std::vector<Guide> guides_;
  int guide_count_ = 0;
  bool directed_ = false;
  std::vector<int32_t> direction_;
  std::vector<int32_t> layer_of_kind_;
  struct Target { double cost; std::vector<int32_t> dir; };
  std::vector<Target> targets_;
  std::vector<Offer> later_[2];
  int32_t later_order_ = 0;
  std::vector<float> gain_rows_;
  void Eject(int32_t parent, double latency_ms);
  void ListTargets(const Evaluator& model);
};

}  // namespace rudderfish
