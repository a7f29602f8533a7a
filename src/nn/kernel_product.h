// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/kernel_vector.h"

// The dense product, a tile of registers at a time. RUDDERFISH_TILE_ROWS is how many rows of two
// registers the register file holds beside their operands.

namespace rudderfish::nn {
namespace {

constexpr int kTileRows = RUDDERFISH_TILE_ROWS;

// kRows x (kVectors * kLanes) elements of C stay in registers while k runs.
template <int kRows, int kVectors>
RUDDERFISH_INLINE void Tile(const Product& p, int row, int column) {
  const ptrdiff_t a_row = p.a_row, a_inner = p.a_inner, b_row = p.b_row, c_row = p.c_row;
  const float* __restrict b = p.b + column;
  float* __restrict c = p.c + row * c_row + column;

  // One load an element whatever it starts from: C, the bias over and over, or zeros over and over.
  alignas(64) static const float kZeros[kVectors * kLanes] = {};
  const float* start = p.initial == Initial::kKeep   ? c
                       : p.initial == Initial::kBias ? p.bias + column
                                                     : kZeros;
  const ptrdiff_t start_row = p.initial == Initial::kKeep ? c_row : 0;
  Vector sum[kRows][kVectors];
  RUDDERFISH_UNROLL for (int i = 0; i < kRows; ++i) {
    RUDDERFISH_UNROLL for (int j = 0; j < kVectors; ++j) sum[i][j] = Load(start + j * kLanes);
    start += start_row;
  }

  // A pointer to every third row, because an address may be p, p + s or p + 2 s. The empty asm
  // keeps the compiler from making one pointer and twelve offsets of them, which do not fit the
  // integer registers (a tenth of the speed).
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

// All rows of kVectors * kLanes columns. The last two tiles share what is left evenly, because a
// tile of few rows has too few independent chains to fill the multiply-add units.
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

double Burn(int64_t rounds, float* sink) {
  constexpr int kChains = 12;  // More than latency times units of any core.
  const Vector factor = All(sink[0]), term = All(sink[1]);
  Vector chain[kChains];
  RUDDERFISH_UNROLL for (int i = 0; i < kChains; ++i) chain[i] =
      All(sink[0] * static_cast<float>(i));
  for (int64_t round = 0; round < rounds; ++round) {
    RUDDERFISH_UNROLL for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + term;
  }
  RUDDERFISH_UNROLL for (int i = 0; i < kChains; ++i) sink[2] += Sum(chain[i]);
  return 2.0 * kLanes * kChains * static_cast<double>(rounds);
}

}  // namespace
}  // namespace rudderfish::nn
