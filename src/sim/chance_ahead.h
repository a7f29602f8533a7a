// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/normals.h"
#include "base/rng.h"

// A stream of chance, drawn some words ahead: what it gives is to the bit what Rng gives, draw by
// draw, but normal numbers are made many at once, which takes a third of the time.

namespace rudderfish {

class ChanceAhead {
 public:
  explicit ChanceAhead(const Rng& rng) : rng_(rng) {}

  double Uniform() { return static_cast<double>(words_[Next()] >> 11) * 0x1p-53; }

  double Normal() {
    const size_t at = Next();
    if (!has_normals_) {
      NormalsOf(words_, normals_);
      has_normals_ = true;
    }
    return normals_[at];
  }

 private:
  static constexpr size_t kAhead = 64;

  size_t Next() {
    if (next_ == kAhead) {
      for (uint64_t& word : words_) word = rng_.Next64();
      next_ = 0;
      has_normals_ = false;
    }
    return next_++;
  }

  Rng rng_;
  std::array<uint64_t, kAhead> words_{};
  std::array<double, kAhead> normals_{};
  size_t next_ = kAhead;
  bool has_normals_ = false;  // Those of all words.
};

}  // namespace rudderfish
