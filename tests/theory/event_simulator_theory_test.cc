// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/queueing.h"
#include "sim/event_simulator.h"

namespace rudderfish {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

std::shared_ptr<const RateCurve> SteadyCurve(double per_s) {
  return std::make_shared<const RateCurve>(RateCurve::Steady(per_s));
}

ServedWorkload StationOf(int slots, ServiceLaw service) {
  return {.name = "station", .slots = slots, .service = service};
}

// What a station measured of the time after it had warmed up, in units of the mean service time.
struct StationFigures {
  double wait = 0, response = 0, p95 = 0, p99 = 0, refused_share = 0, busy = 0;
  double wait_margin = 0;  // Half the 99.9 % interval of `wait`, by means of 30 batches.
};

// Of `jobs`; it warms up for some batches of a thirtieth of these.
StationFigures MeasureStation(const ServedWorkload& workload, double arrivals_per_s, double jobs,
                              int warm_batches = 1) {
  constexpr int kBatches = 30;
  constexpr double kStudent = 3.659;  // 29 degrees of freedom.
  EventSimulator simulator(
      std::make_shared<const ServedApplication>(SingleStation(workload, 1000)));
  simulator.Start(SteadyCurve(arrivals_per_s), 1);
  const auto batch_ns = static_cast<int64_t>(jobs / arrivals_per_s / kBatches * kSecondNs);
  simulator.AdvanceTo(batch_ns * warm_batches);
  simulator.mutable_responses()->Clear();
  const WorkloadSums first = simulator.sums(1);
  WorkloadSums before = first;
  double sum = 0, squares = 0;
  for (int i = 0; i < kBatches; ++i) {
    simulator.AdvanceTo(simulator.now_ns() + batch_ns);
    const WorkloadSums batch = simulator.sums(1) - before;
    before = simulator.sums(1);
    const double wait = static_cast<double>(batch.wait_ns) / static_cast<double>(batch.served);
    sum += wait, squares += wait * wait;
  }
  const WorkloadSums all = simulator.sums(1) - first;
  const auto served = static_cast<double>(all.served);
  const double mean = sum / kBatches, variance = (squares - sum * mean) / (kBatches - 1);
  return {.wait = static_cast<double>(all.wait_ns) / served / kSecondNs,
          .response = static_cast<double>(all.sojourn_ns) / served / kSecondNs,
          .p95 = simulator.responses().QuantileS(.95),
          .p99 = simulator.responses().QuantileS(.99),
          .refused_share =
              static_cast<double>(all.refused) / static_cast<double>(all.refused + all.calls),
          .busy = static_cast<double>(all.busy_ns) / (batch_ns * kBatches),
          .wait_margin = kStudent * std::sqrt(variance / kBatches) / kSecondNs};
}

void ExpectWait(const StationFigures& figures, double wait, const std::string& what) {
  EXPECT_NEAR(figures.wait, wait, figures.wait_margin) << what;
  EXPECT_NEAR(figures.wait / wait, 1, .02) << what;
}

TEST(EventSimulator, WaitsAsErlangSays) {
  struct Row {
    int servers;
    double arrivals, jobs;
  };
  for (const Row& row :
       {Row{1, .5, 2e6}, Row{1, .8, 4e6}, Row{2, 1.6, 4e6}, Row{4, 3.2, 4e6}, Row{8, 6.4, 2e6},
        Row{16, 14.4, 8e6}, Row{32, 28.8, 8e6}, Row{100, 90, 8e6}}) {
    const std::string what = fmt::format("M/M/{} at {}", row.servers, row.arrivals);
    const Station station{row.arrivals, 1, row.servers};
    const StationFigures figures =
        MeasureStation(StationOf(row.servers, ServiceLaw()), row.arrivals, row.jobs);
    ExpectWait(figures, MmcQueue(station).wait.mean_s(), what);
    EXPECT_NEAR(figures.p95 / MmcResponseQuantileS(station, .95), 1, .02) << what;
    EXPECT_NEAR(figures.p99 / MmcResponseQuantileS(station, .99), 1, .02) << what;
    EXPECT_NEAR(figures.busy / row.arrivals, 1, .005) << what;
  }
}

// So near to its capacity the mean of twenty million jobs is off by a percent or two by chance.
TEST(EventSimulator, WaitsAsErlangSaysNearItsCapacityToo) {
  const Station station{.95, 1, 1};
  EXPECT_NEAR(MmcQueue(station).wait.mean_s(), 19, 1e-9);
  const StationFigures figures = MeasureStation(StationOf(1, ServiceLaw()), .95, 2e7);
  EXPECT_NEAR(figures.wait, 19, figures.wait_margin);
  EXPECT_NEAR(figures.wait / 19, 1, .04);
  EXPECT_NEAR(figures.p95 / MmcResponseQuantileS(station, .95), 1, .05);
  EXPECT_NEAR(figures.p99 / MmcResponseQuantileS(station, .99), 1, .05);
}

TEST(EventSimulator, TurnsAwayAsManyAsFiniteQueuesDo) {
  struct Row {
    int servers, places;
    double arrivals;
  };
  for (const Row& row : {Row{2, 5, 1.6}, Row{1, 10, .9}, Row{4, 4, 3.2}, Row{3, 12, 6}}) {
    ServedWorkload workload = StationOf(row.servers, ServiceLaw());
    workload.queue_limit = row.places - row.servers;
    const FiniteQueue queue({row.arrivals, 1, row.servers}, row.places);
    const StationFigures figures = MeasureStation(workload, row.arrivals, 3e6);
    EXPECT_NEAR(figures.refused_share / queue.blocking(), 1, .02) << row.places;
    EXPECT_NEAR(figures.response / queue.mean_response_s(), 1, .01) << row.places;
    EXPECT_NEAR(figures.p95 / queue.ResponseQuantileS(.95), 1, .02) << row.places;
    if (row.places > row.servers) {
      ExpectWait(figures, queue.mean_wait_s(), fmt::format("{} places", row.places));
    }
  }
}

TEST(EventSimulator, WaitsAsPollaczekAndKhinchineSay) {
  for (double rho : {.5, .8, .9}) {
    const StationFigures constant =
        MeasureStation(StationOf(1, ServiceLaw::OfScv(0)), rho, rho > .85 ? 8e6 : 3e6);
    ExpectWait(constant, rho / (2 * (1 - rho)), fmt::format("M/D/1 at {}", rho));
    EXPECT_NEAR(constant.p95 / (1 + Md1WaitQuantileS({rho, 1, 1}, .95)), 1, .02) << rho;
  }
  const StationFigures varied =
      MeasureStation(StationOf(1, {ServiceLaw::Shape::kHyperexponential, 4}), .8, 2e7);
  ExpectWait(varied, 10.0, "M/G/1, scv 4");
  const StationFigures even = MeasureStation(StationOf(1, ServiceLaw::OfScv(.25)), .8, 4e6);
  ExpectWait(even, 2.5, "M/G/1, scv 0.25");
}

// Mean and variance of responses whose rank is below a share of all, in s.
struct Moments {
  double mean = 0, variance = 0;
};

Moments MomentsUpTo(const ResponseHistogram& responses, double share) {
  constexpr int kSteps = 50'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double time = responses.QuantileS((i + .5) / kSteps * share);
    sum += time, squares += time * time;
  }
  const double mean = sum / kSteps;
  return {mean, squares / kSteps - mean * mean};
}

ServedWorkload SharedStationOf(int slots, ServiceLaw service) {
  ServedWorkload workload = StationOf(slots, service);
  workload.discipline = Discipline::kShared;
  return workload;
}

Moments MeasureShared(const ServedWorkload& workload, double arrivals_per_s, double jobs) {
  EventSimulator simulator(
      std::make_shared<const ServedApplication>(SingleStation(workload, 1000)));
  simulator.Start(SteadyCurve(arrivals_per_s), 2);
  const auto warm_ns = static_cast<int64_t>(jobs / 30 / arrivals_per_s * kSecondNs);
  simulator.AdvanceTo(warm_ns);
  simulator.mutable_responses()->Clear();
  const WorkloadSums before = simulator.sums(1);
  simulator.AdvanceTo(31 * warm_ns);
  const WorkloadSums sums = simulator.sums(1) - before;
  const auto mean_of = [&](int64_t sum_ns) {
    return static_cast<double>(sum_ns) / static_cast<double>(sums.served) / kSecondNs;
  };
  EXPECT_NEAR(static_cast<double>(sums.busy_ns) / (30 * warm_ns) / arrivals_per_s, 1, .01);
  // As many are there as Little says, and stay longer by what is not service.
  EXPECT_NEAR(static_cast<double>(sums.present_ns) / static_cast<double>(sums.sojourn_ns), 1, .01);
  EXPECT_NEAR(mean_of(sums.sojourn_ns - sums.wait_ns), 1, .01);
  const Moments moments = MomentsUpTo(simulator.responses(), 1);
  EXPECT_NEAR(moments.mean / mean_of(sums.sojourn_ns), 1, .005);
  return {mean_of(sums.sojourn_ns), moments.variance};
}

TEST(EventSimulator, SharesSlotsAsTheoryOfProcessorSharingSays) {
  for (const double rho : {.3, .5, .8}) {
    const Station station{rho, 1, 1};
    const Moments moments = MeasureShared(SharedStationOf(1, ServiceLaw()), rho, 6e6);
    EXPECT_NEAR(moments.mean / ProcessorSharingResponseS(station), 1, .01) << rho;
    EXPECT_NEAR(moments.variance / ProcessorSharingVarianceS2(station), 1, .03) << rho;
  }
  // With several slots as many are there as in M/M/c.
  for (const int slots : {2, 4, 16}) {
    const Station station{.8 * slots, 1, slots};
    const Moments moments =
        MeasureShared(SharedStationOf(slots, ServiceLaw()), station.arrivals_per_s, 4e6);
    EXPECT_NEAR(moments.mean / SharingStretch(station), 1, .01) << slots;
  }
}

// Whatever the law of service, the mean response is the same; its variance is not.
TEST(EventSimulator, SharedSlotsDoNotCareForTheLawOfService) {
  struct Row {
    ServiceLaw service;
    int slots;
    double rho, variance_error;
  };
  using Shape = ServiceLaw::Shape;
  for (const Row& row :
       {Row{{Shape::kConstant, 0}, 1, .8, .05}, Row{{Shape::kConstant, 0}, 1, .4, .12},
        Row{{Shape::kHyperexponential, 4}, 1, .8, .1},
        Row{{Shape::kHyperexponential, 4}, 1, .4, .1}, Row{{Shape::kLogNormal, .5}, 1, .7, .05},
        Row{{Shape::kConstant, 0}, 4, .8, .1}, Row{{Shape::kExponential, 1}, 4, .8, .1},
        Row{{Shape::kExponential, 1}, 4, .5, .1}, Row{{Shape::kExponential, 1}, 16, .8, .1},
        Row{{Shape::kHyperexponential, 4}, 4, .8, .15}}) {
    const std::string what =
        fmt::format("scv {}, {} slots at {}", row.service.scv, row.slots, row.rho);
    const Station station{row.rho * row.slots, 1, row.slots};
    const Moments moments =
        MeasureShared(SharedStationOf(row.slots, row.service), station.arrivals_per_s, 6e6);
    const double stretch = SharingStretch(station);
    EXPECT_NEAR(moments.mean / stretch, 1, .015) << what;
    const double waits = ErlangC(row.slots, station.offered_load());
    const double variation = SharingVariation(row.rho, row.slots, waits, stretch, row.service.scv);
    const double variance = stretch * stretch * row.service.scv +
                            (stretch - 1) * (stretch - 1) * (1 + row.service.scv) * variation;
    EXPECT_NEAR(variance / moments.variance, 1, row.variance_error) << what;
  }
}

// Who needs x stays x / (1 - rho). Of two kinds of request, of one or four seconds, the one that is
// not looked at goes on to wait elsewhere, for longer than any other takes.
TEST(EventSimulator, StretchesCallsInProportionToTheirService) {
  constexpr double kShort = .5, kLong = 4, kLongShare = .2;
  const double per_s = .7 / ((1 - kLongShare) * kShort + kLongShare * kLong);
  for (const bool long_ones : {false, true}) {
    auto graph = std::make_shared<CallGraph>();
    graph->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                    {.workload = 1, .caller = 0, .first_group = 1, .last_group = 1},
                    {.workload = 0, .first_group = 1, .last_group = 2},
                    {.workload = 1, .caller = 2, .first_group = 2, .last_group = 2},
                    {.workload = 2, .caller = 2, .first_group = 2, .last_group = 2}};
    graph->groups = {{0, 1}, {1, 3}};
    graph->sequence = {1, 3, 4};
    const double seen_share = long_ones ? kLongShare : 1 - kLongShare;
    graph->endpoints = {
        {.name = "seen", .root = 0, .end = 2, .rate_per_second = seen_share, .qos_ms = 1},
        {.name = "other", .root = 2, .end = 5, .rate_per_second = 1 - seen_share, .qos_ms = 1}};
    ServedApplication application;
    application.calls = graph;
    application.workloads = {{.name = "client", .replicas = 0, .scaled = false},
                             SharedStationOf(1, ServiceLaw::OfScv(0)),
                             StationOf(100'000, ServiceLaw::OfScv(0))};
    const double seen = long_ones ? kLong : kShort, other = long_ones ? kShort : kLong;
    application.service_ms = {0, seen * 1000, 0, other * 1000, 1e7};
    EventSimulator simulator(std::make_shared<const ServedApplication>(application));
    simulator.Start(SteadyCurve(per_s), 3);
    simulator.AdvanceTo(int64_t{4'000'000} * kSecondNs);
    // Others than those who are still under way have been answered.
    const auto completed = static_cast<double>(simulator.requests().completed);
    const double share =
        static_cast<double>(simulator.sums(1).served - simulator.sums(2).calls) / completed;
    EXPECT_NEAR(share, seen_share, .01);
    EXPECT_GT(simulator.responses().QuantileS(share + 1e-3), 5000);
    EXPECT_NEAR(MomentsUpTo(simulator.responses(), share).mean / (seen / .3), 1, .02) << seen;
  }
}

TEST(EventSimulator, JoinsTheShorterOfFewQueuesAsTheoryOfManySays) {
  struct Row {
    int choices;
    double load, response;
    int queues;
    double jobs;
    int warm_batches = 1;
  };
  // Near their capacity few queues wait longer than many do, and it takes long until all are full.
  for (const Row& row :
       {Row{1, .9, 10.0, 50, 4e6}, Row{2, .5, 1.2657, 1000, 6e5}, Row{3, .5, 1.1252, 1000, 6e5},
        Row{2, .8, 1.9474, 1000, 6e5}, Row{3, .8, 1.5809, 1000, 6e5}, Row{2, .9, 2.6141, 1000, 6e5},
        Row{3, .9, 2.0279, 1000, 6e5}, Row{2, .95, 3.3830, 1000, 3e6},
        Row{3, .95, 2.5351, 1000, 3e6}, Row{2, .99, 5.4320, 4000, 12e6, 6},
        Row{3, .99, 3.8578, 4000, 12e6, 6}}) {
    ServedWorkload workload = StationOf(1, ServiceLaw());
    workload.balancing = Balancing::kLeastRequests;
    workload.choices = row.choices;
    // Without a choice any number of queues is as good as one.
    workload.replicas = workload.replicas_max = row.queues;
    const std::string what = fmt::format("{} choices at {}", row.choices, row.load);
    EXPECT_NEAR(ShortestOfChoicesResponse(row.load, row.choices), row.response, 1e-4) << what;
    const StationFigures figures =
        MeasureStation(workload, row.load * row.queues, row.jobs, row.warm_batches);
    EXPECT_NEAR(figures.response / row.response, 1, .02) << what;
  }
}

}  // namespace
}  // namespace rudderfish
