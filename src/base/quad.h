// SPDX-License-Identifier: Apache-2.0
#pragma once

// Four floats at once: one register on every processor this runs on. Rows of numbers that are
// worked on so have a multiple of four of them; what fills a row up is never read as a result.

namespace rudderfish {

inline constexpr int kQuad = 4;
using Quad = float __attribute__((vector_size(kQuad * sizeof(float)), aligned(4), may_alias));

// Of each whether: all bits or none.
using MaskQuad = int __attribute__((vector_size(kQuad * sizeof(int)), aligned(4), may_alias));

inline Quad LoadQuad(const float* from) { return *reinterpret_cast<const Quad*>(from); }
inline void StoreQuad(const Quad& quad, float* to) { *reinterpret_cast<Quad*>(to) = quad; }
inline Quad AllOf(float x) { return Quad{x, x, x, x}; }
inline Quad Max(const Quad& a, const Quad& b) { return a > b ? a : b; }
inline Quad Min(const Quad& a, const Quad& b) { return a < b ? a : b; }

inline float LargestOf(const Quad& quad) {
  const float a = quad[0] > quad[1] ? quad[0] : quad[1];
  const float b = quad[2] > quad[3] ? quad[2] : quad[3];
  return a > b ? a : b;
}

// Length of a row that holds `count` numbers.
inline constexpr int RoundUpToQuads(int count) { return (count + kQuad - 1) / kQuad * kQuad; }

}  // namespace rudderfish
