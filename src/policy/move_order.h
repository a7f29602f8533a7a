// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/plan.h"

// From a way through placements to a plan: what pods are moved back or moved on along the way is
// left out, and each pod that ends elsewhere is moved once. That has to be done in an order in
// which each move finds room; a search puts the moves that gain most first. Where it finds none,
// the plan is the shortest way over placements that the way passes.
//
// Allocates nothing once it has ordered as many moves.

namespace rudderfish {

class MoveOrder {
 public:
  // `way` is allowed move by move from the model's placement, which is left as found. If `first`
  // lists all that is allowed, the plan begins with one of its candidates.
  void Order(Evaluator* model, std::span<const Move> way, const ActionSpace& first, Plan* plan);

 private:
  static constexpr int kMovesTried = 3000;

  // Pods of a workload that have to leave a node (less than 0), or to come to it.
  struct Cell {
    WorkloadId workload = 0;
    NodeId node = 0;
    int32_t pods = 0;
  };
  struct Option {
    float gain_ms = 0;
    int32_t from = 0, to = 0;  // Into cells_.
  };

  int32_t CellOf(WorkloadId workload, NodeId node);
  bool Search(Evaluator* model, const ActionSpace& first, Plan* plan);
  void ListOptions(Evaluator* model, const ActionSpace& first, const Plan& plan);
  void Shorten(std::span<const Move> way, Plan* plan);
  bool AreNeighbours(int a, int b, Move* move) const;

  std::vector<Cell> cells_;
  std::vector<Option> options_;     // Of all levels of the search, one after another.
  std::vector<size_t> levels_;      // Where those of each level begin,
  std::vector<size_t> next_;        // and which is tried next.
  std::vector<int32_t> pods_;       // [placement of the way][cell] Pods, less those at first.
  std::vector<int32_t> came_from_;  // [placement of the way] kNone: not reached.
  std::vector<int32_t> queue_;
  int width_ = 0;
};

}  // namespace rudderfish
