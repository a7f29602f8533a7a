// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/kernel_product.h"
#include "nn/kernel_rows.h"
#include "nn/kernel_scores.h"

// The table of one instruction set, included by its .cc.

namespace rudderfish::nn {
namespace {

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
