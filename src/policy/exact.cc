// SPDX-License-Identifier: Apache-2.0
#include "policy/exact.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/kind_ends.h"
#include "policy/beam.h"
#include "policy/greedy.h"
#include "policy/tree_walk.h"

namespace rudderfish {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kToleranceMaxMs = 0.1;

Plan Incumbent(Evaluator* model, const Task& task, const Question& question, int width) {
  GreedyRollout scratch;
  Plan best;
  RollOutGreedily(model, task, question, &scratch, &best);
  Beam beam;
  beam.Search(*model, task, question, {.width = width}, SystemClock(), best);
  for (Plan plan : beam.plans()) {
    FitPlan(model, task, question, &scratch.space, &plan);
    AppraisePlan(model, task, question, &plan);
    if (plan.cost_ms < best.cost_ms) best = std::move(plan);
  }
  return best;
}

class BranchAndBound {
 public:
  BranchAndBound(Evaluator* model, const Task& task, const Question& question,
                 const ExactLimits& limits)
      : model_(model), task_(task), question_(question), limits_(limits) {}

  ExactResult Run() {
    result_.plan = Incumbent(model_, task_, question_, limits_.width);
    result_.bound_ms = -kInfinity;
    result_.tolerance_ms = 2 * KindErrorMs(*model_);
    if (result_.tolerance_ms > kToleranceMaxMs)
      return Unproven("the law of latency depends on nodes, not kinds alone");
    step_costs_ms_.push_back(0);
    for (Question here = question_; here.step < task_.max_steps(); ++here.step) {
      step_costs_ms_.push_back(step_costs_ms_.back() + task_.StepCost(here));
    }
    cursor_.Reset(*model_);
    best_ms_ = result_.plan.cost_ms;
    if (!ends_.List(step_costs_ms_, Bar(), limits_.ends, &cursor_))
      return Unproven("too many ends");
    return Search();
  }

 private:
  struct TreeNode {
    int32_t parent = kNone;
    Move move;
    int depth = 0;
  };
  struct Open {
    double bound_ms = 0;
    int32_t node = 0;
    int depth = 0;
    // The smallest bound first, of equals the deepest.
    bool operator<(const Open& other) const {
      return bound_ms != other.bound_ms ? bound_ms > other.bound_ms : depth < other.depth;
    }
  };

  ExactResult Unproven(std::string_view reason) {
    result_.reason = reason;
    return std::move(result_);
  }

  // A plan must cost less than this to be worth finding.
  double Bar() const { return best_ms_ - result_.tolerance_ms; }

  ExactResult Search() {
    tree_.push_back({});
    depth_of_[cursor_.hash()] = 0;
    open_.push({ends_.Bound(cursor_.by_kind(), 0, Bar()), 0, 0});
    while (!open_.empty() && open_.top().bound_ms < Bar()) {
      result_.bound_ms = open_.top().bound_ms;
      if (result_.placements == limits_.placements) return Unproven("too many placements");
      const Open next = open_.top();
      open_.pop();
      walk_.GoTo(tree_, next.node, &cursor_);
      if (depth_of_[cursor_.hash()] < next.depth) continue;  // Reached sooner another way.
      ++result_.placements;
      Expand(next.node);
    }
    if (unlisted_) return Unproven("a better plan has moves that are not among the alternatives");
    result_.proven = true;
    result_.bound_ms = Bar();
    return std::move(result_);
  }

  void Expand(int32_t node) {
    const int depth = tree_[node].depth + 1;
    if (depth >= static_cast<int>(step_costs_ms_.size())) return;
    KindEvaluator& by_kind = cursor_.by_kind();
    const int words = cursor_.word_count();
    for (WorkloadId w : cursor_.movable()) {
      for (KindId i = 0; i < cursor_.kind_count(); ++i) {
        if (by_kind.count(w, i) == 0) continue;
        for (KindId j = 0; j < cursor_.kind_count(); ++j) {
          if (!cursor_.KindAccepts(j)) continue;
          if (i != j) by_kind.Apply(w, i, j);
          const double latency_ms = by_kind.LatencyMs();
          const double bound_ms = ends_.Bound(by_kind, depth, Bar());
          if (i != j) by_kind.Apply(w, j, i);
          ForEachNode(cursor_.Hosts(w), cursor_.OfKind(i), words, [&](NodeId from) {
            ForEachNode(cursor_.Targets(w), cursor_.OfKind(j), words, [&](NodeId to) {
              if (from != to)
                Offer(node, {w, from, to}, depth, latency_ms + step_costs_ms_[depth], bound_ms);
            });
          });
        }
      }
    }
  }

  void Offer(int32_t parent, const Move& move, int depth, double cost_ms, double bound_ms) {
    if (std::min(cost_ms, bound_ms) >= Bar()) return;
    const auto [seen, is_new] = depth_of_.try_emplace(cursor_.HashAfter(move), depth);
    if (!is_new && seen->second <= depth) return;
    seen->second = depth;
    tree_.push_back({parent, move, depth});
    const int32_t node = static_cast<int32_t>(tree_.size()) - 1;
    if (cost_ms < Bar() && !TakePlan(node)) unlisted_ = true;
    if (bound_ms < Bar()) open_.push({bound_ms, node, depth});
  }

  // False if the plan, fitted to the alternatives, is no better than the incumbent.
  bool TakePlan(int32_t node) {
    Plan plan;
    MovesTo(tree_, node, &plan.moves);
    FitPlan(model_, task_, question_, &space_, &plan);
    AppraisePlan(model_, task_, question_, &plan);
    if (plan.cost_ms >= result_.plan.cost_ms) return false;
    best_ms_ = plan.cost_ms;
    result_.plan = std::move(plan);
    return true;
  }

  Evaluator* model_;
  const Task& task_;
  const Question question_;
  const ExactLimits limits_;
  ExactResult result_;
  ActionSpace space_;  // Scratch.
  std::vector<double> step_costs_ms_;
  double best_ms_ = 0;
  bool unlisted_ = false;
  PlacementCursor cursor_;
  KindEnds ends_;
  std::vector<TreeNode> tree_;
  TreeWalk walk_;
  std::unordered_map<uint64_t, int> depth_of_;
  std::priority_queue<Open> open_;
};

struct ExactMemory final : PlanMemory {
  ExactResult result;
};

}  // namespace

ExactResult PlanExactly(Evaluator* model, const Task& task, const Question& question,
                        const ExactLimits& limits) {
  return BranchAndBound(model, task, question, limits).Run();
}

std::unique_ptr<Memory> ExactPolicy::NewMemory(uint64_t) const {
  return std::make_unique<ExactMemory>();
}

void ExactPolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  for (size_t i = 0; i < asks.size(); ++i) {
    const Ask& ask = asks[i];
    auto* memory = static_cast<ExactMemory*>(ask.memory);
    if (memory->Follow(ask, &answers[i])) continue;
    memory->result = PlanExactly(ask.model, *ask.task, ask.question, limits_);
    memory->Adopt(memory->result.plan, ask, &answers[i]);
  }
}

const ExactResult& ExactPolicy::ResultOf(const Memory& memory) {
  return static_cast<const ExactMemory&>(memory).result;
}

}  // namespace rudderfish
