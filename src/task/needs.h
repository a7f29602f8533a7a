// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <vector>

#include "base/quad.h"
#include "cluster/resources.h"

// What pods of some workloads ask for, to be held against what a node has free: four workloads at a
// time, without a branch, as who fits where is as good as random.

namespace rudderfish {

// Free resources, in whole numbers that doubles hold exactly: those can be compared two at a time.
struct Room {
  double cpu = 0;     // Milli-cores.
  double memory = 0;  // Bytes.

  friend Room operator+(const Room& a, const Room& b) {
    return {a.cpu + b.cpu, a.memory + b.memory};
  }
  friend Room operator-(const Room& a, const Room& b) {
    return {a.cpu - b.cpu, a.memory - b.memory};
  }
};

inline Room RoomOf(const Resources& free) {
  return {static_cast<double>(free.cpu_millis), static_cast<double>(free.memory_bytes)};
}

class Needs {
 public:
  void Clear() {
    count_ = 0;
    cpu_.clear();
    memory_.clear();
  }

  void Add(const Resources& requests) {
    const Room need = RoomOf(requests);
    const auto filled = static_cast<size_t>(RoundUpToQuads(++count_));
    // The entries that pad the row fit nowhere.
    cpu_.resize(filled, kNeverFits);
    memory_.resize(filled, kNeverFits);
    cpu_[count_ - 1] = need.cpu;
    memory_[count_ - 1] = need.memory;
  }

  // Of them and the entries that pad the row: a multiple of kQuad.
  int stride() const { return static_cast<int>(cpu_.size()); }

  // Of [first, first + kQuad): who fits.
  MaskQuad Fitting(const Room& room, int first) const {
    const double *cpu = cpu_.data() + first, *memory = memory_.data() + first;
    const MaskQuad a = AtMost(cpu, room.cpu) & AtMost(memory, room.memory);
    const MaskQuad b = AtMost(cpu + 2, room.cpu) & AtMost(memory + 2, room.memory);
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
  }

 private:
  using DoublePair = double __attribute__((vector_size(2 * sizeof(double)), aligned(8)));
  static constexpr double kNeverFits = 1e300;  // More of a resource than there is.

  // Which of two numbers are; a comparison of two doubles gives each twice.
  static MaskQuad AtMost(const double* pair, double limit) {
    return std::bit_cast<MaskQuad>(*reinterpret_cast<const DoublePair*>(pair) <=
                                   DoublePair{limit, limit});
  }

  int count_ = 0;
  std::vector<double> cpu_, memory_;
};

}  // namespace rudderfish
