// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

// The sum of weight(a) * weight(b) * max(a, b) over all pairs of two lists, in the time that
// sorting them takes, which is less than that of a loop over pairs: what lies below a value counts
// as that value, what lies above as itself. Sums are in another order than those of such a loop:
// both agree but for rounding.
//
// Allocates nothing once lists have been as long before.

namespace rudderfish {

class SumOfMaxima {
 public:
  void Clear() {
    left_.clear();
    right_.clear();
  }
  void AddLeft(double value, double weight) { left_.push_back({value, weight}); }
  void AddRight(double value, double weight) { right_.push_back({value, weight}); }
  void Reserve(size_t count);  // In each list.

  // Sorts the lists.
  double Sum();

 private:
  struct Weighted {
    double value = 0, weight = 0;
  };

  std::vector<Weighted> left_, right_;
};

}  // namespace rudderfish
