// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/proc_files.h"

// What a node has used since its start, read from /proc and /sys, or from where a container has
// those of its host. Nothing here needs root.
//
// Each byte counts once. Network: interfaces with a device behind them, so that neither lo nor the
// bridges, tunnels and virtual pairs of pods count; in a network namespace without such interfaces
// all but lo, bridges and their ports. Disks: those with a device behind them, not their
// partitions, nor what is stacked on them (device mapper, RAID, loop). Names that are given count
// instead.

namespace rudderfish {

struct NodeSources {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
  std::vector<std::string> interfaces;  // Empty: by the rule above.
  std::vector<std::string> disks;
};

struct NodeCounters {
  CpuTimes cpu;
  MemoryAmounts memory;
  uint64_t received_bytes = 0, transmitted_bytes = 0;
  uint64_t read_bytes = 0, written_bytes = 0;
};

// Knows which devices count; those that appear later are looked at once. One thread.
class NodeReader {
 public:
  explicit NodeReader(NodeSources sources);

  Result<NodeCounters> Read();

 private:
  enum class Kind { kInterface, kDisk };
  struct Known {
    std::string name;
    bool counts = false;
  };

  DeviceBytes Sum(Kind kind, const std::vector<DeviceBytes>& devices);
  void Look(Kind kind, const std::vector<DeviceBytes>& devices);
  bool HasDevice(Kind kind, const std::string& name) const;
  bool IsLayered(Kind kind, const std::string& name) const;

  NodeSources sources_;
  std::filesystem::path network_;  // net/dev of the node, not of this process.
  std::vector<Known> interfaces_, disks_;
};

}  // namespace rudderfish
