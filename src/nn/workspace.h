// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "nn/aligned.h"

// The memory in which a CandidateNet computes: activations of the last Forward, scratch for
// Backward. Grows to the largest batch it has seen and allocates no more after that. One thread at
// a time; one a thread.

namespace rudderfish::nn {

// Time and work of the dense products, counted while `state` is kOn (two clock reads a product).
struct DenseProfile {
  enum class State { kOff, kOn };
  State state = State::kOff;
  double seconds = 0;
  double flops = 0;  // A multiply-add is two.
};

class Workspace {
 public:
  // kActivations: Backward may follow Forward. kNothing: for inference; a block's memory is used
  // again by the next, so that it stays in the cache.
  enum class Keep { kActivations, kNothing };

  explicit Workspace(Keep keep = Keep::kActivations) : keep_(keep) {}

  DenseProfile profile;

 private:
  friend class CandidateNet;
  friend class CandidatePass;

  static std::byte* Grow(AlignedVector<std::byte>* memory, size_t bytes) {
    if (memory->size() < bytes) memory->resize(bytes);
    return memory->data();
  }

  Keep keep_;
  AlignedVector<std::byte> activations_;
  AlignedVector<std::byte> scratch_;
  AlignedVector<std::byte> transposes_;
  const void* kept_batch_ = nullptr;  // What Backward must be asked about.
  int kept_first_ = 0;
  int kept_count_ = -1;
};

}  // namespace rudderfish::nn
