// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/event_heap.h"

// Processor sharing at one pod: of n calls each computes at the speed min(1, slots / n).
//
// A clock goes as fast as they do. A call that comes at clock time v and needs x is done at clock
// time v + x, whatever calls come and go meanwhile; so calls stand in a heap, and a change of speed
// moves none of them (virtual time, as in A. Demers, S. Keshav, S. Shenker, "Analysis and
// simulation of a fair queueing algorithm", SIGCOMM 1989). O(log n) a call. Allocates only when
// more calls are there than ever before. Times in ns.

namespace rudderfish {

class SharedPod {
 public:
  struct Call {
    double done_at = 0;  // On the clock.
    int64_t service_ns = 0;
    int32_t id = 0;
  };

  // Removes all calls. REQUIRES: slots >= 1.
  void Clear(int slots) {
    slots_ = slots;
    calls_.clear();
    clock_ns_ = 0;
    alarm_ns = EventHeap::kNothing;
  }

  void Add(int64_t now_ns, int64_t service_ns, int32_t id) {
    Pass(now_ns);
    calls_.push_back({clock_ns_ + static_cast<double>(service_ns), service_ns, id});
    std::push_heap(calls_.begin(), calls_.end(), Later);
  }

  // When the first call is done, if no other comes; EventHeap::kNothing without calls.
  int64_t next_ns() const {
    if (calls_.empty()) return EventHeap::kNothing;
    const double left_ns = (calls_.front().done_at - clock_ns_) / speed();
    return at_ns_ + std::max<int64_t>(0, static_cast<int64_t>(std::ceil(left_ns)));
  }

  // That one. REQUIRES: it is that time, or later.
  Call Take(int64_t now_ns) {
    Pass(now_ns);
    std::pop_heap(calls_.begin(), calls_.end(), Later);
    const Call call = calls_.back();
    calls_.pop_back();
    if (calls_.empty()) clock_ns_ = 0;  // So that it keeps its digits.
    return call;
  }

  int64_t alarm_ns = EventHeap::kNothing;  // When its owner is to look at it next.

 private:
  static bool Later(const Call& a, const Call& b) { return a.done_at > b.done_at; }

  double speed() const {
    const auto calls = static_cast<double>(calls_.size());
    return calls <= slots_ ? 1 : slots_ / calls;
  }

  void Pass(int64_t now_ns) {
    if (!calls_.empty()) clock_ns_ += static_cast<double>(now_ns - at_ns_) * speed();
    at_ns_ = now_ns;
  }

  std::vector<Call> calls_;  // A heap, the first to be done on top.
  double slots_ = 1;
  double clock_ns_ = 0;
  int64_t at_ns_ = 0;  // When the clock was set.
};

}  // namespace rudderfish
