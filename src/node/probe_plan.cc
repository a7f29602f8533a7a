// SPDX-License-Identifier: Apache-2.0
#include "node/probe_plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

// FNV-1a with a finaliser, so that addresses that differ in a last digit are spread.
uint64_t HashOf(std::string_view low, std::string_view high) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  };
  add(low);
  add("|");
  add(high);
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 33);
}

}  // namespace

ProbePair PairOf(std::string_view one, std::string_view other) {
  const uint64_t number = HashOf(std::min(one, other), std::max(one, other));
  const bool lower_probes = (number & 1) == 0;
  return {.number = number, .is_first_to_probe = (one < other) == lower_probes};
}

std::vector<size_t> ChoosePeers(const std::vector<ProbePeer>& peers, size_t peers_max) {
  std::vector<std::pair<uint64_t, size_t>> ours;
  for (size_t i = 0; i < peers.size(); ++i) {
    const ProbePair pair = PairOf(peers[i].own, peers[i].peer);
    if (pair.is_first_to_probe) ours.emplace_back(pair.number, i);
  }
  const size_t count = std::min(peers_max, ours.size());
  std::partial_sort(ours.begin(), ours.begin() + static_cast<std::ptrdiff_t>(count), ours.end());
  std::vector<size_t> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(ours[i].second);
  std::ranges::sort(chosen);
  return chosen;
}

Duration BetweenProbes(size_t targets, Duration interval, double per_second) {
  CHECK_GT(targets, 0u);
  CHECK_GT(per_second, 0);
  const auto by_rate =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1 / per_second));
  return std::max(interval / static_cast<int64_t>(targets), by_rate);
}

}  // namespace rudderfish
