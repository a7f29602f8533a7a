// SPDX-License-Identifier: Apache-2.0
#pragma once

// A ratio of two sums over trials, and how sure it is.

namespace rudderfish {

// What is counted in trials that are not equally large, such as late requests of episodes.
class RatioTally {
 public:
  void Add(double hits, double of);

  int trials() const { return trials_; }
  double ratio() const { return of_ > 0 ? hits_ / of_ : 0; }  // Of all.
  // Of that, over trials (W. G. Cochran, "Sampling Techniques", 3rd edition, 1977, equation 2.46);
  // 0 of fewer than two.
  double standard_error() const;

 private:
  int trials_ = 0;
  double hits_ = 0, of_ = 0;
  double hits_squared_ = 0, hits_by_of_ = 0, of_squared_ = 0;
};

}  // namespace rudderfish
