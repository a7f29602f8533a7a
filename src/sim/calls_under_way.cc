// SPDX-License-Identifier: Apache-2.0
#include "sim/calls_under_way.h"

namespace rudderfish {

FrameId CallFrames::New() {
  if (free_ == kNoId) {
    frames_.emplace_back();
    return static_cast<FrameId>(frames_.size() - 1);
  }
  const FrameId id = free_;
  const uint32_t generation = frames_[id].generation;
  free_ = frames_[id].next;
  frames_[id] = CallFrame();
  frames_[id].generation = generation;
  return id;
}

void CallFrames::Free(FrameId id) {
  ++frames_[id].generation;
  frames_[id].next = free_;
  free_ = id;
}

}  // namespace rudderfish
