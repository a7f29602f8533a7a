// SPDX-License-Identifier: Apache-2.0
#include "run/route_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// A data path that holds its weights, slowly.
class SlowPath final : public SplitEnactor {
 public:
  explicit SlowPath(std::atomic<int>* sent) : sent_(sent) {}

  Result<StandingWeights> Read() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    StandingWeights standing{.target = "slow"};
    for (size_t i = 0; i < weights_.size(); ++i) {
      standing.backends.push_back(
          {.name = std::to_string(i), .weight = weights_[i], .is_healthy = true});
    }
    return standing;
  }
  int64_t weight_sum() const override { return 100; }
  std::string Request(const std::vector<int64_t>& weights) const override {
    return std::to_string(weights[0]);
  }
  Result<void> Send(const std::vector<int64_t>& weights) override {
    weights_ = weights;
    ++*sent_;
    return {};
  }

 private:
  std::atomic<int>* sent_;
  std::vector<int64_t> weights_ = {50, 50};
};

class RouteDriverTest : public ::testing::Test {
 protected:
  static constexpr size_t kRoutes = RouteDriver::kThreadsMax + 1, kLast = kRoutes - 1;

  void SetUp() override {
    std::vector<RouteDriver::Route> routes;
    for (size_t i = 0; i < kRoutes; ++i)
      routes.push_back({.client = nullptr, .enactor = std::make_unique<SlowPath>(&sent_)});
    driver_ = std::make_unique<RouteDriver>(std::move(routes), &clock_);
  }
  // All threads have something to do.
  void KeepBusy() {
    for (size_t i = 0; i + 1 < kRoutes; ++i) driver_->Read(i);
  }
  // The next that was to be set.
  RouteDriver::Answer WaitForSet() {
    while (true) {
      RouteDriver::Answer answer = Wait();
      if (answer.is_set) return answer;
    }
  }
  RouteDriver::Answer Wait() {
    while (true) {
      if (auto answer = driver_->Take()) return *std::move(answer);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  SystemClock clock_;
  std::atomic<int> sent_ = 0;
  std::unique_ptr<RouteDriver> driver_;
};

TEST_F(RouteDriverTest, ReadsAndSetsWithoutBeingWaitedFor) {
  const auto begun = std::chrono::steady_clock::now();
  driver_->Read(0);
  driver_->Read(1);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(80));
  EXPECT_TRUE(driver_->is_busy(1));
  EXPECT_FALSE(driver_->is_idle());
  EXPECT_EQ(Wait().route + Wait().route, 1);
  EXPECT_TRUE(driver_->is_idle());

  EXPECT_EQ(driver_->Request(1, {70, 30}), "70");
  driver_->Set(1, {.weights = {70, 30}, .changes = true}, clock_.Now() + std::chrono::seconds(10));
  const RouteDriver::Answer answer = Wait();
  EXPECT_TRUE(answer.is_set);
  ASSERT_TRUE(answer.standing) << answer.standing.error().message;
  EXPECT_EQ(answer.standing->backends[0].weight, 70);
  EXPECT_EQ(sent_, 1);
}

TEST_F(RouteDriverTest, WhatWaitedTooLongIsNotSent) {
  KeepBusy();
  driver_->Set(kLast, {.weights = {70, 30}, .changes = true},
               clock_.Now() + std::chrono::milliseconds(5));
  const RouteDriver::Answer answer = WaitForSet();
  ASSERT_FALSE(answer.standing);
  EXPECT_THAT(answer.standing.error().message, HasSubstr("nothing was sent"));
  EXPECT_EQ(sent_, 0);
}

TEST_F(RouteDriverTest, WhatIsHeldBackIsNotSent) {
  KeepBusy();
  driver_->Set(kLast, {.weights = {70, 30}, .changes = true},
               clock_.Now() + std::chrono::seconds(10));
  driver_->DropSets();
  EXPECT_FALSE(driver_->is_busy(kLast));
  const RouteDriver::Answer answer = WaitForSet();
  EXPECT_EQ(answer.route, kLast);
  ASSERT_FALSE(answer.standing);
  EXPECT_THAT(answer.standing.error().message, HasSubstr("held back"));
  EXPECT_EQ(sent_, 0);
}

TEST_F(RouteDriverTest, EndsWhileWorkIsLeft) {
  KeepBusy();
  driver_->Set(kLast, {.weights = {70, 30}, .changes = true},
               clock_.Now() + std::chrono::seconds(10));
  driver_.reset();  // Waits for what is under way, and for nothing else.
  EXPECT_EQ(sent_, 0);
}

}  // namespace
}  // namespace rudderfish
