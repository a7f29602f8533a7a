// SPDX-License-Identifier: Apache-2.0
#include "nn/gated_memory.h"

#include <cmath>

namespace rudderfish::nn {
namespace {

float Logistic(float x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

GatedMemory::Kept GatedMemory::Carve(int rows, Carver* carver) const {
  return {.before = carver->Take<float>(Floats(rows, hidden_)),
          .gates = carver->Take<float>(Floats(rows, 3 * hidden_)),
          .reset = carver->Take<float>(Floats(rows, hidden_)),
          .after = carver->Take<float>(Floats(rows, hidden_))};
}

GatedMemory::Scratch GatedMemory::CarveScratch(int rows, Carver* carver) const {
  return {.dafter = carver->Take<float>(Floats(rows, hidden_)),
          .dgates = carver->Take<float>(Floats(rows, 3 * hidden_)),
          .dreset = carver->Take<float>(Floats(rows, hidden_))};
}

void GatedMemory::Forward(int rows, const float* x, const float* weights,
                          const GatedMemoryOffsets& at, const Kept& kept) const {
  const int h = hidden_;
  dense_.Forward(rows, {h, 3 * h}, {x, h}, weights + at.input, weights + at.bias, Activation::kNone,
                 {kept.gates, 3 * h});
  dense_.ForwardOnto(rows, {h, 2 * h}, {kept.before, h}, weights + at.recurrent, Activation::kNone,
                     {kept.gates, 3 * h});
  for (int i = 0; i < rows; ++i) {
    float* gates = kept.gates + Floats(i, 3 * h);
    for (int j = 0; j < 2 * h; ++j) gates[j] = Logistic(gates[j]);
    for (int j = 0; j < h; ++j)
      kept.reset[Floats(i, h) + j] = gates[h + j] * kept.before[Floats(i, h) + j];
  }
  dense_.ForwardOnto(rows, {h, h}, {kept.reset, h}, weights + at.candidate, Activation::kNone,
                     {kept.gates + 2 * h, 3 * h});
  for (int i = 0; i < rows; ++i) {
    float* gates = kept.gates + Floats(i, 3 * h);
    const float* before = kept.before + Floats(i, h);
    for (int j = 0; j < h; ++j) {
      gates[2 * h + j] = std::tanh(gates[2 * h + j]);
      kept.after[Floats(i, h) + j] = (1 - gates[j]) * before[j] + gates[j] * gates[2 * h + j];
    }
  }
}

void GatedMemory::Transpose(const float* weights, const GatedMemoryOffsets& at,
                            float* transposes) const {
  const int h = hidden_;
  kernels_.transpose(h, 3 * h, weights + at.input, transposes);
  kernels_.transpose(h, 2 * h, weights + at.recurrent, transposes + 3 * Floats(h, h));
  kernels_.transpose(h, h, weights + at.candidate, transposes + 5 * Floats(h, h));
}

void GatedMemory::Backward(int rows, const float* x, const float* transposes,
                           const GatedMemoryOffsets& at, const Kept& kept, const Scratch& scratch,
                           float* dx, float* dbefore, float* gradient) const {
  const int h = hidden_;
  for (int i = 0; i < rows; ++i) {
    const float *gates = kept.gates + Floats(i, 3 * h), *before = kept.before + Floats(i, h);
    const float* dafter = scratch.dafter + Floats(i, h);
    float *dgates = scratch.dgates + Floats(i, 3 * h), *dm = dbefore + Floats(i, h);
    for (int j = 0; j < h; ++j) {
      const float z = gates[j], c = gates[2 * h + j];
      dgates[j] = dafter[j] * (c - before[j]) * z * (1 - z);
      dgates[2 * h + j] = dafter[j] * z * (1 - c * c);
      dm[j] = dafter[j] * (1 - z);
    }
  }
  dense_.InputGradient(rows, {h, h}, {scratch.dgates + 2 * h, 3 * h}, transposes + 5 * Floats(h, h),
                       Initial::kZero, {scratch.dreset, h});
  for (int i = 0; i < rows; ++i) {
    const float *gates = kept.gates + Floats(i, 3 * h), *before = kept.before + Floats(i, h);
    const float* dreset = scratch.dreset + Floats(i, h);
    float *dgates = scratch.dgates + Floats(i, 3 * h), *dm = dbefore + Floats(i, h);
    for (int j = 0; j < h; ++j) {
      const float r = gates[h + j];
      dgates[h + j] = dreset[j] * before[j] * r * (1 - r);
      dm[j] += dreset[j] * r;
    }
  }
  const Rows dgates{scratch.dgates, 3 * h};
  dense_.WeightGradient(rows, {h, 3 * h}, {x, h}, dgates, gradient + at.input);
  dense_.BiasGradient(rows, {h, 3 * h}, dgates, gradient + at.bias);
  dense_.WeightGradient(rows, {h, 2 * h}, {kept.before, h}, dgates, gradient + at.recurrent);
  dense_.WeightGradient(rows, {h, h}, {kept.reset, h}, {scratch.dgates + 2 * h, 3 * h},
                        gradient + at.candidate);
  dense_.InputGradient(rows, {h, 3 * h}, dgates, transposes, Initial::kKeep, {dx, h});
  dense_.InputGradient(rows, {h, 2 * h}, dgates, transposes + 3 * Floats(h, h), Initial::kKeep,
                       {dbefore, h});
}

}  // namespace rudderfish::nn
