// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/event_heap.h"

// What is under way in a simulated application: the time, calls and clients' attempts, and what
// will happen at pods and users; shared by the simulator of requests and the pods that serve them.
// Frames of what has ended are used again: allocates only when more is under way than ever before.

namespace rudderfish {

using FrameId = int32_t;
inline constexpr int32_t kNoId = -1;

// A call under way, or a client's attempt (its root).
struct CallFrame {
  int64_t since_ns = 0;    // Came to its pod; the first attempt of a root.
  FrameId caller = kNoId;  // Of roots: kNoId.
  FrameId next = kNoId;    // In line, or in the list of free frames.
  int32_t call = 0;
  int32_t pod = 0;                        // Of roots: how many attempts there were before.
  int32_t position = 0, group_end = 0;    // In CallGraph::sequence: its own, its group's end.
  int32_t open = 0;                       // Groups that are not done.
  uint32_t generation = 0;                // Another one for each call that has the frame.
  bool failed = false, given_up = false;  // Given up, of roots: no client waits for it.
};

class CallFrames {
 public:
  void Clear() {
    frames_.clear();
    free_ = kNoId;
  }

  CallFrame& operator[](FrameId id) { return frames_[id]; }

  FrameId New();  // As new but for its generation. References to others are void.
  void Free(FrameId id);

  // Visits all that are not free. Allocates.
  template <class Visit>
  void ForEach(Visit visit) const {
    std::vector<bool> is_free(frames_.size());
    for (FrameId id = free_; id != kNoId; id = frames_[id].next) is_free[id] = true;
    for (size_t id = 0; id < frames_.size(); ++id) {
      if (!is_free[id]) visit(frames_[id]);
    }
  }

 private:
  std::vector<CallFrame> frames_;
  FrameId free_ = kNoId;
};

struct CallsUnderWay {
  int64_t now_ns = 0;
  CallFrames frames;
  // Users who ask again (subject kNoId); all others are the pods' (PodFleet::Happen).
  EventHeap heap;
};

}  // namespace rudderfish
