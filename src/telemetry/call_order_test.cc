// SPDX-License-Identifier: Apache-2.0
#include "telemetry/call_order.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rudderfish {
namespace {

using Groups = std::vector<std::vector<int>>;

constexpr int64_t kUs = 1000;

CallOrder OrderOf(const std::vector<std::vector<CallOrder::Seen>>& times) {
  CallOrder order;
  for (const auto& once : times) order.Add(once);
  return order;
}

Groups SortedGroups(const CallOrder& order, const std::vector<int>& keys) {
  Groups groups = order.Groups(keys).groups;
  std::sort(groups.begin(), groups.end());
  return groups;
}

TEST(CallOrder, OfCallsOneAfterAnotherIsTheirOrder) {
  const CallOrder order =
      OrderOf({{{3, 0, 100 * kUs}, {1, 100 * kUs, 150 * kUs}, {2, 152 * kUs, 900 * kUs}},
               {{3, 0, 50 * kUs}, {1, 51 * kUs, 350 * kUs}, {2, 350 * kUs, 360 * kUs}}});
  EXPECT_EQ(SortedGroups(order, {1, 2, 3}), (Groups{{3, 1, 2}}));
  EXPECT_NEAR(order.Groups({1, 2, 3}).certainty, 0.75, 1e-9);  // Of two traces no more.
}

TEST(CallOrder, OfCallsAtOnceIsInGroups) {
  // 1 then 2, beside 3; 3 is over before 2 begins.
  const CallOrder order =
      OrderOf({{{1, 0, 100 * kUs}, {3, 0, 60 * kUs}, {2, 101 * kUs, 150 * kUs}},
               {{1, 0, 90 * kUs}, {3, 1 * kUs, 70 * kUs}, {2, 91 * kUs, 140 * kUs}}});
  EXPECT_EQ(SortedGroups(order, {1, 2, 3}), (Groups{{1, 2}, {3}}));
}

TEST(CallOrder, OfAForkIsItsLongestChain) {
  // 1, then 2 and 3 at once, then 4.
  const CallOrder order = OrderOf({{{1, 0, 100 * kUs},
                                    {2, 100 * kUs, 200 * kUs},
                                    {3, 100 * kUs, 400 * kUs},
                                    {4, 400 * kUs, 500 * kUs}}});
  EXPECT_EQ(SortedGroups(order, {1, 2, 3, 4}), (Groups{{1, 3, 4}, {2}}));
}

TEST(CallOrder, OfEitherOrIsASequence) {
  const CallOrder order =
      OrderOf({{{1, 0, 10 * kUs}, {2, 10 * kUs, 20 * kUs}, {4, 20 * kUs, 30 * kUs}},
               {{1, 0, 10 * kUs}, {3, 10 * kUs, 40 * kUs}, {4, 40 * kUs, 50 * kUs}}});
  const Groups groups = SortedGroups(order, {1, 2, 3, 4});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].front(), 1);
  EXPECT_EQ(groups[0].back(), 4);
}

TEST(CallOrder, HasEveryKeyOnceEvenIfItWasNeverSeen) {
  EXPECT_EQ(CallOrder().Groups({}).groups, Groups{});
  Groups groups = CallOrder().Groups({7, 5}).groups;
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].size(), 2u);
}

}  // namespace
}  // namespace rudderfish
