// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/kernel.h"

// One register of floats, for the loops behind nn/kernel.h: GCC's vector extensions, which clang
// has too; no intrinsics. The .cc of an instruction set defines how many floats a register holds
// (RUDDERFISH_LANES). Everything here and in the kernel_*.h that include it has internal linkage
// and includes no standard header: see kernel.h.

#if defined(__clang__)
#define RUDDERFISH_UNROLL _Pragma("clang loop unroll(full)")
#define RUDDERFISH_UNROLL_TWICE _Pragma("clang loop unroll_count(2)")
#else
#define RUDDERFISH_UNROLL _Pragma("GCC unroll 16")
#define RUDDERFISH_UNROLL_TWICE _Pragma("GCC unroll 2")
#endif
#define RUDDERFISH_INLINE inline __attribute__((always_inline))

namespace rudderfish::nn {
namespace {

constexpr int kLanes = RUDDERFISH_LANES;

typedef float Vector __attribute__((vector_size(kLanes * 4)));
typedef float UnalignedVector __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef int32_t Integers __attribute__((vector_size(kLanes * 4)));
typedef int32_t UnalignedIntegers __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef float Quad __attribute__((vector_size(16)));

RUDDERFISH_INLINE Vector Load(const float* p) {
  return *reinterpret_cast<const UnalignedVector*>(p);
}
RUDDERFISH_INLINE void Store(float* p, Vector v) { *reinterpret_cast<UnalignedVector*>(p) = v; }

// x - 0 is x for every x, so compilers leave a broadcast alone; 0 + x is not (for -0) and costs an
// addition.
RUDDERFISH_INLINE Vector All(float x) { return x - Vector{}; }
RUDDERFISH_INLINE Vector Max(Vector a, Vector b) { return a > b ? a : b; }
// Of not-a-number: not a number.
RUDDERFISH_INLINE Vector Relu(Vector v) { return Max(Vector{}, v); }

// The first n < kLanes floats, the rest `fill`.
RUDDERFISH_INLINE Vector LoadPart(const float* p, int n, float fill) {
  Vector v = All(fill);
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
}

RUDDERFISH_INLINE void StorePart(float* p, int n, Vector v) {
  for (int i = 0; i < n; ++i) p[i] = v[i];
}

RUDDERFISH_INLINE float Sum(Vector v) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

RUDDERFISH_INLINE float Largest(Vector v) {
  float largest = v[0];
  for (int i = 1; i < kLanes; ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
}

// exp(x) = 2^n exp(r), |r| <= ln 2 / 2, with ln 2 in two parts and the polynomial of Cephes' expf
// (S. L. Moshier); relative error below 2e-7. n is rounded through integers: the usual trick of
// adding and subtracting 1.5 * 2^23 is folded away by -ffast-math, which costs five digits and no
// test of the loss would notice.
RUDDERFISH_INLINE Vector Exp(Vector x) {
  const Integers vanishes = x < All(-87.0F);
  x = Max(x, All(-87.0F));
  x = x > All(88.0F) ? All(88.0F) : x;
  const Vector half = x < Vector{} ? All(-0.5F) : All(0.5F);
  const Integers n = __builtin_convertvector(x * 1.44269504F + half, Integers);
  const Vector whole = __builtin_convertvector(n, Vector);
  Vector r = x - whole * 0.693359375F;
  r = r + whole * 2.12194440e-4F;
  Vector p = All(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const Vector result = reinterpret_cast<Vector>(reinterpret_cast<Integers>(p) + (n << 23));
  return vanishes ? Vector{} : result;
}

}  // namespace
}  // namespace rudderfish::nn
