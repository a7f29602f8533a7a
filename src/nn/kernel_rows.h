// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/kernel_vector.h"

// Kernels that move, add and pool whole rows.

namespace rudderfish::nn {
namespace {

void ColumnSums(int rows, int width, const float* x, ptrdiff_t x_row, float* out) {
  for (int j = 0; j < width; j += kLanes) {
    Vector even = Load(out + j), odd{};
    int i = 0;
    for (; i + 2 <= rows; i += 2) {
      even += Load(x + i * x_row + j);
      odd += Load(x + (i + 1) * x_row + j);
    }
    if (i < rows) even += Load(x + i * x_row + j);
    Store(out + j, even + odd);
  }
}

void WeightedColumnSums(int rows, int width, const float* weights, const float* x, ptrdiff_t x_row,
                        float* out) {
  for (int j = 0; j < width; j += kLanes) {
    Vector even = Load(out + j), odd{};
    int i = 0;
    for (; i + 2 <= rows; i += 2) {
      even += Load(x + i * x_row + j) * weights[i];
      odd += Load(x + (i + 1) * x_row + j) * weights[i + 1];
    }
    if (i < rows) even += Load(x + i * x_row + j) * weights[i];
    Store(out + j, even + odd);
  }
}

void SegmentSums(int segments, const int32_t* begin, int width, const float* x, float* out) {
  for (int s = 0; s < segments; ++s) {
    for (int j = 0; j < width; j += kLanes) {
      Vector sum{};
      for (int i = begin[s]; i < begin[s + 1]; ++i) sum += Load(x + ptrdiff_t{i} * width + j);
      Store(out + ptrdiff_t{s} * width + j, sum);
    }
  }
}

void Clear(int rows, int width, float* out, ptrdiff_t out_row) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < width; j += kLanes) {
      Store(out + i * out_row + j, Vector{});
      asm("" : : : "memory");  // Two stores a row, which the compiler would make a call of memset.
    }
  }
}

void ReluBackward(int rows, int width, const float* y, ptrdiff_t y_row, float* d, ptrdiff_t d_row) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < width; j += kLanes) {
      float* at = d + i * d_row + j;
      Store(at, Load(y + i * y_row + j) > Vector{} ? Load(at) : Vector{});
    }
  }
}

void Gather(int rows, int hidden, const Ends* ends, const float* pairs, const float* workloads,
            const float* samples, float* out) {
  const ptrdiff_t width = hidden;
  for (int i = 0; i < rows; ++i) {
    const Ends end = ends[i];
    const float* from = pairs + end.from * 2 * width;
    const float* to = pairs + end.to * 2 * width + width;
    const float* workload = workloads + end.workload * width;
    const float* sample = samples + end.sample * width;
    for (int j = 0; j < hidden; j += kLanes) {
      Store(out + i * width + j,
            (Load(from + j) + Load(to + j)) + (Load(workload + j) + Load(sample + j)));
    }
  }
}

void GatherSamples(int rows, int hidden, const Ends* ends, const float* samples, float* out) {
  const ptrdiff_t width = hidden;
  for (int i = 0; i < rows; ++i) {
    const float* sample = samples + ends[i].sample * width;
    for (int j = 0; j < hidden; j += kLanes) Store(out + i * width + j, Load(sample + j));
  }
}

void Scatter(int rows, int hidden, const Ends* ends, const float* d, float* pairs,
             float* workloads) {
  const ptrdiff_t width = hidden;
  for (int i = 0; i < rows; ++i) {
    const Ends end = ends[i];
    float* from = pairs + end.from * 2 * width;
    float* to = pairs + end.to * 2 * width + width;
    float* workload = workloads + end.workload * width;
    for (int j = 0; j < hidden; j += kLanes) {
      const Vector v = Load(d + i * width + j);
      Store(from + j, Load(from + j) + v);
      Store(to + j, Load(to + j) + v);
      Store(workload + j, Load(workload + j) + v);
    }
  }
}

RUDDERFISH_INLINE void AddScaledRow(int width, float weight, const float* source, float* target) {
  for (int j = 0; j < width; j += kLanes)
    Store(target + j, Load(target + j) + Load(source + j) * weight);
}

void EdgesToA(int edges, const Edge* edge, int width, const float* source, ptrdiff_t source_row,
              float* target, ptrdiff_t target_row) {
  for (int i = 0; i < edges; ++i) {
    AddScaledRow(width, edge[i].weight, source + edge[i].b * source_row,
                 target + edge[i].a * target_row);
  }
}

void EdgesToB(int edges, const Edge* edge, int width, const float* source, ptrdiff_t source_row,
              float* target, ptrdiff_t target_row) {
  for (int i = 0; i < edges; ++i) {
    AddScaledRow(width, edge[i].weight, source + edge[i].a * source_row,
                 target + edge[i].b * target_row);
  }
}

void Pool(int segments, const int32_t* begin, int width, const float* x, float* out,
          ptrdiff_t out_row, int32_t* argmax) {
  for (int s = 0; s < segments; ++s) {
    const int rows = begin[s + 1] - begin[s];
    const float* first = x + ptrdiff_t{begin[s]} * width;
    const float share = rows > 0 ? 1.0F / static_cast<float>(rows) : 0.0F;
    for (int j = 0; j < width; j += kLanes) {
      Vector sum = rows > 0 ? Load(first + j) : Vector{};
      Vector largest = sum;
      Integers which{};
      for (int i = 1; i < rows; ++i) {
        const Vector v = Load(first + ptrdiff_t{i} * width + j);
        const Integers above = v > largest;
        sum += v;
        largest = above ? v : largest;
        which = above ? Integers{} + i : which;
      }
      Store(out + s * out_row + j, sum * share);
      Store(out + s * out_row + width + j, largest);
      *reinterpret_cast<UnalignedIntegers*>(argmax + ptrdiff_t{s} * width + j) = which;
    }
  }
}

void PoolReluBackward(int segments, const int32_t* begin, int width, const float* y,
                      const float* dpool, ptrdiff_t dpool_row, const int32_t* argmax, float* d) {
  for (int s = 0; s < segments; ++s) {
    const int rows = begin[s + 1] - begin[s];
    const ptrdiff_t first = ptrdiff_t{begin[s]} * width;
    const float share = rows > 0 ? 1.0F / static_cast<float>(rows) : 0.0F;
    for (int j = 0; j < width; j += kLanes) {
      const Vector dmean = Load(dpool + s * dpool_row + j) * share;
      const Vector dmax = Load(dpool + s * dpool_row + width + j);
      const Integers which =
          *reinterpret_cast<const UnalignedIntegers*>(argmax + ptrdiff_t{s} * width + j);
      for (int i = 0; i < rows; ++i) {
        const ptrdiff_t at = first + ptrdiff_t{i} * width + j;
        const Vector v = Load(d + at) + dmean + (which == Integers{} + i ? dmax : Vector{});
        Store(d + at, Load(y + at) > Vector{} ? v : Vector{});
      }
    }
  }
}

}  // namespace
}  // namespace rudderfish::nn
