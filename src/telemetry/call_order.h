// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// In what order one caller makes its calls, from many times that it made them: which of them
// overlap and which follow each other without a gap. A call graph has groups in parallel of calls
// one after another; what has no such form (a, then b and c at once, then d) becomes its longest
// chain, a c d, and b beside it, which takes as long. Pure values.

namespace rudderfish {

struct OrderedGroups {
  std::vector<std::vector<int>> groups;  // Of keys; a group in the order of its calls.
  double certainty = 1;                  // The least share of times that agree, of any two calls.
};

class CallOrder {
 public:
  struct Seen {
    int key;
    int64_t start_ns, end_ns;
  };

  // The calls made once. Keys may repeat; the first counts.
  void Add(std::span<const Seen> calls);
  void Merge(const CallOrder& other);
  void Forget(int key);

  // Every key is in one group.
  OrderedGroups Groups(const std::vector<int>& keys) const;

 private:
  // Of two calls, the one with the smaller key first.
  struct Pair {
    int64_t both = 0, overlaps = 0, first_before = 0;
    std::vector<float> gaps_ms;  // From the end of the earlier to the start of the other.
  };

  struct Relation;
  Relation Between(int a, int b) const;
  double EndMs(int key) const;
  std::optional<int> RightBefore(int key, const std::vector<int>& keys) const;
  void Join(std::vector<std::vector<int>>* groups) const;

  std::map<std::pair<int, int>, Pair> pairs_;
  std::map<int, std::pair<double, int64_t>>
      ends_ms_;  // Sum from the first call's start, and count.
};

}  // namespace rudderfish
