// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scenario/arrivals.h"

// What will happen, soonest first. Events of one time happen in the order of their kind, those of
// one kind in the order in which they were added, so that an episode is the same every time.
// O(log n); allocates only when it holds more than ever before.

namespace rudderfish {

struct Event {
  // In this order at one time: a place that gets free can be had by who comes then.
  enum class Kind : uint8_t { kWorld, kReturn, kDelete, kFinish, kFail, kRun, kArrive, kAsk };

  SimTime at{0};
  Kind kind = Kind::kWorld;
  int32_t subject = 0;      // A slot, a node, a source of pods.
  uint32_t generation = 0;  // Of the slot,
  uint32_t attempt = 0;     // and of its being bound.
  uint64_t order = 0;       // Set by Add.

  bool Before(const Event& other) const {
    if (at != other.at) return at < other.at;
    if (kind != other.kind) return kind < other.kind;
    return order < other.order;
  }
};

class EventQueue {
 public:
  void Clear() {
    heap_.clear();
    added_ = 0;
  }
  bool empty() const { return heap_.empty(); }
  const Event& top() const { return heap_.front(); }

  void Add(Event event) {
    event.order = added_++;
    AddInOrder(event);
  }

  // Keeps the event's own order.
  void AddInOrder(const Event& event) {
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }

  // Goes over the events, soonest first, until `visit` says false: O(k^2) for k of them. `frontier`
  // is working space.
  template <class Visit>
  void Scan(std::vector<int32_t>* frontier, Visit visit) const {
    const auto size = static_cast<int32_t>(heap_.size());
    frontier->clear();
    if (size > 0) frontier->push_back(0);
    while (!frontier->empty()) {
      const auto soonest =
          std::min_element(frontier->begin(), frontier->end(),
                           [this](int32_t a, int32_t b) { return heap_[a].Before(heap_[b]); });
      const int32_t at = *soonest;
      *soonest = frontier->back();
      frontier->pop_back();
      if (!visit(heap_[at])) return;
      for (const int32_t child : {2 * at + 1, 2 * at + 2}) {
        if (child < size) frontier->push_back(child);
      }
    }
  }

  Event Take() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool Later(const Event& a, const Event& b) { return b.Before(a); }

  std::vector<Event> heap_;
  uint64_t added_ = 0;
};

}  // namespace rudderfish
