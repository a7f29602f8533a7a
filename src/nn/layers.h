// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "nn/kernel.h"
#include "nn/workspace.h"

// A dense layer Y[M][N] = activation(X[M][K] W[K][N] + b[N]), forward and backward, over the
// kernels. Gradients are added, never set. The other layers of a CandidateNet (pooling, messages,
// gather) are kernels themselves.

namespace rudderfish::nn {

// M rows of floats; `row` is the distance of two rows, at least their width.
struct Rows {
  const float* at = nullptr;
  ptrdiff_t row = 0;
};

struct MutableRows {
  float* at = nullptr;
  ptrdiff_t row = 0;

  operator Rows() const { return {at, row}; }  // NOLINT: a view of the same rows.
};

struct DenseShape {
  int inputs = 0;   // K
  int outputs = 0;  // N
};

class DenseLayers {
 public:
  DenseLayers(const Kernels& kernels, DenseProfile* profile)
      : kernels_(kernels), profile_(profile) {}

  // Y[m][N] = activation(X[m][K] W[K][N] + bias[N]).
  void Forward(int m, DenseShape shape, Rows x, const float* weight, const float* bias,
               Activation activation, MutableRows y) const {
    Multiply({.m = m,
              .n = shape.outputs,
              .k = shape.inputs,
              .a = x.at,
              .a_row = x.row,
              .b = weight,
              .b_row = shape.outputs,
              .c = y.at,
              .c_row = y.row,
              .bias = bias,
              .initial = bias != nullptr ? Initial::kBias : Initial::kZero,
              .activation = activation});
  }

  // Y[m][N] = activation(Y[m][N] + X[m][K] W[K][N]).
  void ForwardOnto(int m, DenseShape shape, Rows x, const float* weight, Activation activation,
                   MutableRows y) const {
    Multiply({.m = m,
              .n = shape.outputs,
              .k = shape.inputs,
              .a = x.at,
              .a_row = x.row,
              .b = weight,
              .b_row = shape.outputs,
              .c = y.at,
              .c_row = y.row,
              .initial = Initial::kKeep,
              .activation = activation});
  }

  // dW[K][N] += X[m][K]ᵀ dY[m][N].
  void WeightGradient(int m, DenseShape shape, Rows x, Rows dy, float* dweight) const {
    Multiply({.m = shape.inputs,
              .n = shape.outputs,
              .k = m,
              .a = x.at,
              .a_row = 1,
              .a_inner = x.row,
              .b = dy.at,
              .b_row = dy.row,
              .c = dweight,
              .c_row = shape.outputs,
              .initial = Initial::kKeep});
  }

  // db[N] += the sum of dY's rows.
  void BiasGradient(int m, DenseShape shape, Rows dy, float* dbias) const {
    kernels_.column_sums(m, shape.outputs, dy.at, dy.row, dbias);
  }

  // dX[m][K] = initial + dY[m][N] Wᵀ[N][K]; `transposed` is Wᵀ, dense. REQUIRES: K a multiple
  // of 16.
  void InputGradient(int m, DenseShape shape, Rows dy, const float* transposed, Initial initial,
                     MutableRows dx) const {
    Multiply({.m = m,
              .n = shape.inputs,
              .k = shape.outputs,
              .a = dy.at,
              .a_row = dy.row,
              .b = transposed,
              .b_row = shape.inputs,
              .c = dx.at,
              .c_row = dx.row,
              .initial = initial});
  }

 private:
  void Multiply(const Product& product) const {
    if (profile_->state == DenseProfile::State::kOff) {
      kernels_.multiply(product);
      return;
    }
    const Instant start = SystemClock().Now();
    kernels_.multiply(product);
    profile_->seconds += Seconds(SystemClock().Now() - start);
    profile_->flops += 2.0 * product.m * product.n * product.k;
  }

  const Kernels& kernels_;
  DenseProfile* profile_;
};

}  // namespace rudderfish::nn
