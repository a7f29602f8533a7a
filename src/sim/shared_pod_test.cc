// SPDX-License-Identifier: Apache-2.0
#include "sim/shared_pod.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace rudderfish {
namespace {

// One who needs 10 has computed 4 when another comes who needs 3; both at half speed then.
TEST(SharedPod, ComputesForAllEachAsFastAsThereIsRoom) {
  SharedPod pod;
  pod.Clear(1);
  EXPECT_EQ(pod.next_ns(), EventHeap::kNothing);
  pod.Add(100, 10, 7);
  EXPECT_EQ(pod.next_ns(), 110);
  pod.Add(104, 3, 8);
  EXPECT_EQ(pod.next_ns(), 110);
  const SharedPod::Call first = pod.Take(110);
  EXPECT_EQ(first.id, 8);
  EXPECT_EQ(first.service_ns, 3);
  EXPECT_EQ(pod.next_ns(), 113);
  EXPECT_EQ(pod.Take(113).id, 7);
  EXPECT_EQ(pod.next_ns(), EventHeap::kNothing);
  pod.Clear(2);  // Two have a slot each; three share them.
  pod.Add(0, 6, 1);
  pod.Add(0, 8, 2);
  EXPECT_EQ(pod.next_ns(), 6);
  pod.Add(3, 9, 3);
  EXPECT_EQ(pod.next_ns(), 8);  // 3 left, at 2/3: after 4.5.
}

// Beside the same, step by step: what each has left, less its share of the time.
TEST(SharedPod, DoesAsOneWhoCountsWhatEachHasLeft) {
  struct Left {
    int32_t id = 0;
    double work = 0;
  };
  for (const int slots : {1, 3}) {
    Rng rng(3, slots);
    SharedPod pod;
    pod.Clear(slots);
    std::vector<Left> left;
    int64_t now = 0;
    const auto pass = [&](int64_t to) {
      const double speed =
          std::min(1.0, static_cast<double>(slots) / std::max<size_t>(1, left.size()));
      for (Left& one : left) one.work -= static_cast<double>(to - now) * speed;
      now = to;
    };
    int done = 0;
    for (int32_t id = 0; id < 3000; ++id) {
      const int64_t comes = now + rng.Between(1, 1'500'000 / slots);
      while (pod.next_ns() <= comes) {
        const int64_t at = pod.next_ns();
        pass(at);
        const SharedPod::Call call = pod.Take(at);
        const auto first = std::min_element(
            left.begin(), left.end(), [](const Left& a, const Left& b) { return a.work < b.work; });
        ASSERT_EQ(first->id, call.id);
        ASSERT_NEAR(first->work, 0, 1.5);  // Times are whole ns.
        left.erase(first);
        ++done;
      }
      pass(comes);
      const int64_t service = rng.Between(1, 1'400'000);
      pod.Add(now, service, id);
      left.push_back({id, static_cast<double>(service)});
    }
    EXPECT_GT(done, 2900);
  }
}

}  // namespace
}  // namespace rudderfish
