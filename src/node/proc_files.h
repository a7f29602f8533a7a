// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What Linux says of a machine in /proc, as proc(5) has it. Values count from the start of the
// machine unless said otherwise. Text that is not of the form is an error; lines of a kind that is
// not needed are left out.

namespace rudderfish {

struct CpuTimes {
  int64_t busy_ticks = 0;   // All but idle and waiting for a disk.
  int64_t total_ticks = 0;  // Of all cores together.
  int cores = 0;

  bool operator==(const CpuTimes&) const = default;
};
Result<CpuTimes> ParseProcStat(std::string_view text);

struct MemoryAmounts {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;  // Now; what can be had without swapping.

  bool operator==(const MemoryAmounts&) const = default;
};
Result<MemoryAmounts> ParseProcMeminfo(std::string_view text);

// A network interface or a disk, and the bytes of both directions.
struct DeviceBytes {
  std::string name;
  uint64_t in = 0;   // Received, or read.
  uint64_t out = 0;  // Transmitted, or written.

  bool operator==(const DeviceBytes&) const = default;
};
Result<std::vector<DeviceBytes>> ParseProcNetDev(std::string_view text);
Result<std::vector<DeviceBytes>> ParseProcDiskstats(std::string_view text);

}  // namespace rudderfish
