// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

// The event lists of the event simulator: a heap with four children a node for what ends at any
// time, and a line for what takes about equally long, where who comes last stands nearly last. Both
// allocate only when they hold more than ever before.
//
// Of events of one time the heap gives some first, the same one in every run of the same events;
// the line the one that was added first.

namespace rudderfish {

struct TimedEvent {
  int64_t at_ns = 0;
  int32_t subject = 0;
  uint32_t tag = 0;
};

class EventHeap {
 public:
  static constexpr int64_t kNothing = std::numeric_limits<int64_t>::max();

  void Clear() {
    events_.clear();
    hole_ = false;
  }

  // kNothing if there is none.
  int64_t soonest_ns() {
    if (hole_) FillHole();
    return events_.empty() ? kNothing : events_.front().at_ns;
  }

  // REQUIRES: there is one.
  TimedEvent Take() {
    if (hole_) FillHole();
    // What is added next goes to the top: one way down instead of a way down and a way up.
    hole_ = true;
    return events_.front();
  }

  void Add(const TimedEvent& event) {
    if (hole_) {
      hole_ = false;
      SiftDown(event);
      return;
    }
    size_t at = events_.size();
    events_.push_back(event);
    while (at > 0) {
      const size_t parent = (at - 1) / kChildren;
      if (events_[parent].at_ns <= event.at_ns) break;
      events_[at] = events_[parent];
      at = parent;
    }
    events_[at] = event;
  }

 private:
  static constexpr size_t kChildren = 4;

  void FillHole() {
    hole_ = false;
    const TimedEvent last = events_.back();
    events_.pop_back();
    if (!events_.empty()) SiftDown(last);
  }

  // Puts `event` in place of the top.
  void SiftDown(const TimedEvent& event) {
    const size_t size = events_.size();
    TimedEvent* events = events_.data();
    size_t at = 0;
    for (;;) {
      const size_t first = kChildren * at + 1;
      if (first >= size) break;
      size_t least = first;
      if (first + kChildren <= size) {
        const size_t a = events[first + 1].at_ns < events[first].at_ns ? first + 1 : first;
        const size_t b = events[first + 3].at_ns < events[first + 2].at_ns ? first + 3 : first + 2;
        least = events[b].at_ns < events[a].at_ns ? b : a;
      } else {
        for (size_t child = first + 1; child < size; ++child) {
          if (events[child].at_ns < events[least].at_ns) least = child;
        }
      }
      if (event.at_ns <= events[least].at_ns) break;
      events[at] = events[least];
      at = least;
    }
    events[at] = event;
  }

  std::vector<TimedEvent> events_;
  bool hole_ = false;  // The top has been taken, and nothing put in its place yet.
};

class EventLine {
 public:
  EventLine() : events_(16) {}

  void Clear() { first_ = last_ = 0; }
  bool empty() const { return first_ == last_; }
  int64_t soonest_ns() const { return empty() ? EventHeap::kNothing : events_[Slot(first_)].at_ns; }

  TimedEvent Take() { return events_[Slot(first_++)]; }

  // Those that are later move up.
  void Add(const TimedEvent& event) {
    if (last_ - first_ == events_.size()) Grow();
    uint64_t at = last_++;
    for (; at != first_ && events_[Slot(at - 1)].at_ns > event.at_ns; --at)
      events_[Slot(at)] = events_[Slot(at - 1)];
    events_[Slot(at)] = event;
  }

 private:
  size_t Slot(uint64_t position) const { return position & (events_.size() - 1); }

  void Grow() {
    std::vector<TimedEvent> larger(2 * events_.size());
    for (uint64_t i = first_; i != last_; ++i) larger[i & (larger.size() - 1)] = events_[Slot(i)];
    events_.swap(larger);
  }

  std::vector<TimedEvent> events_;  // A power of two.
  uint64_t first_ = 0, last_ = 0;
};

}  // namespace rudderfish
