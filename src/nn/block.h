// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/graph_batch.h"
#include "nn/aligned.h"

// The questions that a pass works on at a time, and how memory is parted among their activations.
// Internal to nn/.

namespace rudderfish::nn {

constexpr size_t Floats(int rows, int width) {
  return static_cast<size_t>(rows) * static_cast<size_t>(width);
}

// Hands out cache-aligned pieces of memory, or, without memory, only adds up what would be needed.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}

  template <class T>
  T* Take(size_t n) {
    const size_t at = used_;
    used_ += (n * sizeof(T) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }
  size_t used() const { return used_; }

 private:
  std::byte* memory_;
  size_t used_ = 0;
};

// Rows [first, first + samples) of a batch and the tables' rows that belong to them.
struct Block {
  Block() = default;
  Block(const GraphBatch& batch, int first, int samples);

  int first = 0, samples = 0;
  int candidate0 = 0, candidates = 0;
  int node0 = 0, nodes = 0;
  int workload0 = 0, workloads = 0;
  int placement0 = 0, placements = 0;
  int call0 = 0, calls = 0;
};

}  // namespace rudderfish::nn
