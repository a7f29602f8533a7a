// SPDX-License-Identifier: Apache-2.0
#include "control/canary_cluster.h"

#include <gtest/gtest.h>

#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

class UnchangedCluster final : public Cluster {
 public:
  explicit UnchangedCluster(State state) : state_(std::move(state)) {}
  Result<void> Refresh(State* state) override {
    *state = state_;
    return {};
  }
  void Submit(std::span<const Intent>, Completions*) override {}
  std::chrono::nanoseconds Now() const override { return state_.at; }

 private:
  State state_;
};

int MovableIn(const State& state) {
  int count = 0;
  for (const Workload& one : state.catalog->workloads) count += one.movable;
  return count;
}

State Seen(CanaryCluster* canary, double share) {
  State state;
  canary->SetShare(share);
  EXPECT_TRUE(canary->Refresh(&state));
  return state;
}

TEST(CanaryCluster, HasACanaryAndAControlGroupWhateverTheShare) {
  Rng rng(1);
  UnchangedCluster real(testing::ContinuumWorld({}, &rng));
  CanaryCluster canary(&real);
  const int all = MovableIn(Seen(&canary, 1));
  ASSERT_GT(all, 1);
  int before = 0;
  for (const double share : {0.0, 0.01, 0.25, 0.5, 0.75, 0.99}) {
    const int movable = MovableIn(Seen(&canary, share));
    EXPECT_GE(movable, 1) << share;
    EXPECT_LT(movable, all) << share;
    EXPECT_GE(movable, before) << share;
    before = movable;
  }
  EXPECT_EQ(MovableIn(Seen(&canary, 1)), all);
}

TEST(CanaryCluster, PicksTheSameWorkloadsEachTime) {
  Rng rng(1);
  UnchangedCluster real(testing::ContinuumWorld({}, &rng));
  CanaryCluster canary(&real);
  const State first = Seen(&canary, 0.5), second = Seen(&canary, 0.5);
  EXPECT_EQ(first.catalog, second.catalog);
}

}  // namespace
}  // namespace rudderfish
