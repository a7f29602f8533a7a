// SPDX-License-Identifier: Apache-2.0
#include "node/round_trips.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

constexpr Instant kStart{};

TEST(RoundTrips, QuantilesAreOfTheNearestRank) {
  RoundTrips trips;
  EXPECT_FALSE(trips.Recent(kStart));
  for (int i = 100; i >= 1; --i) trips.Add(kStart, i);
  const auto recent = trips.Recent(kStart);
  ASSERT_TRUE(recent);
  EXPECT_DOUBLE_EQ(recent->mean, 50.5);
  EXPECT_DOUBLE_EQ(recent->p50, 50);
  EXPECT_DOUBLE_EQ(recent->p99, 99);
  EXPECT_EQ(recent->count, 100u);
  EXPECT_DOUBLE_EQ(trips.Recent(kStart, 3)->p50, 2);
}

TEST(RoundTrips, OldOnesStayInTheSumsAlone) {
  RoundTrips trips;
  trips.Add(kStart, 1);
  trips.Add(kStart + RoundTrips::kRecent, 3);
  EXPECT_DOUBLE_EQ(trips.Recent(kStart + RoundTrips::kRecent)->mean, 2);
  EXPECT_DOUBLE_EQ(trips.Recent(kStart + 2 * RoundTrips::kRecent)->mean, 3);
  EXPECT_FALSE(trips.Recent(kStart + 3 * RoundTrips::kRecent));
  trips.NoteFailure();
  EXPECT_EQ(trips.count(), 2u);
  EXPECT_DOUBLE_EQ(trips.sum_seconds(), 4);
  EXPECT_EQ(trips.failures(), 1u);
}

TEST(RoundTrips, KeepsABoundedNumber) {
  RoundTrips trips;
  for (size_t i = 0; i < 3 * RoundTrips::kKept; ++i) trips.Add(kStart, 1);
  EXPECT_EQ(trips.Recent(kStart)->count, RoundTrips::kKept);
}

}  // namespace
}  // namespace rudderfish
