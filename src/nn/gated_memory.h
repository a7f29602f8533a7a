// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "nn/block.h"
#include "nn/encoder.h"
#include "nn/layers.h"

// A gated recurrent unit (K. Cho et al., "Learning phrase representations using RNN
// encoder-decoder", EMNLP 2014): what a network remembers from one question to the next. With x
// what it sees now, m what it remembers, sigma the logistic function and * by element:
//
//   z = sigma(x Wz + m Uz + bz)        r = sigma(x Wr + m Ur + br)
//   c = tanh(x Wc + (r * m) Uc + bc)   m' = (1 - z) * m + z * c
//
// `input` is [Wz, Wr, Wc], `recurrent` [Uz, Ur], `candidate` Uc, `bias` [bz, br, bc]. Internal to
// nn/.

namespace rudderfish::nn {

class GatedMemory {
 public:
  // What Backward reads again.
  struct Kept {
    float* before;  // [S][H]: m
    float* gates;   // [S][3H]: z, r, c
    float* reset;   // [S][H]: r * m
    float* after;   // [S][H]: m'
  };
  struct Scratch {
    float* dafter;  // [S][H]
    float* dgates;  // [S][3H], before their functions
    float* dreset;  // [S][H]
  };

  GatedMemory(int hidden, const Kernels& kernels, const DenseLayers& dense)
      : hidden_(hidden), kernels_(kernels), dense_(dense) {}

  Kept Carve(int rows, Carver* carver) const;
  Scratch CarveScratch(int rows, Carver* carver) const;

  // m' from x [S][H] and kept.before.
  void Forward(int rows, const float* x, const float* weights, const GatedMemoryOffsets& at,
               const Kept& kept) const;

  size_t TransposeFloats() const { return 6 * Floats(hidden_, hidden_); }
  void Transpose(const float* weights, const GatedMemoryOffsets& at, float* transposes) const;

  // From scratch.dafter, the gradient by m': adds to `dx` and to the parameters', sets `dbefore`
  // [S][H] to that by m.
  void Backward(int rows, const float* x, const float* transposes, const GatedMemoryOffsets& at,
                const Kept& kept, const Scratch& scratch, float* dx, float* dbefore,
                float* gradient) const;

 private:
  int hidden_;
  const Kernels& kernels_;
  const DenseLayers& dense_;
};

}  // namespace rudderfish::nn
