// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The inner loops of the networks, compiled once for each instruction set and chosen at start. All
// matrices are row-major float32 with a row stride in floats; widths and N are multiples of 16, row
// counts and K are any.
//
// Every element of a product is one chain over k = 0, 1, ... in that order, whatever M is and
// wherever its row lies: what a row yields never depends on what else is in the batch, to the bit.
// Instruction sets agree to rounding only.
//
// The kernel_*.cc files are compiled with flags that not every machine has. This header must
// therefore stay free of inline code, of the standard library's too: the linker keeps one copy of
// an inline function, and it could be theirs. Everything here may be called by any thread.

namespace rudderfish::nn {

enum class Isa { kPortable, kAvx2, kAvx512 };

enum class Initial {
  kZero,
  kKeep,
  kBias
};  // What a product adds to: nothing, C itself, one row for all rows.
enum class Activation { kNone, kRelu };

// C[M][N] = activation(initial + A[M][K] · B[K][N]). A is read as a[m * a_row + k * a_inner], so
// that Aᵀ is the same memory with the strides exchanged.
struct Product {
  int m = 0;
  int n = 0;
  int k = 0;
  const float* a = nullptr;
  ptrdiff_t a_row = 0;
  ptrdiff_t a_inner = 1;
  const float* b = nullptr;
  ptrdiff_t b_row = 0;
  float* c = nullptr;
  ptrdiff_t c_row = 0;
  const float* bias = nullptr;  // [N], read for Initial::kBias.
  Initial initial = Initial::kZero;
  Activation activation = Activation::kNone;
};

// Rows of other tables that a candidate joins.
struct Ends {
  int32_t from = 0;
  int32_t to = 0;
  int32_t workload = 0;
  int32_t sample = 0;
};

struct Edge {
  int32_t a = 0;
  int32_t b = 0;
  float weight = 0;
};

struct AdamStep {
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float gradient_scale = 1;  // Of clipping.
  float rate = 0;            // Learning rate / (1 - beta1^t).
  float second_scale = 1;    // 1 / (1 - beta2^t).
};

// `begin` has segments + 1 entries; segment s is the rows [begin[s], begin[s + 1]). Empty segments
// are fine.
struct Kernels {
  Isa isa;
  const char* name;

  void (*multiply)(const Product& product);
  // t[columns][rows] = aᵀ, both dense.
  void (*transpose)(int rows, int columns, const float* a, float* t);

  // out[width] += the sum of the rows; the weighted one multiplies row i by weights[i].
  void (*column_sums)(int rows, int width, const float* x, ptrdiff_t x_row, float* out);
  void (*weighted_column_sums)(int rows, int width, const float* weights, const float* x,
                               ptrdiff_t x_row, float* out);
  // out[s] = the sum of segment s.
  void (*segment_sums)(int segments, const int32_t* begin, int width, const float* x, float* out);

  void (*clear)(int rows, int width, float* out, ptrdiff_t out_row);
  // d = y > 0 ? d : 0, for y the output of a ReLU.
  void (*relu_backward)(int rows, int width, const float* y, ptrdiff_t y_row, float* d,
                        ptrdiff_t d_row);

  // out[i] = pairs[from][0:H] + pairs[to][H:2H] + workloads[workload] + samples[sample], for
  // candidate i.
  void (*gather)(int rows, int hidden, const Ends* ends, const float* pairs, const float* workloads,
                 const float* samples, float* out);
  // out[i] = samples[sample].
  void (*gather_samples)(int rows, int hidden, const Ends* ends, const float* samples, float* out);
  // The reverse of gather: adds d[i] to the rows it came from (not to samples: those are
  // segment_sums).
  void (*scatter)(int rows, int hidden, const Ends* ends, const float* d, float* pairs,
                  float* workloads);

  // target[edge.a] += weight * source[edge.b]; and the other way round.
  void (*edges_to_a)(int edges, const Edge* edge, int width, const float* source,
                     ptrdiff_t source_row, float* target, ptrdiff_t target_row);
  void (*edges_to_b)(int edges, const Edge* edge, int width, const float* source,
                     ptrdiff_t source_row, float* target, ptrdiff_t target_row);

  // out[s] = [mean, max] (2 · width floats) of segment s, 0 of an empty one; argmax[s][width]: the
  // row, counted from the segment's first, that holds the maximum, the first of equals.
  void (*pool)(int segments, const int32_t* begin, int width, const float* x, float* out,
               ptrdiff_t out_row, int32_t* argmax);
  // d += what `dpool` ([mean, max] a segment) means for the rows, then 0 where y, the rows that
  // were pooled, is not above 0: pooling and the ReLU before it in one pass.
  void (*pool_relu_backward)(int segments, const int32_t* begin, int width, const float* y,
                             const float* dpool, ptrdiff_t dpool_row, const int32_t* argmax,
                             float* d);

  // out[i] = bias + x[i]·w + z[i]·v; z may be null.
  void (*row_dots)(int rows, float bias, int x_width, const float* x, const float* w, int z_width,
                   const float* z, const float* v, float* out);
  // d[i] = y[i] > 0 ? p[i] * w + q[i] * v : 0, the gradient of relu(...)·w and relu(...)·v; q may
  // be null.
  void (*dot_relu_backward)(int rows, int width, const float* p, const float* w, const float* q,
                            const float* v, const float* y, float* d);

  // One row of alternatives: log-probabilities and probabilities of n scores. Scores at or below
  // kForbidden get kForbidden and 0; at least one must be above.
  void (*log_softmax)(int n, const float* scores, float* log_probabilities, float* probabilities);
  void (*exponentials)(int n, const float* x, float* out);

  double (*sum_of_squares)(size_t n, const float* x);
  void (*adam)(size_t n, const AdamStep& step, const float* gradient, float* first, float* second,
               float* weights);

  // Runs that many rounds of independent multiply-adds in registers; returns how many
  // floating-point operations.
  double (*burn)(int64_t rounds, float* sink);
};

// The score and log-probability of an alternative that may not be chosen. Finite, so that 0 times
// it is 0.
inline constexpr float kForbidden = -1e30F;

bool IsSupported(Isa isa);  // By this machine.

// REQUIRES: IsSupported(isa).
const Kernels& SelectKernels(Isa isa);
const Kernels& BestKernels();

// What this core can do at most, from multiply-adds that stay in registers: the best of `slices`
// slices of about a millisecond, because neighbours can only make a slice slower.
double MeasureFmaPeakGflops(const Kernels& kernels = BestKernels(), int slices = 50);

}  // namespace rudderfish::nn
