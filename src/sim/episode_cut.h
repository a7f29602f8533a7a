// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>

// Lets an evaluation end early with all that it has: once it is told to stop, no further episode
// begins, and those that have begun are completed for every policy, so that all policies met the
// same episodes. REQUIRES: work is given out in the order of the episodes. Any thread.

namespace rudderfish {

class EpisodeCut {
 public:
  explicit EpisodeCut(const std::atomic<bool>* stop) : stop_(stop) {}  // Null: never.

  // Asked before each piece of work of an episode. False: leave it out.
  bool Begins(int episode) {
    if (stop_ == nullptr) return true;
    const std::lock_guard lock(mutex_);
    if (episode >= begun_ && stop_->load(std::memory_order_relaxed)) return false;
    begun_ = std::max(begun_, episode + 1);
    return true;
  }

  // How many there are, from the first on, of `count`. REQUIRES: nothing runs any more.
  int Complete(int count) const { return stop_ == nullptr ? count : std::min(begun_, count); }

 private:
  const std::atomic<bool>* stop_;
  std::mutex mutex_;
  int begun_ = 0;
};

}  // namespace rudderfish
