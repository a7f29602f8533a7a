// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

// Devices of a node, GPUs, of which a pod takes whole ones or a share of one: counted in
// thousandths of a device, because what is free on two half-used GPUs is not one free GPU.
// Kubernetes' extended resource `nvidia.com/gpu: 2` is a request of {2, 1000}; a share of 0.46 GPU
// is {1, 460}.
//
// Plain values of a node's column (State::nodes.devices) and of a workload; nothing here allocates.

namespace rudderfish {

inline constexpr int kMaxDevices = 8;  // Of one node.
inline constexpr int kDeviceMillis = 1000;

struct DeviceRequest {
  int16_t count = 0;   // Different devices of one node; 0 asks for none.
  int16_t millis = 0;  // Of each, 1 to 1000; 1000 where several are asked for.

  int total_millis() const { return count * millis; }
  bool operator==(const DeviceRequest&) const = default;
};

using DeviceSet = uint8_t;  // One bit a device.

struct Devices {
  int8_t count = 0;
  std::array<int16_t, kMaxDevices> free_millis{};  // [device], 0 beyond count.

  static Devices Of(int count) {
    Devices devices{.count = static_cast<int8_t>(count)};
    for (int i = 0; i < count; ++i) devices.free_millis[i] = kDeviceMillis;
    return devices;
  }

  int total_millis() const { return count * kDeviceMillis; }
  int TotalFreeMillis() const {
    int sum = 0;
    for (const int16_t free : free_millis) sum += free;
    return sum;
  }

  bool Fits(const DeviceRequest& request) const {
    if (request.count == 0) return true;
    int fitting = 0;
    for (const int16_t free : free_millis) fitting += free >= request.millis ? 1 : 0;
    return fitting >= request.count;
  }

  // Those with the least left of which the request can be served (best fit), the first of equals;
  // none if it does not fit or asks for none.
  DeviceSet Pick(const DeviceRequest& request) const {
    DeviceSet picked = 0;
    for (int taken = 0; taken < request.count; ++taken) {
      int best = -1;
      for (int i = 0; i < count; ++i) {
        const bool fits = free_millis[i] >= request.millis && (picked >> i & 1) == 0;
        if (fits && (best < 0 || free_millis[i] < free_millis[best])) best = i;
      }
      if (best < 0) return 0;
      picked = static_cast<DeviceSet>(picked | 1U << best);
    }
    return picked;
  }

  void Take(DeviceSet set, int millis) {
    for (int i = 0; i < kMaxDevices; ++i)
      free_millis[i] = static_cast<int16_t>(free_millis[i] - ((set >> i & 1) != 0 ? millis : 0));
  }
  void GiveBack(DeviceSet set, int millis) { Take(set, -millis); }

  bool operator==(const Devices&) const = default;
};

}  // namespace rudderfish
