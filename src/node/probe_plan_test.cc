// SPDX-License-Identifier: Apache-2.0
#include "node/probe_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

namespace rudderfish {
namespace {

std::string Name(int i) { return fmt::format("10.0.{}.{}:9100", i / 250, i % 250); }

TEST(ProbePlan, EachPairIsProbedByOneSideOnly) {
  int first = 0;
  for (int i = 0; i < 60; ++i) {
    for (int j = i + 1; j < 60; ++j) {
      const ProbePair there = PairOf(Name(i), Name(j)), back = PairOf(Name(j), Name(i));
      EXPECT_EQ(there.number, back.number);
      EXPECT_NE(there.is_first_to_probe, back.is_first_to_probe);
      first += there.is_first_to_probe ? 1 : 0;
    }
  }
  EXPECT_NEAR(first, 60 * 59 / 4, 120);  // Fairly shared.
}

std::vector<size_t> ChosenBy(int self, int nodes, size_t peers_max) {
  std::vector<ProbePeer> peers;
  for (int i = 0; i < nodes; ++i) {
    if (i != self) peers.push_back({Name(self), Name(i)});
  }
  return ChoosePeers(peers, peers_max);
}

TEST(ProbePlan, SmallClustersAreMeasuredWhole) {
  std::set<std::pair<int, int>> pairs;
  for (int self = 0; self < 20; ++self) {
    for (const size_t at : ChosenBy(self, 20, 32)) {
      const int peer = static_cast<int>(at) + (static_cast<int>(at) >= self ? 1 : 0);
      EXPECT_TRUE(pairs.insert(std::minmax(self, peer)).second);
    }
  }
  EXPECT_EQ(pairs.size(), 190u);
}

TEST(ProbePlan, LargeClustersCostNoMore) {
  EXPECT_EQ(ChosenBy(7, 5000, 32).size(), 32u);
  EXPECT_EQ(ChosenBy(7, 5000, 32), ChosenBy(7, 5000, 32));
}

TEST(ProbePlan, RatesHaveACeiling) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  EXPECT_EQ(BetweenProbes(1, seconds(1), 8), milliseconds(1000));
  EXPECT_EQ(BetweenProbes(4, seconds(1), 8), milliseconds(250));
  EXPECT_EQ(BetweenProbes(10'000, seconds(1), 8), milliseconds(125));
}

}  // namespace
}  // namespace rudderfish
