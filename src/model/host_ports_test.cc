// SPDX-License-Identifier: Apache-2.0
#include "model/host_ports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"

namespace rudderfish {
namespace {

HostPort Drawn(Rng* rng) {
  const std::string ips[] = {"0.0.0.0", "10.0.0.1", "10.0.0.2"};
  const std::string protocols[] = {"TCP", "UDP"};
  return {ips[rng->Below(3)], protocols[rng->Below(2)], 80 + static_cast<int64_t>(rng->Below(3))};
}

bool AnyConflicts(const std::vector<HostPort>& a, const std::vector<HostPort>& b) {
  return std::any_of(a.begin(), a.end(), [&](const HostPort& x) {
    return std::any_of(b.begin(), b.end(), [&](const HostPort& y) { return x.ConflictsWith(y); });
  });
}

TEST(HostPorts, NodesConflictAsTheirPodsDoOneByOne) {
  constexpr int kNodes = 6;
  Rng rng(7);
  HostPorts ports;
  ports.Reset();
  struct Pod {
    std::vector<HostPort> wanted;
    std::vector<HostPorts::Use> uses;
    int node = 0;
  };
  std::vector<Pod> placed;
  int conflicts = 0;
  for (int step = 0; step < 2000; ++step) {
    if (placed.size() > 8) {
      const uint32_t gone = rng.Below(static_cast<uint32_t>(placed.size()));
      ports.Change(placed[gone].uses, placed[gone].node, -1);
      placed.erase(placed.begin() + gone);
    }
    Pod pod;
    for (uint32_t i = rng.Below(4); i > 0; --i) pod.wanted.push_back(Drawn(&rng));
    pod.uses = ports.Compile(pod.wanted);
    pod.node = static_cast<int>(rng.Below(kNodes));
    std::set<NodeId> found, right;
    ports.ForConflicts(pod.uses, [&](NodeId node) { found.insert(node); });
    for (const Pod& other : placed) {
      const bool conflict = AnyConflicts(pod.wanted, other.wanted);
      EXPECT_EQ(HostPorts::Conflict(pod.uses, other.uses), conflict);
      if (conflict) right.insert(other.node);
    }
    ASSERT_EQ(found, right) << "step " << step;
    conflicts += static_cast<int>(found.size());
    ports.Change(pod.uses, pod.node, 1);
    placed.push_back(std::move(pod));
  }
  EXPECT_GT(conflicts, 500);
}

}  // namespace
}  // namespace rudderfish
