// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

// Who probes whom, and how often, so that all agents together cost little however many there are,
// without talking about it: both ends of a pair compute the same number from their two addresses.
// Its lowest bit says which end probes; of the pairs that an agent would probe it takes those with
// the smallest numbers. Pure functions.

namespace rudderfish {

// What both ends compute of a pair, "10.0.0.7:9100" and "10.0.0.8:9100" in any order.
struct ProbePair {
  uint64_t number = 0;
  bool is_first_to_probe = false;  // The first of the two that were given.
};
ProbePair PairOf(std::string_view one, std::string_view other);

struct ProbePeer {
  std::string own;   // How the peer sees this agent.
  std::string peer;  // Its address.
};

// Positions in `peers` of those that this agent is to probe, `peers_max` at most; ascending.
std::vector<size_t> ChoosePeers(const std::vector<ProbePeer>& peers, size_t peers_max);

// Between one probe and the next of an agent that probes `targets` in turn: no target more often
// than once in `interval`, and no more than `per_second` in all. REQUIRES: targets > 0.
Duration BetweenProbes(size_t targets, Duration interval, double per_second);

}  // namespace rudderfish
