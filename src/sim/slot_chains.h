// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/ids.h"

// Chains of slots, such as the pods on each node: a slot stands in one of them at most, and enters
// and leaves without a search. Allocates only for more slots, or chains, than ever before.

namespace rudderfish {

class SlotChains {
 public:
  void Reset(int chains) {
    chains_.assign(chains, {});
    links_.clear();
  }

  // kNone: there is none.
  int32_t first(int32_t chain) const { return chains_[chain].first; }
  int32_t last(int32_t chain) const { return chains_[chain].last; }
  int32_t previous(int32_t slot) const { return links_[slot].previous; }

  // `before`: one of that chain; kNone: at the end.
  void Insert(int32_t slot, int32_t before, int32_t chain) {
    if (slot >= static_cast<int32_t>(links_.size())) links_.resize(slot + 1);
    Chain& ends = chains_[chain];
    Link& link = links_[slot];
    link.next = before;
    link.previous = before == kNone ? ends.last : links_[before].previous;
    (link.previous == kNone ? ends.first : links_[link.previous].next) = slot;
    (before == kNone ? ends.last : links_[before].previous) = slot;
  }

  void Remove(int32_t slot, int32_t chain) {
    Chain& ends = chains_[chain];
    const Link link = links_[slot];
    (link.previous == kNone ? ends.first : links_[link.previous].next) = link.next;
    (link.next == kNone ? ends.last : links_[link.next].previous) = link.previous;
  }

 private:
  struct Link {
    int32_t next = kNone, previous = kNone;
  };
  struct Chain {
    int32_t first = kNone, last = kNone;
  };

  std::vector<Chain> chains_;
  std::vector<Link> links_;  // [slot]
};

}  // namespace rudderfish
