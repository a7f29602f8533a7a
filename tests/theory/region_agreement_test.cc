// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/event_simulator.h"
#include "task/split_prediction.h"
#include "tests/support/small_regions.h"

// What is believed of regions that serve requests, against the same requests served one by one.

namespace rudderfish {
namespace {

constexpr int64_t kNsOfSecond = 1'000'000'000;
constexpr double kMsOfSecond = 1000;
constexpr double kRequests = 400'000;

struct ServedRegion {
  double mean_s = 0, p95_s = 0;
};

// A region's pods as one station: requests wait in one queue, in the order in which they come.
ServedRegion ServeOneByOne(int pods, double pod_per_s, double arrivals_per_s) {
  const ServedWorkload station{.name = "region", .slots = pods, .service = {}};  // Exponential.
  EventSimulator simulator(
      std::make_shared<const ServedApplication>(SingleStation(station, kMsOfSecond / pod_per_s)));
  simulator.Start(std::make_shared<const RateCurve>(RateCurve::Steady(arrivals_per_s)), 7);
  const auto span_ns = static_cast<int64_t>(kRequests / arrivals_per_s * kNsOfSecond);
  simulator.AdvanceTo(span_ns / 10);  // It warms up.
  simulator.mutable_responses()->Clear();
  const WorkloadSums before = simulator.sums(1);
  simulator.AdvanceTo(span_ns);
  const WorkloadSums sums = simulator.sums(1) - before;
  return {.mean_s =
              static_cast<double>(sums.sojourn_ns) / static_cast<double>(sums.served) / kNsOfSecond,
          .p95_s = simulator.responses().QuantileS(.95)};
}

// Half of home's requests go to `near`, which has so many nodes, at this use of them.
class RegionAgreement : public ::testing::TestWithParam<std::pair<int, double>> {};

TEST_P(RegionAgreement, ARequestMeetsWhatIsPredicted) {
  const auto [nodes, use] = GetParam();
  RegionNetwork network = testing::SmallRegions();
  const double near_per_s = nodes * network.service.node_per_s() * use;
  const ServedRegion measured =
      ServeOneByOne(nodes * network.service.pods_per_node, network.service.pod_per_s, near_per_s);
  const double trip_s = network.TripS(0, 1);
  const auto predict = [&](double deadline_s) {
    network.service.deadline_s = deadline_s;
    const auto laws = testing::LawsOf(network);
    std::vector<RegionSight> seen(3);
    seen[0].demand_per_s = near_per_s;
    for (RegionSight& one : seen) one.ready[kOnDemand] = nodes;
    const std::vector<double> shares{0, 1, 0, 0, 1, 0, 0, 0, 1};
    return PredictSplit({.interval_s = 3600, .laws = laws.get(), .regions = seen}, shares, 0);
  };
  const SplitPrediction predicted = predict(trip_s + measured.p95_s);
  EXPECT_NEAR(predicted.response_s / (trip_s + measured.mean_s), 1, .02);
  // By its share of requests that are later than the measured 95th percentile.
  EXPECT_NEAR(predicted.late_share, .05, .05 * .1);
}

INSTANTIATE_TEST_SUITE_P(Uses, RegionAgreement,
                         ::testing::Values(std::pair(1, .5), std::pair(1, .8), std::pair(2, .7),
                                           std::pair(3, .9), std::pair(10, .85),
                                           std::pair(10, .95)),
                         [](const auto& of) {
                           return fmt::format("{}NodesAt{}", of.param.first,
                                              std::lround(100 * of.param.second));
                         });

}  // namespace
}  // namespace rudderfish
