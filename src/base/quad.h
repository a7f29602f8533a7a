// SPDX-License-Identifier: Apache-2.0
#pragma once

// Four floats at once: one register on every processor this runs on. Rows of numbers that are
// worked on so have a multiple of four of them; what fills a row up is never read as a result. A
// vector of numbers may alias such numbers, in GCC and in clang.

namespace rudderfish {

inline constexpr int kQuad = 4;
using Quad = float __attribute__((vector_size(kQuad * sizeof(float)), aligned(4)));

// Of each whether: all bits or none.
using MaskQuad = int __attribute__((vector_size(kQuad * sizeof(int)), aligned(4)));

inline Quad LoadQuad(const float* from) { return *reinterpret_cast<const Quad*>(from); }
inline void StoreQuad(const Quad& quad, float* to) { *reinterpret_cast<Quad*>(to) = quad; }
inline Quad AllOf(float x) { return Quad{x, x, x, x}; }
inline Quad Max(const Quad& a, const Quad& b) { return a > b ? a : b; }
inline Quad Min(const Quad& a, const Quad& b) { return a < b ? a : b; }

inline MaskQuad LoadMask(const int* from) { return *reinterpret_cast<const MaskQuad*>(from); }
inline void StoreMask(const MaskQuad& mask, int* to) { *reinterpret_cast<MaskQuad*>(to) = mask; }

inline float LargestOf(const Quad& quad) {
  const Quad pairs = Max(quad, __builtin_shufflevector(quad, quad, 2, 3, 0, 1));
  const float a = pairs[0], b = pairs[1];
  return a > b ? a : b;
}
inline float SumOf(const Quad& quad) {
  const Quad pairs = quad + __builtin_shufflevector(quad, quad, 2, 3, 0, 1);
  return pairs[0] + pairs[1];
}

// Length of a row that holds `count` numbers.
inline constexpr int RoundUpToQuads(int count) { return (count + kQuad - 1) / kQuad * kQuad; }

}  // namespace rudderfish
