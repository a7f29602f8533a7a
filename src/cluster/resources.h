// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Compute resources in the integers Kubernetes counts in: milli-cores and bytes. Text and fractions
// are parsed at the edge (scenario/, kube/), with the rounding of the system they come from.

namespace rudderfish {

struct Resources {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;

  // Whether `request` fits into this much free room.
  bool Fits(const Resources& request) const {
    return (cpu_millis >= request.cpu_millis) & (memory_bytes >= request.memory_bytes);
  }
  Resources& operator+=(const Resources& other) {
    cpu_millis += other.cpu_millis;
    memory_bytes += other.memory_bytes;
    return *this;
  }
  Resources& operator-=(const Resources& other) {
    cpu_millis -= other.cpu_millis;
    memory_bytes -= other.memory_bytes;
    return *this;
  }
  friend Resources operator+(Resources a, const Resources& b) { return a += b; }
  friend Resources operator-(Resources a, const Resources& b) { return a -= b; }
  bool operator==(const Resources&) const = default;
};

inline constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

}  // namespace rudderfish
