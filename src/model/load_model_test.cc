// SPDX-License-Identifier: Apache-2.0
#include "model/load_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "model/queueing.h"

namespace rudderfish {
namespace {

constexpr WorkloadId kPods = 1;  // Of a single station.

// 100 ms a call: one slot serves 10 a second. The qos is 1 s.
std::shared_ptr<ServedApplication> StationOf(const ServedWorkload& workload) {
  return std::make_shared<ServedApplication>(SingleStation(workload, 100));
}

ServedWorkload Pods(int replicas, double scv = 1, int slots = 1) {
  return {.name = "pods",
          .slots = slots,
          .service = ServiceLaw::OfScv(scv),
          .replicas = replicas,
          .replicas_max = 10,
          .cpu_millis = 250};
}

// What happens in the second 100 s, when all is in equilibrium.
LoadOutcome Settle(LoadModel* model, double rate) {
  model->Advance(100, rate);
  const LoadOutcome before = model->outcome();
  model->Advance(100, rate);
  return model->outcome() - before;
}

TEST(LoadModel, OnePodInEquilibriumIsTheQueueOfTheory) {
  LoadModel model(StationOf(Pods(1)));
  const LoadOutcome outcome = Settle(&model, 8);
  EXPECT_NEAR(outcome.requests, 800, 1e-6);
  EXPECT_NEAR(outcome.mean_s(), 0.5, 0.002);
  EXPECT_NEAR(model.response(0).variance, 0.25, 0.002);
  EXPECT_NEAR(outcome.violation_share(), std::exp(-2), 0.003);
  EXPECT_EQ(outcome.failed, 0);
  EXPECT_NEAR(outcome.pod_s, 100, 1e-9);
  EXPECT_NEAR(outcome.core_s, 25, 1e-9);
  EXPECT_NEAR(model.backlog(kPods), 4, 0.02);
  EXPECT_NEAR(model.calls_per_s(kPods), 8, 1e-9);
  EXPECT_NEAR(model.busy_slots(kPods), 0.8, 1e-9);
  EXPECT_NEAR(model.wait_s(kPods), 0.4, 0.002);
  EXPECT_NEAR(model.now_s(), 200, 1e-9);
}

TEST(LoadModel, SharedSlotsWithoutCallsTakeNoTime) {
  auto graph = std::make_shared<CallGraph>();
  graph->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 1},
                  {.workload = 0, .first_group = 1, .last_group = 2},
                  {.workload = 2, .caller = 2, .first_group = 2, .last_group = 2}};
  graph->groups = {{0, 1}, {1, 2}};
  graph->sequence = {1, 3};
  graph->endpoints = {{.name = "asked", .root = 0, .end = 2, .rate_per_second = 1, .qos_ms = 100},
                      {.name = "not", .root = 2, .end = 4, .rate_per_second = 0, .qos_ms = 100}};
  auto application = std::make_shared<ServedApplication>();
  application->calls = graph;
  ServedWorkload shared = Pods(1, 0);
  shared.discipline = Discipline::kShared;
  application->workloads = {{.name = "client", .replicas = 0, .scaled = false}, Pods(1, 0), shared};
  application->service_ms = {0, 40, 0, 40};
  LoadModel model(application);
  Settle(&model, 5);
  EXPECT_TRUE(std::isfinite(model.outcome().mean_s()));
  EXPECT_NEAR(model.response(1).mean, .04, 1e-9);
}

// Two kinds of request, of 40 and 160 ms: at 0.7 each takes as many times longer as 1 / 0.3, in a
// row or beside nothing at all.
TEST(LoadModel, SharedSlotsStretchEachCallByItsOwnService) {
  for (const bool parallel : {false, true}) {
    auto graph = std::make_shared<CallGraph>();
    graph->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                    {.workload = 1, .caller = 0, .first_group = 1, .last_group = 1},
                    {.workload = 0, .first_group = 1, .last_group = parallel ? 3 : 2},
                    {.workload = 1, .caller = 2, .first_group = 3, .last_group = 3},
                    {.workload = 2, .caller = 2, .first_group = 3, .last_group = 3}};
    graph->groups = {{0, 1}, {1, 2}, {2, 3}};
    if (!parallel) graph->groups[1] = {1, 3};
    graph->sequence = {1, 3, 4};
    graph->endpoints = {{.name = "short", .root = 0, .end = 2, .rate_per_second = 1, .qos_ms = 100},
                        {.name = "long", .root = 2, .end = 5, .rate_per_second = 1, .qos_ms = 500}};
    auto application = std::make_shared<ServedApplication>();
    application->calls = graph;
    ServedWorkload pods = Pods(1, .5);
    pods.discipline = Discipline::kShared;
    application->workloads = {
        {.name = "client", .replicas = 0, .scaled = false}, pods, Pods(1, 0, 100)};
    application->service_ms = {0, 40, 0, 160, 1e-6};
    LoadModel model(application);
    Settle(&model, 7);
    EXPECT_NEAR(model.response(0).mean, .04 / .3, .001) << parallel;
    EXPECT_NEAR(model.response(1).mean, .16 / .3, .004) << parallel;
    const double scv = .5 * (1.5 * (.04 * .04 + .16 * .16)) / (.1 * .1) - 1;
    const double stretch = 1 / .3;
    const double spread = (stretch - 1) * (stretch - 1) * SharingVariation(.7, 1, .7, stretch, scv);
    for (const auto& [endpoint, service] : {std::pair{0, .04}, {1, .16}}) {
      const double variance = service * service * (.5 * stretch * stretch + 1.5 * spread);
      EXPECT_NEAR(model.response(endpoint).variance / variance, 1, .02) << endpoint;
    }
    EXPECT_NEAR(model.wait_s(1), .1 * (stretch - 1), .002);
  }
}

TEST(LoadModel, QuantilesOfResponsesAreThoseOfTheLaw) {
  LoadModel model(StationOf(Pods(1)));
  Settle(&model, 8);  // From empty, which is soon forgotten.
  for (int i = 0; i < 100; ++i) model.Advance(100, 8);
  EXPECT_NEAR(model.ResponseQuantileS(0.5), 0.5 * std::numbers::ln2, 0.01);
  EXPECT_NEAR(model.ResponseQuantileS(0.95), 0.5 * std::log(20), 0.04);
  EXPECT_NEAR(model.ResponseQuantileS(0.99), 0.5 * std::log(100), 0.08);
}

TEST(LoadModel, SlotsAreServersAndServiceTimesCount) {
  for (const int slots : {2, 5}) {
    LoadModel model(StationOf(Pods(1, 1, slots)));
    const Station theory{7.0 * slots, 10, slots};
    EXPECT_NEAR(Settle(&model, 7 * slots).mean_s(), MmcQueue(theory).response_mean_s(), 0.001);
  }
  // Pollaczek and Khinchine: half the wait where service is constant, one and a half with scv 2.
  for (const double scv : {0.0, 2.0}) {
    LoadModel model(StationOf(Pods(1, scv)));
    EXPECT_NEAR(Settle(&model, 8).mean_s(), 0.1 + 0.4 * (1 + scv) / 2, 0.002) << scv;
    EXPECT_NEAR(model.wait_s(kPods), 0.4 * (1 + scv) / 2, 0.002) << scv;
  }
}

TEST(LoadModel, WhereHardlyAnybodyComesHardlyAnybodyWaits) {
  for (const double rate : {0.02, 0.1, 0.3}) {  // Of 10 that could be served.
    LoadModel model(StationOf(Pods(1)));
    const double mean_s = 1 / (10 - rate);
    EXPECT_NEAR(Settle(&model, rate).mean_s(), mean_s, 1e-4) << rate;
    EXPECT_NEAR(model.response(0).variance, mean_s * mean_s, 2e-4) << rate;
  }
}

TEST(LoadModel, PodsShareCallsAsTheirBalancingSays) {
  ServedWorkload pods = Pods(4);
  LoadModel random(StationOf(pods));
  EXPECT_NEAR(Settle(&random, 32).mean_s(), 0.5, 0.002);
  EXPECT_NEAR(random.busy_slots(kPods), 3.2, 1e-9);
  EXPECT_NEAR(random.backlog(kPods), 16, 0.1);
  pods.balancing = Balancing::kRoundRobin;  // Every fourth: the variance of arrivals is a quarter.
  LoadModel in_turn(StationOf(pods));
  EXPECT_NEAR(Settle(&in_turn, 32).mean_s(), 0.1 + 0.4 * (0.25 + 1) / 2, 0.002);
  pods.balancing = Balancing::kLeastRequests;
  LoadModel least(StationOf(pods));
  const double mean = Settle(&least, 32).mean_s();
  EXPECT_GT(mean, MmcQueue(Station{32, 10, 4}).response_mean_s());
  EXPECT_LT(mean, 0.1 * ShortestOfChoicesResponse(0.8, 2) + 0.1);
}

TEST(LoadModel, BacklogOfABurstGrowsAndIsServedAtCapacity) {
  LoadModel model(StationOf(Pods(1)));
  model.Advance(10, 20);  // Ten a second too many.
  EXPECT_NEAR(model.backlog(kPods), 102, 4);
  EXPECT_NEAR(model.busy_slots(kPods), 0.96, 0.03);
  EXPECT_NEAR(model.wait_s(kPods), 10, 1);  // Of who comes last.
  model.Advance(5, 0);
  EXPECT_NEAR(model.backlog(kPods), 54, 4);
  model.Advance(20, 0);
  EXPECT_NEAR(model.backlog(kPods), 0, 0.1);
  EXPECT_EQ(model.outcome().requests, 200);
}

TEST(LoadModel, WhoFindsAFullLineIsRefused) {
  ServedWorkload pods = Pods(1);
  pods.queue_limit = 4;
  LoadModel model(StationOf(pods));
  const LoadOutcome outcome = Settle(&model, 20);
  EXPECT_NEAR(outcome.failed, outcome.requests / 2, 0.01 * outcome.requests);
  EXPECT_NEAR(model.backlog(kPods), 5, 1e-9);
  EXPECT_NEAR(model.wait_s(kPods), 0.4, 0.01);
}

// A line so short that it is full below capacity as well: pods are not busier than what comes.
TEST(LoadModel, AShortLineIsFullWithoutBeingBusyAllTheTime) {
  ServedWorkload pods = Pods(1);
  pods.queue_limit = 1;
  LoadModel model(StationOf(pods));
  Settle(&model, 8);
  EXPECT_NEAR(model.backlog(kPods), 2, 0.01);
  EXPECT_LE(model.busy_slots(kPods), 0.8);
}

TEST(LoadModel, ClientsThatGiveUpAskAgain) {
  auto station = StationOf(Pods(1));
  station->timeout_s = 0.3;
  station->retries = 2;
  LoadModel model(station);
  for (int i = 0; i < 20; ++i) model.Advance(5, 3);
  const LoadOutcome outcome = Settle(&model, 3);
  // What comes depends on how many give up, and that on what comes.
  double gives_up = 0, attempts = 1;
  for (int i = 0; i < 100; ++i) {
    const double mean_s = 1 / (10 - 3 * attempts);
    gives_up = std::exp(-0.3 / mean_s);
    attempts = 1 + gives_up + gives_up * gives_up;
  }
  EXPECT_NEAR(model.calls_per_s(kPods), 3 * attempts, 0.05);
  EXPECT_NEAR(outcome.failed / outcome.requests, std::pow(gives_up, 3), 0.002);
  EXPECT_EQ(outcome.late, 0);  // The qos is longer than anybody waits.
}

TEST(LoadModel, LateIsWhoIsAnsweredAfterTheQos) {
  auto station = StationOf(Pods(1));
  station->timeout_s = 1.5;
  LoadModel model(station);
  const LoadOutcome outcome = Settle(&model, 8);
  EXPECT_NEAR(outcome.failed / outcome.requests, std::exp(-3), 0.003);
  EXPECT_NEAR(outcome.late / outcome.requests, std::exp(-2) - std::exp(-3), 0.003);
}

TEST(LoadModel, PodsServeOnceTheyAreReadyAndCostFromTheBeginning) {
  ServedWorkload pods = Pods(1);
  pods.start_low_s = 2;
  pods.start_high_s = 4;
  LoadModel model(StationOf(pods));
  model.SetReplicas(kPods, 3);
  EXPECT_EQ(model.replicas(kPods), 3);
  model.Advance(2.9, 5);
  EXPECT_EQ(model.ready(kPods), 1);
  model.Advance(0.2, 5);
  EXPECT_EQ(model.ready(kPods), 3);
  EXPECT_NEAR(model.outcome().pod_s, 3 * 3.1, 1e-9);
  EXPECT_NEAR(model.outcome().core_s, 0.25 * 3 * 3.1, 1e-9);
  EXPECT_NEAR(Settle(&model, 24).mean_s(), 0.5, 0.002);
  // Two that go serve who is in their line, 4 calls of 100 ms, and cost as long.
  const double before = model.outcome().pod_s;
  model.SetReplicas(kPods, 1);
  EXPECT_NEAR(model.outcome().pod_s - before, 2 * 0.4, 0.01);
  EXPECT_EQ(model.ready(kPods), 1);
  // A pod that is not ready yet goes first, and has no calls in its line.
  model.SetReplicas(kPods, 2);
  const double then = model.outcome().pod_s;
  model.SetReplicas(kPods, 1);
  EXPECT_EQ(model.outcome().pod_s, then);
  model.Advance(10, 5);
  EXPECT_EQ(model.ready(kPods), 1);
}

TEST(LoadModel, WithoutPodsAllRequestsFail) {
  LoadModel model(StationOf(Pods(1)));
  model.SetReplicas(kPods, 0);
  model.Advance(10, 5);
  EXPECT_NEAR(model.outcome().failed, 50, 1e-9);
  EXPECT_EQ(model.outcome().pod_s, 0);
}

TEST(LoadModel, NoCallIsLostWherePodsJoinOneByOne) {
  ServedWorkload pods = Pods(1);
  pods.replicas_max = 40;
  LoadModel model(StationOf(pods));
  double served = 0;
  for (int i = 2; i <= 30; ++i) {  // More groups of like pods than are told apart.
    model.Advance(1, 400);
    served += model.busy_slots(kPods) * 10;
    model.SetReplicas(kPods, i);
  }
  EXPECT_NEAR(model.backlog(kPods), 29 * 400 - served, 0.01 * 29 * 400);
}

TEST(LoadModel, ModelsThatShareLawsCopyEachOther) {
  const auto laws = std::make_shared<const LoadLaws>(StationOf(Pods(3)));
  LoadModel one(laws), other(laws);
  one.Advance(7, 60);
  one.SetReplicas(kPods, 5);
  other.CopyFrom(one);
  for (LoadModel* model : {&one, &other}) {
    model->Advance(3, 55);
    model->SetReplicas(kPods, 4);
    model->Advance(30, 20);
  }
  EXPECT_EQ(one.outcome().response_sum_s, other.outcome().response_sum_s);
  EXPECT_EQ(one.outcome().late, other.outcome().late);
  EXPECT_EQ(one.outcome().pod_s, other.outcome().pod_s);
  EXPECT_EQ(one.outcome().core_s, other.outcome().core_s);
  EXPECT_EQ(one.backlog(kPods), other.backlog(kPods));
  EXPECT_EQ(one.ResponseQuantileS(0.9), other.ResponseQuantileS(0.9));
  EXPECT_EQ(one.now_s(), other.now_s());
  // From the start again, nothing is left of that.
  one.Start(std::vector<int>{0, 2});
  EXPECT_EQ(one.replicas(kPods), 2);
  EXPECT_EQ(one.outcome().requests, 0);
  EXPECT_EQ(one.ResponseQuantileS(0.9), 0);
  EXPECT_EQ(one.backlog(kPods), 0);
}

// The client calls `front`, which calls `count` others: in parallel, or one after another.
enum class Order { kParallel, kSeries };

std::shared_ptr<ServedApplication> Fan(int count, Order order) {
  auto graph = std::make_shared<CallGraph>();
  auto fan = std::make_shared<ServedApplication>();
  const int groups = order == Order::kParallel ? count : 1;
  graph->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 1 + groups}};
  graph->groups = {{0, 1}};
  graph->sequence = {1};
  fan->workloads = {{.name = "client", .scaled = false}, Pods(1)};
  fan->service_ms = {0, 100};
  for (int i = 0; i < count; ++i) {
    graph->calls.push_back(
        {.workload = 2 + i, .caller = 1, .first_group = 1 + groups, .last_group = 1 + groups});
    if (order == Order::kParallel) graph->groups.push_back({1 + i, 2 + i});
    graph->sequence.push_back(2 + i);
    fan->workloads.push_back(Pods(1));
    fan->service_ms.push_back(100);
  }
  if (order == Order::kSeries) graph->groups.push_back({1, 1 + count});
  graph->endpoints = {
      {.name = "page", .root = 0, .end = 2 + count, .rate_per_second = 1, .qos_ms = 1000}};
  fan->calls = graph;
  return fan;
}

TEST(LoadModel, ParallelCallsTakeAsLongAsTheSlowest) {
  // Where no call waits, calls are exponential: the slowest of n takes the sum of 1 / i, with the
  // variance of the sum of 1 / i^2.
  double mean = 0, variance = 0;
  for (int count = 1; count <= 4; ++count) {
    mean += 0.1 / count;
    variance += 0.01 / count / count;
    LoadModel model(Fan(count, Order::kParallel));
    EXPECT_NEAR(Settle(&model, 0.001).mean_s(), 0.1 + mean, 0.003) << count;
    EXPECT_NEAR(model.response(0).variance, 0.01 + variance, 0.001) << count;
  }
}

TEST(LoadModel, CallsOneAfterAnotherAddUpWithTheirNetwork) {
  auto fan = Fan(3, Order::kSeries);
  fan->network_ms = 5;
  LoadModel model(fan);
  EXPECT_NEAR(Settle(&model, 0.001).mean_s(), 4 * (0.1 + 0.01), 1e-4);
  EXPECT_NEAR(model.response(0).variance, 4 * 0.01, 1e-4);
  auto parallel = Fan(1, Order::kParallel);
  parallel->network_ms = 5;
  LoadModel chain(parallel);
  EXPECT_NEAR(Settle(&chain, 0.001).mean_s(), 2 * (0.1 + 0.01), 1e-4);
}

TEST(LoadModel, WhoIsHeldUpUpstreamDoesNotComeDownstream) {
  for (const Order order : {Order::kSeries, Order::kParallel}) {
    auto fan = Fan(2, order);
    fan->workloads[2].replicas = fan->workloads[3].replicas = 4;
    LoadModel model(fan);
    model.Advance(10, 30);
    model.Advance(10, 30);
    EXPECT_NEAR(model.calls_per_s(1), 30, 1e-9);
    EXPECT_NEAR(model.calls_per_s(2), 10, 0.2);
    EXPECT_NEAR(model.calls_per_s(3), 10, 0.2);
    EXPECT_NEAR(model.backlog(1), 400, 8);
    EXPECT_LT(model.backlog(2), 5);
    // And comes later: its pod goes on serving who is in its line, another one who is new.
    model.SetReplicas(1, 2);
    model.Advance(1, 5);
    model.Advance(5, 5);
    EXPECT_NEAR(model.calls_per_s(2), 12.5, 0.5);
  }
}

TEST(LoadModel, EndpointsShareRequestsByTheirRates) {
  auto mix = StationOf(Pods(1));
  auto graph = std::make_shared<CallGraph>(*mix->calls);
  graph->calls.push_back({.workload = 0, .first_group = 1, .last_group = 2});
  graph->calls.push_back({.workload = 1, .caller = 2, .first_group = 2, .last_group = 2});
  graph->groups.push_back({1, 2});
  graph->sequence.push_back(3);
  graph->endpoints[0].rate_per_second = 3;
  graph->endpoints.push_back(
      {.name = "other", .root = 2, .end = 4, .rate_per_second = 1, .qos_ms = 2000});
  mix->calls = graph;
  mix->service_ms = {0, 100, 0, 200};
  LoadModel model(mix);
  // Calls of 125 ms on average, mean square 2 (.75 0.1^2 + .25 0.2^2): Pollaczek and Khinchine.
  const double rho = 4 * 0.125, wait = 4 * 2 * (0.75 * 0.01 + 0.25 * 0.04) / (2 * (1 - rho));
  EXPECT_NEAR(Settle(&model, 4).mean_s(), 0.125 + wait, 0.002);
  EXPECT_NEAR(model.response(0).mean, 0.1 + wait, 0.002);
  EXPECT_NEAR(model.response(1).mean, 0.2 + wait, 0.002);
}

}  // namespace
}  // namespace rudderfish
