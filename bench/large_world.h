// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "tests/support/small_world.h"

// The large cluster that figures are taken on, and the memory of this process.

namespace rudderfish {

inline int64_t ResidentBytes() {
  long pages = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  CHECK(file != nullptr);
  CHECK_EQ(std::fscanf(file, "%ld %ld", &pages, &resident), 2);
  std::fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

// As many workloads as make 10 replicas each, in a chain of calls; a tenth of the nodes are edges.
inline State LargeState(int nodes, int pods) {
  testing::WorldBuilder world;
  const LayerId cloud = world.Layer("cloud"), edge = world.Layer("edge");
  const KindId kinds[] = {world.Kind("big", cloud, 1, 100), world.Kind("small", edge, 2, 50)};
  world.LatencyBothWays(cloud, edge, 30);
  const int workloads = std::min(100, pods / 10);
  for (int w = 0; w < workloads; ++w) world.Workload(fmt::format("w-{:03}", w), 100, 128);
  for (int n = 0; n < nodes; ++n) world.Node(kinds[n % 10 == 0], 32'000, 128 * 1024);
  for (int p = 0; p < pods; ++p) world.Pod(p * workloads / pods, (p * 7919) % nodes);
  testing::CallTree tree{.workload = workloads - 1, .execution_ms = 1};
  for (int w = workloads - 2; w >= 0; --w) {
    testing::CallTree caller{.workload = w, .execution_ms = 1};
    caller.groups = {{std::move(tree)}};
    tree = std::move(caller);
  }
  world.Endpoint(tree);
  return world.Build();
}

}  // namespace rudderfish
