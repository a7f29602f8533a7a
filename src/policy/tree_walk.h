// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/placement_cursor.h"

// What searches over plans have in common: a tree of placements, root at 0, a parent before its
// children, each node the placement of its parent after one move. A node has the members `parent`
// and `move`.

namespace rudderfish {

// Leads one cursor through such a tree, by undoing and making moves. Allocates nothing once as deep
// as before.
class TreeWalk {
 public:
  void BeginAtRoot() { at_ = 0; }

  // REQUIRES: the cursor is where the last call, or BeginAtRoot(), left it. Of two nodes the later
  // one is never above the other, so it is the one to leave.
  template <class Node>
  void GoTo(const std::vector<Node>& tree, int32_t node, PlacementCursor* cursor) {
    path_.clear();
    int32_t from = at_, to = node;
    while (from != to) {
      if (from > to) {
        cursor->Revert(tree[from].move);
        from = tree[from].parent;
      } else {
        path_.push_back(to);
        to = tree[to].parent;
      }
    }
    for (; !path_.empty(); path_.pop_back()) cursor->Apply(tree[path_.back()].move);
    at_ = node;
  }

 private:
  int32_t at_ = 0;
  std::vector<int32_t> path_;  // From `to` up to where both ways meet. Scratch.
};

// The moves from the root to a node, in order.
template <class Node, class Move>
void MovesTo(const std::vector<Node>& tree, int32_t node, std::vector<Move>* moves) {
  moves->clear();
  for (; node != 0; node = tree[node].parent) moves->push_back(tree[node].move);
  std::reverse(moves->begin(), moves->end());
}

}  // namespace rudderfish
