// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduling.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

TEST(PodToleration, ToleratesByKeyValueAndEffectWhereTheyAreGiven) {
  const NodeTaint taint{"dedicated", "batch", TaintEffect::kNoSchedule};
  constexpr auto kEqual = PodToleration::Operator::kEqual;
  constexpr auto kExists = PodToleration::Operator::kExists;
  EXPECT_TRUE((PodToleration{"dedicated", kEqual, "batch", {}}.Tolerates(taint)));
  EXPECT_FALSE((PodToleration{"dedicated", kEqual, "web", {}}.Tolerates(taint)));
  EXPECT_FALSE((PodToleration{"dedicated", kEqual, "", {}}.Tolerates(taint)));
  EXPECT_TRUE((PodToleration{"dedicated", kExists, "", {}}.Tolerates(taint)));
  EXPECT_FALSE((PodToleration{"other", kExists, "", {}}.Tolerates(taint)));
  EXPECT_TRUE((PodToleration{"", kExists, "", {}}.Tolerates(taint)));
  EXPECT_FALSE((PodToleration{"", kExists, "", TaintEffect::kNoExecute}.Tolerates(taint)));
  EXPECT_TRUE((PodToleration{"", kExists, "", TaintEffect::kNoSchedule}.Tolerates(taint)));
}

TEST(HostPort, ConflictsOnEqualPortAndProtocolWhereAddressesMeet) {
  const HostPort all{"0.0.0.0", "TCP", 80}, one{"10.0.0.1", "TCP", 80}, two{"10.0.0.2", "TCP", 80};
  EXPECT_TRUE(all.ConflictsWith(one));
  EXPECT_TRUE(one.ConflictsWith(all));
  EXPECT_TRUE(one.ConflictsWith(one));
  EXPECT_FALSE(one.ConflictsWith(two));
  EXPECT_FALSE(all.ConflictsWith({"0.0.0.0", "UDP", 80}));
  EXPECT_FALSE(all.ConflictsWith({"0.0.0.0", "TCP", 81}));
}

}  // namespace
}  // namespace rudderfish
