// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/kernel.h"

// The loops behind nn/kernel.h, included by one .cc for each instruction set, which defines how many floats a register
// holds (RUDDERFISH_LANES) and how many rows of two registers the register file holds (RUDDERFISH_TILE_ROWS).
// GCC's vector extensions, which clang has too; no intrinsics.
// Everything has internal linkage and no standard header is included: see kernel.h.

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
constexpr int kTileRows = RUDDERFISH_TILE_ROWS;

typedef float Vector __attribute__((vector_size(kLanes * 4)));
typedef float UnalignedVector __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef int32_t Integers __attribute__((vector_size(kLanes * 4)));
typedef int32_t UnalignedIntegers __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef float Quad __attribute__((vector_size(16)));

RUDDERFISH_INLINE Vector Load(const float* p) { return *reinterpret_cast<const UnalignedVector*>(p); }
RUDDERFISH_INLINE void Store(float* p, Vector v) { *reinterpret_cast<UnalignedVector*>(p) = v; }
// x - 0 is x for every x, so compilers leave a broadcast alone; 0 + x is not (for -0) and costs an addition.
RUDDERFISH_INLINE Vector All(float x) { return x - Vector{}; }
RUDDERFISH_INLINE Vector Max(Vector a, Vector b) { return a > b ? a : b; }
RUDDERFISH_INLINE Vector Relu(Vector v) { return Max(Vector{}, v); }  // Of not-a-number: not a number.

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

// ---- Dense products -------------------------------------------------------------------------------------------------

// kRows x (kVectors * kLanes) elements of C stay in registers while k runs.
template <int kRows, int kVectors>
RUDDERFISH_INLINE void Tile(const Product& p, int row, int column) {
  const ptrdiff_t a_row = p.a_row, a_inner = p.a_inner, b_row = p.b_row, c_row = p.c_row;
  const float* __restrict b = p.b + column;
  float* __restrict c = p.c + row * c_row + column;

  // One load an element whatever it starts from: C, the bias over and over, or zeros over and over.
  alignas(64) static const float kZeros[kVectors * kLanes] = {};
  const float* start = p.initial == Initial::kKeep ? c : p.initial == Initial::kBias ? p.bias + column : kZeros;
  const ptrdiff_t start_row = p.initial == Initial::kKeep ? c_row : 0;
  Vector sum[kRows][kVectors];
  RUDDERFISH_UNROLL for (int i = 0; i < kRows; ++i) {
    RUDDERFISH_UNROLL for (int j = 0; j < kVectors; ++j) sum[i][j] = Load(start + j * kLanes);
    start += start_row;
  }

  // A pointer to every third row, because an address may be p, p + s or p + 2 s. The empty asm keeps the compiler from
  // making one pointer and twelve offsets of them, which do not fit the integer registers (a tenth of the speed).
  constexpr int kGroups = (kRows + 2) / 3;
  const float* a[kGroups];
  RUDDERFISH_UNROLL for (int g = 0; g < kGroups; ++g) {
    a[g] = p.a + (row + 3 * g) * a_row;
    asm("" : "+r"(a[g]));
  }
  RUDDERFISH_UNROLL_TWICE for (int k = p.k; k > 0; --k) {
    Vector right[kVectors];
    RUDDERFISH_UNROLL for (int j = 0; j < kVectors; ++j) right[j] = Load(b + j * kLanes);
    RUDDERFISH_UNROLL for (int i = 0; i < kRows; ++i) {
      const Vector left = All(a[i / 3][i % 3 * a_row]);
      RUDDERFISH_UNROLL for (int j = 0; j < kVectors; ++j) sum[i][j] += left * right[j];
    }
    RUDDERFISH_UNROLL for (int g = 0; g < kGroups; ++g) a[g] += a_inner;
    b += b_row;
  }

  if (p.activation == Activation::kRelu) {
    RUDDERFISH_UNROLL for (int i = 0; i < kRows; ++i) {
      RUDDERFISH_UNROLL for (int j = 0; j < kVectors; ++j) sum[i][j] = Relu(sum[i][j]);
    }
  }
  RUDDERFISH_UNROLL for (int i = 0; i < kRows; ++i) {
    RUDDERFISH_UNROLL for (int j = 0; j < kVectors; ++j) Store(c + j * kLanes, sum[i][j]);
    c += c_row;
  }
}

template <int kRows, int kVectors>
RUDDERFISH_INLINE void TileOf(int rows, const Product& p, int row, int column) {
  if (rows == kRows) {
    Tile<kRows, kVectors>(p, row, column);
  } else if constexpr (kRows > 1) {
    TileOf<kRows - 1, kVectors>(rows, p, row, column);
  }
}

// All rows of kVectors * kLanes columns. The last two tiles share what is left evenly, because a tile of few rows has
// too few independent chains to fill the multiply-add units.
template <int kVectors>
void Panel(const Product& p, int column) {
  int row = 0;
  for (; p.m - row >= 2 * kTileRows; row += kTileRows) Tile<kTileRows, kVectors>(p, row, column);
  if (p.m - row > kTileRows) {
    const int half = (p.m - row + 1) / 2;
    TileOf<kTileRows, kVectors>(half, p, row, column);
    row += half;
  }
  TileOf<kTileRows, kVectors>(p.m - row, p, row, column);
}

void Multiply(const Product& p) {
  int column = 0;
  for (; column + 2 * kLanes <= p.n; column += 2 * kLanes) Panel<2>(p, column);
  if (column < p.n) Panel<1>(p, column);
}

void Transpose(int rows, int columns, const float* a, float* t) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) t[ptrdiff_t{j} * rows + i] = a[ptrdiff_t{i} * columns + j];
  }
}

// ---- Sums over rows -------------------------------------------------------------------------------------------------

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

void WeightedColumnSums(int rows, int width, const float* weights, const float* x, ptrdiff_t x_row, float* out) {
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

// ---- Rows of other tables -------------------------------------------------------------------------------------------

void Gather(int rows, int hidden, const Ends* ends, const float* pairs, const float* workloads, const float* samples,
            float* out) {
  const ptrdiff_t width = hidden;
  for (int i = 0; i < rows; ++i) {
    const Ends end = ends[i];
    const float* from = pairs + end.from * 2 * width;
    const float* to = pairs + end.to * 2 * width + width;
    const float* workload = workloads + end.workload * width;
    const float* sample = samples + end.sample * width;
    for (int j = 0; j < hidden; j += kLanes) {
      Store(out + i * width + j, (Load(from + j) + Load(to + j)) + (Load(workload + j) + Load(sample + j)));
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

void Scatter(int rows, int hidden, const Ends* ends, const float* d, float* pairs, float* workloads) {
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
  for (int j = 0; j < width; j += kLanes) Store(target + j, Load(target + j) + Load(source + j) * weight);
}

void EdgesToA(int edges, const Edge* edge, int width, const float* source, ptrdiff_t source_row, float* target,
              ptrdiff_t target_row) {
  for (int i = 0; i < edges; ++i) {
    AddScaledRow(width, edge[i].weight, source + edge[i].b * source_row, target + edge[i].a * target_row);
  }
}

void EdgesToB(int edges, const Edge* edge, int width, const float* source, ptrdiff_t source_row, float* target,
              ptrdiff_t target_row) {
  for (int i = 0; i < edges; ++i) {
    AddScaledRow(width, edge[i].weight, source + edge[i].a * source_row, target + edge[i].b * target_row);
  }
}

// ---- Pooling --------------------------------------------------------------------------------------------------------

void Pool(int segments, const int32_t* begin, int width, const float* x, float* out, ptrdiff_t out_row,
          int32_t* argmax) {
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

void PoolReluBackward(int segments, const int32_t* begin, int width, const float* y, const float* dpool,
                      ptrdiff_t dpool_row, const int32_t* argmax, float* d) {
  for (int s = 0; s < segments; ++s) {
    const int rows = begin[s + 1] - begin[s];
    const ptrdiff_t first = ptrdiff_t{begin[s]} * width;
    const float share = rows > 0 ? 1.0F / static_cast<float>(rows) : 0.0F;
    for (int j = 0; j < width; j += kLanes) {
      const Vector dmean = Load(dpool + s * dpool_row + j) * share;
      const Vector dmax = Load(dpool + s * dpool_row + width + j);
      const Integers which = *reinterpret_cast<const UnalignedIntegers*>(argmax + ptrdiff_t{s} * width + j);
      for (int i = 0; i < rows; ++i) {
        const ptrdiff_t at = first + ptrdiff_t{i} * width + j;
        const Vector v = Load(d + at) + dmean + (which == Integers{} + i ? dmax : Vector{});
        Store(d + at, Load(y + at) > Vector{} ? v : Vector{});
      }
    }
  }
}

// ---- Scores ---------------------------------------------------------------------------------------------------------

RUDDERFISH_INLINE Quad Fold(Vector v) {
#if RUDDERFISH_LANES == 16
  typedef float Octet __attribute__((vector_size(32)));
  const Octet half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  return __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
#elif RUDDERFISH_LANES == 8
  return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
#else
  return v;
#endif
}

// The sums of four quads, one a lane: every lane adds its quad's floats in the same order.
RUDDERFISH_INLINE Quad SumQuads(Quad a, Quad b, Quad c, Quad d) {
  const Quad ab = __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
  const Quad cd = __builtin_shufflevector(c, d, 0, 1, 4, 5) + __builtin_shufflevector(c, d, 2, 3, 6, 7);
  return __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
}

void RowDots(int rows, float bias, int x_width, const float* x, const float* w, int z_width, const float* z,
             const float* v, float* out) {
  const auto partial = [=](int i) __attribute__((always_inline)) {
    if (i >= rows) return Quad{};
    Vector sum{}, more{};
    for (int j = 0; j < x_width; j += kLanes) sum += Load(x + ptrdiff_t{i} * x_width + j) * Load(w + j);
    if (z != nullptr) {
      for (int j = 0; j < z_width; j += kLanes) more += Load(z + ptrdiff_t{i} * z_width + j) * Load(v + j);
    }
    return Fold(sum + more);
  };
  for (int i = 0; i < rows; i += 4) {
    const Quad sums = SumQuads(partial(i), partial(i + 1), partial(i + 2), partial(i + 3)) + bias;
    for (int r = 0; r < 4 && i + r < rows; ++r) out[i + r] = sums[r];
  }
}

void DotReluBackward(int rows, int width, const float* p, const float* w, const float* q, const float* v,
                     const float* y, float* d) {
  for (int j = 0; j < width; j += kLanes) {
    const Vector first = Load(w + j), second = q != nullptr ? Load(v + j) : Vector{};
    for (int i = 0; i < rows; ++i) {
      const ptrdiff_t at = ptrdiff_t{i} * width + j;
      const Vector gradient = q != nullptr ? first * p[i] + second * q[i] : first * p[i];
      Store(d + at, Load(y + at) > Vector{} ? gradient : Vector{});
    }
  }
}

// ---- Exponentials ---------------------------------------------------------------------------------------------------

// exp(x) = 2^n exp(r), |r| <= ln 2 / 2, with ln 2 in two parts and the polynomial of Cephes' expf (S. L. Moshier);
// relative error below 2e-7. n is rounded through integers: the usual trick of adding and subtracting 1.5 * 2^23 is
// folded away by -ffast-math, which costs five digits and no test of the loss would notice.
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

// ---- Parameters -----------------------------------------------------------------------------------------------------

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

double Burn(int64_t rounds, float* sink) {
  constexpr int kChains = 12;  // More than latency times units of any core.
  const Vector factor = All(sink[0]), term = All(sink[1]);
  Vector chain[kChains];
  RUDDERFISH_UNROLL for (int i = 0; i < kChains; ++i) chain[i] = All(sink[0] * static_cast<float>(i));
  for (int64_t round = 0; round < rounds; ++round) {
    RUDDERFISH_UNROLL for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + term;
  }
  RUDDERFISH_UNROLL for (int i = 0; i < kChains; ++i) sink[2] += Sum(chain[i]);
  return 2.0 * kLanes * kChains * static_cast<double>(rounds);
}

constexpr Kernels MakeKernels(Isa isa, const char* name) {
  return {.isa = isa,
          .name = name,
          .multiply = Multiply,
          .transpose = Transpose,
          .column_sums = ColumnSums,
          .weighted_column_sums = WeightedColumnSums,
          .segment_sums = SegmentSums,
          .clear = Clear,
          .relu_backward = ReluBackward,
          .gather = Gather,
          .gather_samples = GatherSamples,
          .scatter = Scatter,
          .edges_to_a = EdgesToA,
          .edges_to_b = EdgesToB,
          .pool = Pool,
          .pool_relu_backward = PoolReluBackward,
          .row_dots = RowDots,
          .dot_relu_backward = DotReluBackward,
          .log_softmax = LogSoftmax,
          .exponentials = Exponentials,
          .sum_of_squares = SumOfSquares,
          .adam = Adam,
          .burn = Burn};
}

}  // namespace
}  // namespace rudderfish::nn
