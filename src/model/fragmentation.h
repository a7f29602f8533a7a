// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/state.h"

// How much of what is free on a node is of no use to the pods that will come: the expected
// fragmentation over a distribution of pod shapes M of
//   Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
//   Gradient Descent", USENIX ATC 2023:
//
//   F_n(M) = sum over shapes m of p_m * F_n(m)
//   F_n(m) = all that is free of n's devices       if m cannot run on n or asks for no device
//          = what is free of devices too small for m otherwise
//
// In a world without devices we count CPU in their place: all that is free of it if m cannot run on
// n, else none. Pure functions; integers, so that sums over nodes are exact.

namespace rudderfish {

// Shapes of pods and how many of the workload's pods have them; equal shapes are one.
struct PodShapes {
  struct Shape {
    Resources requests;
    DeviceRequest devices;
    NodeKindSet node_kinds = kAnyKind;
    int64_t weight = 1;

    bool operator==(const Shape&) const = default;
  };
  std::vector<Shape> shapes;
  int64_t total_weight = 0;

  bool operator==(const PodShapes&) const = default;

  // REQUIRES: weight >= 0; one of 0 adds nothing. At most kMaxWeight in all.
  void Add(const Workload& workload, int64_t weight);
  static constexpr int64_t kMaxWeight = 1'000'000;
};

// What is measured: devices in a world that has any, else CPU.
enum class Stranded { kDevices, kCpu };

// Of one node, times total_weight: thousandths of devices, or milli-cores.
int64_t WeightedFragmentMillis(const PodShapes& shapes, Stranded stranded, KindId kind,
                               const Resources& free, const Devices& devices);

}  // namespace rudderfish
