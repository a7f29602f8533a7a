// SPDX-License-Identifier: Apache-2.0
#include "policy/move_order.h"

#include <algorithm>

#include "task/migration.h"

namespace rudderfish {

void MoveOrder::Order(Evaluator* model, std::span<const Move> way, const ActionSpace& first,
                      Plan* plan) {
  plan->moves.clear();
  cells_.clear();
  for (const Move& move : way) {
    --cells_[CellOf(move.workload, move.from)].pods;
    ++cells_[CellOf(move.workload, move.to)].pods;
  }
  if (!Search(model, first, plan)) Shorten(way, plan);
}

int32_t MoveOrder::CellOf(WorkloadId workload, NodeId node) {
  const auto found = std::find_if(cells_.begin(), cells_.end(), [&](const Cell& cell) {
    return cell.workload == workload && cell.node == node;
  });
  if (found != cells_.end()) return static_cast<int32_t>(found - cells_.begin());
  cells_.push_back({workload, node, 0});
  return static_cast<int32_t>(cells_.size()) - 1;
}

// Depth first, the largest gain first. The moves made are on the model until it ends.
bool MoveOrder::Search(Evaluator* model, const ActionSpace& first, Plan* plan) {
  int to_make = 0, tried = 0;
  for (const Cell& cell : cells_) to_make += std::max(0, cell.pods);
  options_.clear();
  levels_.clear();
  next_.clear();
  const auto made = [&] { return static_cast<int>(plan->moves.size()); };
  const auto take_back = [&] {
    const Option& option = options_[next_.back() - 1];
    --cells_[option.from].pods;
    ++cells_[option.to].pods;
    model->Undo();
    plan->moves.pop_back();
  };
  while (made() < to_make) {
    if (static_cast<int>(levels_.size()) == made()) ListOptions(model, first, *plan);
    if (next_.back() == options_.size()) {
      options_.resize(levels_.back());
      levels_.pop_back();
      next_.pop_back();
      if (levels_.empty()) return false;
      take_back();
      continue;
    }
    if (++tried > kMovesTried) break;
    const Option& option = options_[next_.back()++];
    ++cells_[option.from].pods;
    --cells_[option.to].pods;
    const Cell& from = cells_[option.from];
    plan->moves.push_back({from.workload, from.node, cells_[option.to].node});
    model->Commit(plan->moves.back());
  }
  const bool found = made() == to_make;
  for (int i = made(); i > 0; --i) model->Undo();
  return found;
}

void MoveOrder::ListOptions(Evaluator* model, const ActionSpace& first, const Plan& plan) {
  const size_t begin = options_.size();
  const MoveGains& gains = model->Gains();
  const Placement& placement = model->placement();
  const bool among_first = plan.moves.empty() && first.exhaustive;
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i].pods >= 0) continue;
    for (size_t j = 0; j < cells_.size(); ++j) {
      if (cells_[j].pods <= 0 || cells_[j].workload != cells_[i].workload) continue;
      const Move move{cells_[i].workload, cells_[i].node, cells_[j].node};
      if (!MoveAllowed(model->state(), placement, move)) continue;
      if (among_first && FindCandidate(first, move) == kStop) continue;
      options_.push_back(
          {gains.Gain(move.workload, placement.kind(move.from), placement.kind(move.to)),
           static_cast<int32_t>(i), static_cast<int32_t>(j)});
    }
  }
  std::sort(options_.begin() + static_cast<ptrdiff_t>(begin), options_.end(),
            [](const Option& a, const Option& b) {
              if (a.gain_ms != b.gain_ms) return a.gain_ms > b.gain_ms;
              return a.from != b.from ? a.from < b.from : a.to < b.to;
            });
  levels_.push_back(begin);
  next_.push_back(begin);
}

// Breadth first over the placements of the way: each has room for its pods, so that a step from one
// to another that moves one pod is allowed.
void MoveOrder::Shorten(std::span<const Move> way, Plan* plan) {
  plan->moves.clear();
  width_ = static_cast<int>(cells_.size());
  const int last = static_cast<int>(way.size());
  pods_.assign(static_cast<size_t>(width_) * (last + 1), 0);
  for (int i = 0; i < last; ++i) {
    const auto here = pods_.begin() + static_cast<ptrdiff_t>(i) * width_;
    std::copy_n(here, width_, here + width_);
    --*(here + width_ + CellOf(way[i].workload, way[i].from));
    ++*(here + width_ + CellOf(way[i].workload, way[i].to));
  }
  came_from_.assign(last + 1, kNone);
  queue_.assign(1, 0);
  for (size_t at = 0; at < queue_.size() && came_from_[last] == kNone; ++at) {
    for (int next = last; next > 0; --next) {
      if (came_from_[next] != kNone || !AreNeighbours(queue_[at], next, nullptr)) continue;
      came_from_[next] = queue_[at];
      queue_.push_back(next);
    }
  }
  for (int at = last; at > 0; at = came_from_[at]) {
    AreNeighbours(came_from_[at], at, &plan->moves.emplace_back());
  }
  std::reverse(plan->moves.begin(), plan->moves.end());
}

// Whether one pod's move leads from one placement of the way to the other, and which.
bool MoveOrder::AreNeighbours(int a, int b, Move* move) const {
  const int32_t *before = pods_.data() + static_cast<ptrdiff_t>(a) * width_,
                *after = pods_.data() + static_cast<ptrdiff_t>(b) * width_;
  int from = kNone, to = kNone;
  for (int i = 0; i < width_; ++i) {
    const int more = after[i] - before[i];
    if (more == 0) continue;
    int& end = more > 0 ? to : from;
    if (end != kNone || more > 1 || more < -1) return false;
    end = i;
  }
  if (from == kNone || to == kNone || cells_[from].workload != cells_[to].workload) return false;
  if (move != nullptr) *move = {cells_[from].workload, cells_[from].node, cells_[to].node};
  return true;
}

}  // namespace rudderfish
