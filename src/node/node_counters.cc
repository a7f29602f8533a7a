// SPDX-License-Identifier: Apache-2.0
#include "node/node_counters.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kStackedDisks = {"loop", "ram", "zram", "dm-",
                                                           "md",   "sr",  "fd",   "drbd"};

bool IsThere(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

NodeReader::NodeReader(NodeSources sources) : sources_(std::move(sources)) {
  // /proc/net shows the network namespace of its reader; that of process 1 is the node's.
  const bool is_of_host = sources_.proc != fs::path("/proc");
  network_ = sources_.proc / "1/net/dev";
  if (!is_of_host || !ReadFile(network_)) network_ = sources_.proc / "net/dev";
}

Result<NodeCounters> NodeReader::Read() {
  NodeCounters counters;
  TRY_ASSIGN(const std::string stat, ReadFile(sources_.proc / "stat"));
  TRY_ASSIGN(counters.cpu, ParseProcStat(stat));
  TRY_ASSIGN(const std::string meminfo, ReadFile(sources_.proc / "meminfo"));
  TRY_ASSIGN(counters.memory, ParseProcMeminfo(meminfo));
  TRY_ASSIGN(const std::string network, ReadFile(network_));
  TRY_ASSIGN(const std::vector<DeviceBytes> interfaces, ParseProcNetDev(network));
  const DeviceBytes carried = Sum(Kind::kInterface, interfaces);
  counters.received_bytes = carried.in;
  counters.transmitted_bytes = carried.out;
  // Machines without a disk have no such file.
  if (const Result<std::string> diskstats = ReadFile(sources_.proc / "diskstats")) {
    TRY_ASSIGN(const std::vector<DeviceBytes> disks, ParseProcDiskstats(*diskstats));
    const DeviceBytes moved = Sum(Kind::kDisk, disks);
    counters.read_bytes = moved.in;
    counters.written_bytes = moved.out;
  }
  return counters;
}

bool NodeReader::HasDevice(Kind kind, const std::string& name) const {
  return IsThere(sources_.sys / (kind == Kind::kInterface ? "class/net" : "block") / name /
                 "device");
}

// Whether its bytes are those of another device, as far as names and links tell.
bool NodeReader::IsLayered(Kind kind, const std::string& name) const {
  if (kind == Kind::kInterface) {
    const fs::path folder = sources_.sys / "class/net" / name;
    return name == "lo" || IsThere(folder / "bridge") || IsThere(folder / "brport") ||
           IsThere(folder / "master") || IsThere(folder / "tun_flags");
  }
  const bool is_partition =
      IsThere(sources_.sys / "block") && !IsThere(sources_.sys / "block" / name);
  return is_partition || std::ranges::any_of(kStackedDisks, [&](std::string_view prefix) {
           return name.starts_with(prefix);
         });
}

void NodeReader::Look(Kind kind, const std::vector<DeviceBytes>& devices) {
  const auto& wanted = kind == Kind::kInterface ? sources_.interfaces : sources_.disks;
  std::vector<Known>& known = kind == Kind::kInterface ? interfaces_ : disks_;
  known.clear();
  for (const DeviceBytes& device : devices) {
    const bool counts = wanted.empty() ? HasDevice(kind, device.name)
                                       : std::ranges::find(wanted, device.name) != wanted.end();
    known.push_back({device.name, counts});
  }
  if (!wanted.empty() || std::ranges::any_of(known, &Known::counts)) return;
  for (Known& one : known) one.counts = !IsLayered(kind, one.name);
}

DeviceBytes NodeReader::Sum(Kind kind, const std::vector<DeviceBytes>& devices) {
  const std::vector<Known>& known = kind == Kind::kInterface ? interfaces_ : disks_;
  if (!std::ranges::equal(devices, known, {}, &DeviceBytes::name, &Known::name))
    Look(kind, devices);
  DeviceBytes sum;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!known[i].counts) continue;
    sum.in += devices[i].in;
    sum.out += devices[i].out;
  }
  return sum;
}

}  // namespace rudderfish
