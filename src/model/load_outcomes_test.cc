// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "model/load_model.h"

// The outcomes of requests by LoadModel: who failed, who was late, how long it took, and that this
// hangs on no order and no length of steps.

namespace rudderfish {
namespace {

constexpr WorkloadId kCalled = 1;  // Of a single station.

ServedWorkload TenthPods(int replicas, double scv = 1) {
  return {
      .name = "pods", .service = ServiceLaw::OfScv(scv), .replicas = replicas, .cpu_millis = 250};
}

// 100 ms a call: a pod serves 10 a second. The qos is 1 s.
std::shared_ptr<ServedApplication> StationOfTenths(const ServedWorkload& workload) {
  return std::make_shared<ServedApplication>(SingleStation(workload, 100));
}

// The client calls one of these pods, which calls `count` others at once.
std::shared_ptr<ServedApplication> FanOfTenths(int count) {
  auto graph = std::make_shared<CallGraph>();
  auto fan = std::make_shared<ServedApplication>();
  graph->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 1 + count}};
  graph->groups = {{0, 1}};
  graph->sequence = {1};
  fan->workloads = {{.name = "client", .scaled = false}, TenthPods(1)};
  fan->service_ms = {0, 100};
  for (int i = 0; i < count; ++i) {
    graph->calls.push_back(
        {.workload = 2 + i, .caller = 1, .first_group = 1 + count, .last_group = 1 + count});
    graph->groups.push_back({1 + i, 2 + i});
    graph->sequence.push_back(2 + i);
    fan->workloads.push_back(TenthPods(1));
    fan->service_ms.push_back(100);
  }
  graph->endpoints = {
      {.name = "page", .root = 0, .end = 2 + count, .rate_per_second = 1, .qos_ms = 1000}};
  fan->calls = graph;
  return fan;
}

LoadOutcome SecondHundred(LoadModel* model, double rate) {
  model->Advance(100, rate);
  const LoadOutcome before = model->outcome();
  model->Advance(100, rate);
  return model->outcome() - before;
}

TEST(LoadOutcome, DifferencesAreThoseOfEachPart) {
  const LoadOutcome all{
      .requests = 10, .late = 4, .failed = 3, .response_sum_s = 20, .pod_s = 50, .core_s = 25};
  const LoadOutcome rest =
      all -
      LoadOutcome{
          .requests = 2, .late = 1, .failed = 1, .response_sum_s = 4, .pod_s = 10, .core_s = 5};
  EXPECT_EQ(rest.requests, 8);
  EXPECT_EQ(rest.late, 3);
  EXPECT_EQ(rest.failed, 2);
  EXPECT_EQ(rest.response_sum_s, 16);
  EXPECT_EQ(rest.pod_s, 40);
  EXPECT_EQ(rest.core_s, 20);
  EXPECT_EQ(rest.mean_s(), 2);
  EXPECT_EQ(rest.violation_share(), 5 / 8.);
  EXPECT_EQ(LoadOutcome{}.mean_s(), 0);
  EXPECT_EQ(LoadOutcome{}.violation_share(), 0);
}

// The same page, with the workloads in any order.
std::shared_ptr<ServedApplication> PageOf(const std::vector<WorkloadId>& order) {
  auto graph = std::make_shared<CallGraph>();
  graph->calls = {{.workload = order[0], .first_group = 0, .last_group = 1},
                  {.workload = order[1], .caller = 0, .first_group = 1, .last_group = 3},
                  {.workload = order[2], .caller = 1, .first_group = 3, .last_group = 3},
                  {.workload = order[3], .caller = 1, .first_group = 3, .last_group = 3}};
  graph->groups = {{0, 1}, {1, 2}, {2, 3}};
  graph->sequence = {1, 2, 3};
  graph->endpoints = {{.name = "page", .root = 0, .end = 4, .rate_per_second = 1, .qos_ms = 300}};
  auto page = std::make_shared<ServedApplication>();
  page->calls = graph;
  page->workloads.resize(4);
  page->workloads[order[0]] = {.name = "client", .replicas = 5, .scaled = false};
  page->workloads[order[1]] = {.name = "a", .slots = 2, .cpu_millis = 300};
  page->workloads[order[2]] = {.name = "b",
                               .queue_limit = 3,
                               .service = ServiceLaw::OfScv(0.5),
                               .replicas = 2,
                               .start_high_s = 10,
                               .cpu_millis = 700};
  page->workloads[order[3]] = {.name = "c", .service = ServiceLaw::OfScv(2), .replicas = 3};
  page->service_ms = {0, 40, 60, 90};
  page->network_ms = 3;
  page->timeout_s = 0.8;
  page->retries = 1;
  return page;
}

TEST(LoadModel, RelabellingWorkloadsRelabelsWhatIsBelieved) {
  const std::vector<WorkloadId> plain_order = {0, 1, 2, 3};
  for (const std::vector<WorkloadId>& order :
       {std::vector<WorkloadId>{3, 0, 1, 2}, std::vector<WorkloadId>{2, 3, 0, 1}}) {
    LoadModel plain(PageOf(plain_order)), moved(PageOf(order));
    for (const double rate : {10.0, 45.0, 60.0, 20.0, 0.0, 30.0}) {
      for (LoadModel* model : {&plain, &moved}) {
        const std::vector<WorkloadId>& of = model == &plain ? plain_order : order;
        model->SetReplicas(of[2], rate > 40 ? 4 : 2);
        model->SetReplicas(of[1], rate > 50 ? 2 : 1);
        model->SetReplicas(of[0], 7);  // The client is not scaled.
        model->Advance(12, rate);
      }
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(plain.replicas(i), moved.replicas(order[i]));
        EXPECT_EQ(plain.ready(i), moved.ready(order[i]));
        EXPECT_NEAR(plain.backlog(i), moved.backlog(order[i]), 1e-9);
        EXPECT_NEAR(plain.calls_per_s(i), moved.calls_per_s(order[i]), 1e-9);
        EXPECT_NEAR(plain.busy_slots(i), moved.busy_slots(order[i]), 1e-9);
        EXPECT_NEAR(plain.wait_s(i), moved.wait_s(order[i]), 1e-9);
      }
      EXPECT_NEAR(plain.outcome().late, moved.outcome().late, 1e-9);
      EXPECT_NEAR(plain.outcome().failed, moved.outcome().failed, 1e-9);
      EXPECT_NEAR(plain.outcome().response_sum_s, moved.outcome().response_sum_s, 1e-9);
      EXPECT_NEAR(plain.outcome().pod_s, moved.outcome().pod_s, 1e-9);
      EXPECT_NEAR(plain.outcome().core_s, moved.outcome().core_s, 1e-9);
    }
    EXPECT_EQ(plain.replicas(0), 0);
    EXPECT_GT(plain.outcome().late, 0);
    EXPECT_GT(plain.outcome().failed, 0);
  }
}

// Of a line that is always full, twice as many come as are served: who is refused asks again, at
// once, at most twice.
TEST(LoadModel, WhoIsRefusedAsksAgain) {
  ServedWorkload pods = TenthPods(1);
  pods.queue_limit = 4;
  auto station = StationOfTenths(pods);
  station->retries = 2;
  LoadModel model(station);
  for (int i = 0; i < 50; ++i) model.Advance(10, 20);
  double attempts = 1, kept = 1;
  for (int i = 0; i < 200; ++i) {
    kept = 10 / (20 * attempts);
    attempts = 1 + (1 - kept) + (1 - kept) * (1 - kept);
  }
  const LoadOutcome before = model.outcome();
  model.Advance(10, 20);
  const LoadOutcome outcome = model.outcome() - before;
  EXPECT_NEAR(model.calls_per_s(kCalled), 20 * attempts, 0.01);
  EXPECT_NEAR(outcome.failed, 200 * (1 - kept), 0.1);
  EXPECT_NEAR(outcome.response_sum_s, 200 * kept * model.response(0).mean, 1e-6);
  EXPECT_NEAR(outcome.requests, 200, 1e-9);
  // Without requests there are no retries.
  model.Advance(1000, 0);
  model.Advance(10, 1);
  model.Advance(10, 1);
  EXPECT_NEAR(model.calls_per_s(kCalled), 1, 0.01);
}

// In any attempt: a share of those who gave up every time; late, of those answered in time.
TEST(LoadModel, AnsweredFailedAndLateAreSharesOfTheLawOfResponses) {
  auto station = StationOfTenths(TenthPods(1, 0.5));
  auto graph = std::make_shared<CallGraph>(*station->calls);
  graph->endpoints[0].qos_ms = 250;
  station->calls = graph;
  station->timeout_s = 0.4;
  for (const int retries : {0, 1, 3}) {
    station->retries = retries;
    LoadModel model(std::make_shared<ServedApplication>(*station));
    for (int i = 0; i < 50; ++i) model.Advance(20, 4);
    const LoadOutcome outcome = SecondHundred(&model, 4);
    const GammaTable& table = GammaTable::Shared();
    const GammaTable::Place place = table.Find(model.response(0));
    const double in_time = table.Below(place, std::log(0.4)), out = 1 - in_time;
    double attempts = 1;
    for (int i = 1; i <= retries; ++i) attempts += std::pow(out, i);
    EXPECT_NEAR(model.calls_per_s(kCalled), 4 * attempts, 1e-4) << retries;
    const double never = std::pow(out, 1 + retries);
    EXPECT_NEAR(outcome.failed, 400 * never, 1e-3) << retries;
    EXPECT_NEAR(outcome.late, 400 * (1 - never - table.Below(place, std::log(0.25))), 1e-3)
        << retries;
  }
}

// By 48 strips of 1 - the product of all laws, up to eight deviations beyond the mean.
TEST(LoadModel, TheSlowestOfUnlikeGroupsIsAnIntegralOverItsTail) {
  for (const double unit : {1.0, 0.01}) {  // Of time: seconds, and hundredths.
    auto fan = FanOfTenths(3);
    constexpr double kScv[] = {0.25, 2, 1}, kMs[] = {120, 50, 80};
    for (int i = 0; i < 3; ++i) {
      fan->workloads[2 + i].service = ServiceLaw::OfScv(kScv[i]);
      fan->service_ms[2 + i] = kMs[i] * unit;
    }
    fan->service_ms[1] = 100 * unit;
    fan->network_ms = 2 * unit;
    LoadModel model(fan);
    model.Advance(1e6, 4 / unit);
    model.Advance(1, 4 / unit);
    const auto call = [&](WorkloadId w, double ms, double scv) {
      const CrewLaw& law = model.laws()->crew(w);
      const PodEquilibria& curve = law.EquilibriaOf(1);
      const double waits = curve.At(curve.AtUtilisation(4 / unit * ms / 1000)).waits;
      const double wait_s = model.wait_s(w);
      return GammaLaw{0.004 * unit + ms / 1000 + wait_s,
                      scv * ms * ms / 1e6 + wait_s * wait_s * (2 / waits - 1)};
    };
    const GammaTable& table = GammaTable::Shared();
    double end = 0, mean = 0, square = 0;
    std::vector<GammaLaw> laws;
    for (int i = 0; i < 3; ++i) {
      laws.push_back(call(2 + i, kMs[i] * unit, kScv[i]));
      end = std::max(end, laws[i].mean + 8 * std::sqrt(laws[i].variance));
    }
    for (int strip = 0; strip < 48; ++strip) {
      const double t = (strip + 0.5) / 48 * end;
      double below = 1;
      for (const GammaLaw& law : laws) below *= table.Below(table.Find(law), std::log(t));
      mean += (1 - below) * end / 48;
      square += 2 * t * (1 - below) * end / 48;
    }
    const GammaLaw first = call(1, 100 * unit, 1);
    EXPECT_NEAR(model.response(0).mean, first.mean + mean, 1e-7 * unit);
    EXPECT_NEAR(model.response(0).variance, first.variance + square - mean * mean,
                1e-7 * unit * unit);
  }
}

TEST(LoadModel, QuantilesLieWithinTheirBucketsByTheShareThatIsBelow) {
  LoadModel model(StationOfTenths(TenthPods(1, 0.3)));
  model.Advance(1000, 1e-7);
  std::vector<double> buckets(ResponseBuckets::kCount);
  GammaTable::Shared().Spread(GammaTable::Shared().Find(model.response(0)), 1, buckets);
  double all = 0;
  for (const double count : buckets) all += count;
  for (const double share : {0.01, 0.2, 0.5, 0.77, 0.999}) {
    double below = 0, high = ResponseBuckets::kLeastS;
    size_t i = 0;
    for (; below + buckets[i] < share * all; ++i, high *= ResponseBuckets::kRatio)
      below += buckets[i];
    const double low = high / ResponseBuckets::kRatio;
    EXPECT_NEAR(model.ResponseQuantileS(share),
                low + (high - low) * (share * all - below) / buckets[i], 1e-6)
        << share;
  }
}

// Steps end where pods become ready; what is told of an interval is its mean.
TEST(LoadModel, AnIntervalIsTheMeanOfItsParts) {
  ServedWorkload pods = TenthPods(1);
  pods.start_low_s = pods.start_high_s = 4;
  auto fan = FanOfTenths(1);
  fan->workloads[1] = pods;
  fan->workloads[2].replicas = 4;
  LoadModel model(fan);
  model.Advance(100, 20);  // Of which one pod lets 10 a second through.
  model.SetReplicas(1, 3);
  EXPECT_EQ(model.ready(1), 1);
  LoadModel parts(model.laws());
  parts.CopyFrom(model);
  model.Advance(10, 20);
  double calls = 0, busy = 0;
  for (const double seconds : {4.0, 6.0}) {
    parts.Advance(seconds, 20);
    calls += parts.calls_per_s(2) * seconds / 10;
    busy += parts.busy_slots(1) * seconds / 10;
  }
  EXPECT_EQ(model.ready(1), 3);
  EXPECT_NEAR(model.calls_per_s(2), calls, 1e-9);
  EXPECT_NEAR(model.busy_slots(1), busy, 1e-9);
  EXPECT_GT(model.calls_per_s(2), 15);
  EXPECT_NEAR(model.now_s(), 110, 1e-9);
  const LoadOutcome before = model.outcome();
  model.Advance(0, 20);  // No time passes.
  model.Advance(1e-10, 20);
  EXPECT_EQ(model.outcome().requests, before.requests);
}

TEST(LoadModel, StepsAreShortWhileCallsAreFarFromRest) {
  const auto station = StationOfTenths(TenthPods(1));
  LoadModel coarse(station, {.step_s = 5}), fine(station, {.step_s = 0.01}), usual(station);
  for (LoadModel* model : {&coarse, &fine, &usual}) {
    model->Advance(10, 20);
    model->Advance(5, 2);
  }
  const double exact = fine.backlog(kCalled);
  EXPECT_LT(std::abs(usual.backlog(kCalled) - exact), std::abs(coarse.backlog(kCalled) - exact));
  EXPECT_NEAR(usual.backlog(kCalled), exact, 0.05 * exact);
}

}  // namespace
}  // namespace rudderfish
