// SPDX-License-Identifier: Apache-2.0
#include "model/sum_of_maxima.h"

#include <algorithm>

namespace rudderfish {

void SumOfMaxima::Reserve(size_t count) {
  left_.reserve(count);
  right_.reserve(count);
}

double SumOfMaxima::Sum() {
  const auto is_less = [](const Weighted& a, const Weighted& b) { return a.value < b.value; };
  std::sort(left_.begin(), left_.end(), is_less);
  std::sort(right_.begin(), right_.end(), is_less);
  // Of the left ones that are at most a value of the right: their weights. Above it: theirs times
  // their values.
  double below = 0, above = 0, sum = 0;
  for (const Weighted& left : left_) above += left.weight * left.value;
  size_t next = 0;
  for (const Weighted& right : right_) {
    for (; next < left_.size() && left_[next].value <= right.value; ++next) {
      below += left_[next].weight;
      above -= left_[next].weight * left_[next].value;
    }
    sum += right.weight * (below * right.value + (next < left_.size() ? above : 0));
  }
  return sum;
}

}  // namespace rudderfish
