// SPDX-License-Identifier: Apache-2.0
#include "sim/pod_source.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/small_arrivals.h"

namespace rudderfish {
namespace {

using testing::ArrivalsScenario;

// What an episode brings is what was expected of it.
TEST(PodSource, BringsAsManyPodsAsAreExpected) {
  for (const std::string_view stream :
       {"interval: 20s", "interval: 20s, start: 10min", "interval: 0s to 30s",
        "interval: {exponential: 7s}", "interval: {normal: [5s, 9s]}", "interval: 3s, count: 40",
        "interval: 3s, waves: {pods: 7, hold: 20s, pause: 5s}",
        "interval: 0s, waves: {pods: 7, hold: 20s}, start: 59min",
        "interval: 3s, waves: {pods: 3000, hold: 20s}",
        "interval: 2s, rolling: {pods: 20, hold: 3s, pause: 1s}",
        "interval: 2s, rolling: {pods: 2000, hold: 3s}", "interval: 9s, start: 2h"}) {
    const auto scenario = ArrivalsScenario(fmt::format(
        "  until: 1h\n  streams: [{{workloads: web, {}}}, {{workloads: web, interval: 1h}}]",
        stream));
    const Arrivals& arrivals = *scenario->arrivals;
    constexpr int kEpisodes = 200;
    int64_t come = 0;
    for (uint64_t episode = 0; episode < kEpisodes; ++episode) {
      PodSource source(&arrivals.streams[0]);
      source.Start(Rng(1, episode));
      for (ArrivingPod pod; source.Next(&pod) && pod.at <= arrivals.until;) ++come;
    }
    const double expected = ExpectedPods(arrivals.streams[0], arrivals.until);
    EXPECT_NEAR(static_cast<double>(come) / kEpisodes, expected, 0.01 * expected) << stream;
  }
}

}  // namespace
}  // namespace rudderfish
