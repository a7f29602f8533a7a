// SPDX-License-Identifier: Apache-2.0
#include "model/fragmentation.h"

#include <algorithm>

#include "base/check.h"

namespace rudderfish {

void PodShapes::Add(const Workload& workload, int64_t weight) {
  CHECK_GE(weight, 0);
  if (weight == 0) return;
  total_weight += weight;
  CHECK_LE(total_weight, kMaxWeight);
  const auto same = [&](const Shape& shape) {
    return shape.requests == workload.requests && shape.devices == workload.devices &&
           shape.node_kinds == workload.node_kinds;
  };
  const auto known = std::find_if(shapes.begin(), shapes.end(), same);
  if (known != shapes.end()) {
    known->weight += weight;
  } else {
    shapes.push_back({workload.requests, workload.devices, workload.node_kinds, weight});
  }
}

int64_t WeightedFragmentMillis(const PodShapes& shapes, Stranded stranded, KindId kind,
                               const Resources& free, const Devices& devices) {
  const bool counts_devices = stranded == Stranded::kDevices;
  const int64_t all = counts_devices ? devices.TotalFreeMillis() : free.cpu_millis;
  if (all <= 0) return 0;
  int64_t fragments = 0;
  for (const PodShapes::Shape& shape : shapes.shapes) {
    const bool runs = free.Fits(shape.requests) && Contains(shape.node_kinds, kind) &&
                      devices.Fits(shape.devices);
    if (!runs || (counts_devices && shape.devices.count == 0)) {
      fragments += shape.weight * all;
    } else if (counts_devices) {
      int64_t too_small = 0;
      for (const int16_t left : devices.free_millis)
        too_small += left < shape.devices.millis ? left : 0;
      fragments += shape.weight * too_small;
    }
  }
  return fragments;
}

}  // namespace rudderfish
