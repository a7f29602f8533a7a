// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/kernel_vector.h"

// Kernels of the heads: dot products of rows, softmax; and of the optimiser.

namespace rudderfish::nn {
namespace {

RUDDERFISH_INLINE Quad Fold(Vector v) {
#if RUDDERFISH_LANES == 16
  typedef float Octet __attribute__((vector_size(32)));
  const Octet half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
         __builtin_shufflevector(half, half, 4, 5, 6, 7);
#elif RUDDERFISH_LANES == 8
  return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
#else
  return v;
#endif
}

// The sums of four quads, one a lane: every lane adds its quad's floats in the same order.
RUDDERFISH_INLINE Quad SumQuads(Quad a, Quad b, Quad c, Quad d) {
  const Quad ab =
      __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
  const Quad cd =
      __builtin_shufflevector(c, d, 0, 1, 4, 5) + __builtin_shufflevector(c, d, 2, 3, 6, 7);
  return __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
}

void RowDots(int rows, float bias, int x_width, const float* x, const float* w, int z_width,
             const float* z, const float* v, float* out) {
  const auto partial = [=](int i) __attribute__((always_inline)) {
    if (i >= rows) return Quad{};
    Vector sum{}, more{};
    for (int j = 0; j < x_width; j += kLanes)
      sum += Load(x + ptrdiff_t{i} * x_width + j) * Load(w + j);
    if (z != nullptr) {
      for (int j = 0; j < z_width; j += kLanes)
        more += Load(z + ptrdiff_t{i} * z_width + j) * Load(v + j);
    }
    return Fold(sum + more);
  };
  for (int i = 0; i < rows; i += 4) {
    const Quad sums = SumQuads(partial(i), partial(i + 1), partial(i + 2), partial(i + 3)) + bias;
    for (int r = 0; r < 4 && i + r < rows; ++r) out[i + r] = sums[r];
  }
}

void DotReluBackward(int rows, int width, const float* p, const float* w, const float* q,
                     const float* v, const float* y, float* d) {
  for (int j = 0; j < width; j += kLanes) {
    const Vector first = Load(w + j), second = q != nullptr ? Load(v + j) : Vector{};
    for (int i = 0; i < rows; ++i) {
      const ptrdiff_t at = ptrdiff_t{i} * width + j;
      const Vector gradient = q != nullptr ? first * p[i] + second * q[i] : first * p[i];
      Store(d + at, Load(y + at) > Vector{} ? gradient : Vector{});
    }
  }
}

void Exponentials(int n, const float* x, float* out) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(out + i, Exp(Load(x + i)));
  if (i < n) StorePart(out + i, n - i, Exp(LoadPart(x + i, n - i, 0)));
}

void LogSoftmax(int n, const float* scores, float* log_probabilities, float* probabilities) {
  const int whole = n / kLanes * kLanes;
  const Vector rest = LoadPart(scores + whole, n - whole, kForbidden);
  Vector largest = rest;
  for (int i = 0; i < whole; i += kLanes) largest = Max(largest, Load(scores + i));
  const float top = Largest(largest);

  const auto weight = [top](Vector score) __attribute__((always_inline)) {
    return score > All(kForbidden) ? Exp(score - top) : Vector{};
  };
  Vector sum{};
  for (int i = 0; i < whole; i += kLanes) {
    const Vector w = weight(Load(scores + i));
    Store(probabilities + i, w);
    sum += w;
  }
  const Vector rest_weight = weight(rest);
  const float total = Sum(sum + rest_weight);
  const float share = 1.0F / total;
  const float log_total = __builtin_logf(total);

  const auto log_probability = [=](Vector score) __attribute__((always_inline)) {
    return score > All(kForbidden) ? (score - top) - log_total : All(kForbidden);
  };
  for (int i = 0; i < whole; i += kLanes) {
    Store(probabilities + i, Load(probabilities + i) * share);
    Store(log_probabilities + i, log_probability(Load(scores + i)));
  }
  StorePart(probabilities + whole, n - whole, rest_weight * share);
  StorePart(log_probabilities + whole, n - whole, log_probability(rest));
}

double SumOfSquares(size_t n, const float* x) {
  double total = 0;
  size_t i = 0;
  while (i < n) {  // Short chains of float, so that a long vector loses no digits.
    const size_t end = i + 64 * kLanes < n ? i + 64 * kLanes : n;
    Vector sum{};
    for (; i + kLanes <= end; i += kLanes) sum += Load(x + i) * Load(x + i);
    for (int lane = 0; lane < kLanes; ++lane) total += static_cast<double>(sum[lane]);
    for (; i < end; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  return total;
}

void Adam(size_t n, const AdamStep& step, const float* __restrict gradient, float* __restrict first,
          float* __restrict second, float* __restrict weights) {
  const AdamStep s = step;
  for (size_t i = 0; i < n; ++i) {
    const float g = gradient[i] * s.gradient_scale;
    first[i] = s.beta1 * first[i] + (1 - s.beta1) * g;
    second[i] = s.beta2 * second[i] + (1 - s.beta2) * g * g;
    weights[i] -= s.rate * first[i] / (__builtin_sqrtf(second[i] * s.second_scale) + s.epsilon);
  }
}

}  // namespace
}  // namespace rudderfish::nn
