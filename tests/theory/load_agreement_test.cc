// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "model/load_model.h"
#include "model/queueing.h"
#include "scenario/scenario.h"
#include "sim/event_simulator.h"
#include "tests/support/source_path.h"

// What the model of load believes against what happens, request by request.

namespace rudderfish {
namespace {

// An application of 2 to 7 workloads in chains and parallel groups. Of `shared`, calls share the
// slots of their pod at two of three workloads.
ServedApplication RandomApplication(Rng* rng, bool shared) {
  auto graph = std::make_shared<CallGraph>();
  ServedApplication application;
  application.workloads = {{.name = "client", .replicas = 0, .scaled = false}};
  graph->calls = {{.workload = 0}};
  application.service_ms = {0};
  const int count = rng->Between(2, 7);
  std::vector<std::vector<CallId>> callees(count + 1);
  for (int i = 1; i <= count; ++i) {
    // Callers come before callees: the last one that has room, or any.
    const CallId caller = i == 1 ? 0 : rng->Between(1, i - 1);
    graph->calls.push_back({.workload = i, .caller = caller});
    callees[caller].push_back(i);
    const double service_ms = std::exp(rng->Uniform(std::log(2.0), std::log(60.0)));
    application.service_ms.push_back(service_ms);
    constexpr double kScvs[] = {0, .25, .5, 1, 1, 2};
    ServedWorkload workload{.name = fmt::format("w{}", i),
                            .slots = rng->Between(1, 4),
                            .service = ServiceLaw::OfScv(kScvs[rng->Below(6)]),
                            .balancing = static_cast<Balancing>(rng->Below(3)),
                            .replicas = rng->Between(1, 6)};
    if (shared && rng->Below(3) > 0) workload.discipline = Discipline::kShared;
    application.workloads.push_back(workload);
  }
  // Preorder, as CallGraph wants it: callers before callees is enough here.
  for (int i = 0; i <= count; ++i) {
    Call& call = graph->calls[i];
    call.first_group = static_cast<int>(graph->groups.size());
    const bool parallel = rng->Below(2) == 0;
    for (size_t k = 0; k < callees[i].size(); ++k) {
      if (k == 0 || parallel) {
        const int at = static_cast<int>(graph->sequence.size());
        graph->groups.push_back({at, at});
      }
      graph->sequence.push_back(callees[i][k]);
      ++graph->groups.back().last;
    }
    call.last_group = static_cast<int>(graph->groups.size());
  }
  graph->endpoints = {
      {.name = "page", .root = 0, .end = count + 1, .rate_per_second = 1, .qos_ms = 500}};
  application.calls = std::move(graph);
  application.network_ms = rng->Uniform(0, 2);
  return application;
}

struct Agreement {
  double mean = 0, p95 = 0;  // Relative errors of the model.
};

Agreement CompareOnce(const ServedApplication& served, const RateCurve& curve, int runs,
                      uint64_t seed) {
  const auto application = std::make_shared<const ServedApplication>(served);
  const double length_s = curve.length_s();
  EventSimulator simulator(application);
  // The same load several times over, so that chance is small beside what is to be seen.
  ResponseHistogram responses;
  double sum_s = 0, completed = 0;
  for (int run = 0; run < runs; ++run) {
    simulator.Start(std::make_shared<const RateCurve>(curve), seed * 100 + run);
    simulator.AdvanceTo(static_cast<int64_t>(length_s * 1e9));
    // All requests that came are answered in the end: the curve ends at 0, so no more arrive.
    simulator.AdvanceTo(static_cast<int64_t>((length_s + 10'000) * 1e9));
    responses.Add(simulator.responses());
    sum_s += static_cast<double>(simulator.requests().response_ns) / 1e9;
    completed += static_cast<double>(simulator.requests().completed);
  }
  // As long at once as the rate is the same: what a step may be is for the model to know.
  LoadModel model(application);
  double begun_s = 0, rate = curve.MeanOf(0, 1);
  for (double t = 1; t + 1 <= length_s; t += 1) {
    const double next = curve.MeanOf(t, t + 1);
    if (next == rate) continue;
    model.Advance(t - begun_s, rate);
    begun_s = t;
    rate = next;
  }
  model.Advance(std::floor(length_s) - begun_s, rate);
  return {model.outcome().mean_s() / (sum_s / completed) - 1,
          model.ResponseQuantileS(.95) / responses.QuantileS(.95) - 1};
}

RateCurve CurveFrom(std::initializer_list<std::pair<double, double>> parts) {
  RateCurve curve;
  curve.per_s.clear();
  for (const auto& [seconds, rate] : parts)
    curve.per_s.insert(curve.per_s.end(), static_cast<size_t>(seconds), rate);
  curve.per_s.push_back(0);
  return curve;
}

double MedianOf(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// So many random applications; RUDDERFISH_LOADS names more of them.
int ScenarioCount() {
  const char* count = std::getenv("RUDDERFISH_LOADS");
  return count == nullptr ? 30 : std::max(1, std::atoi(count));
}

struct Kind {
  const char* name;
  double least, most;  // Of what can be served.
  bool bursts = false, shared = false;
};

void ExpectAgreement(const Kind& kind) {
  const auto& [what, least, most, bursts, shared] = kind;
  const int scenarios = ScenarioCount();
  std::vector<double> means, p95s;
  for (int i = 0; i < scenarios; ++i) {
    Rng rng(11, i);
    const ServedApplication application = RandomApplication(&rng, shared);
    std::vector<int> replicas;
    for (const ServedWorkload& workload : application.workloads)
      replicas.push_back(workload.replicas);
    const double capacity = application.CapacityPerS(replicas);
    const double rate = rng.Uniform(least, most) * capacity;
    const double burst = bursts ? rng.Uniform(1.05, 1.6) * capacity : rate;
    // Bursts are short: it takes many for chance to be small.
    const double before_s = std::ceil(bursts ? 200 / rate + 5 : 10'000 / rate);
    const double after_s = std::ceil(bursts ? 300 / rate + 10 : 10'000 / rate);
    const RateCurve curve = CurveFrom({{before_s, rate}, {20, burst}, {after_s, rate}});
    const Agreement agreement = CompareOnce(application, curve, bursts ? 40 : 2, i + 1);
    means.push_back(agreement.mean);
    p95s.push_back(agreement.p95);
  }
  const double mean = MedianOf(means), p95 = MedianOf(p95s);
  ::testing::Test::RecordProperty(fmt::format("{}_mean", what), fmt::format("{:.4f}", mean));
  ::testing::Test::RecordProperty(fmt::format("{}_p95", what), fmt::format("{:.4f}", p95));
  EXPECT_LE(mean, .05) << what << ", p95 " << p95;
  EXPECT_LE(p95, .10) << what;
}

TEST(LoadModel, AgreesWithTheEventSimulatorUpToEightyPercentOfLoad) {
  ExpectAgreement({"calm", .2, .8});
}

TEST(LoadModel, AgreesWithTheEventSimulatorThroughBurstsBeyondAll) {
  ExpectAgreement({.name = "bursts", .least = .3, .most = .8, .bursts = true});
}

TEST(LoadModel, AgreesWithTheEventSimulatorWhereSlotsAreShared) {
  ExpectAgreement({.name = "shared", .least = .2, .most = .8, .shared = true});
}

TEST(LoadModel, AgreesWithTheEventSimulatorThroughBurstsWhereSlotsAreShared) {
  ExpectAgreement(
      {.name = "shared_bursts", .least = .3, .most = .8, .bursts = true, .shared = true});
}

// Pages that call one workload up to ten times.
TEST(LoadModel, AgreesWithTheEventSimulatorOnTheBoutique) {
  const Result<Scenario> scenario = LoadScenario(SourcePath("scenarios/online-boutique.yaml"));
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  ServedApplication application = ApplicationOf(*scenario, 0);
  for (ServedWorkload& workload : application.workloads) {
    if (workload.scaled) workload.replicas = 5;
  }
  const Agreement agreement = CompareOnce(application, CurveFrom({{600, 100}}), 1, 1);
  EXPECT_NEAR(agreement.mean, 0, .02);
  EXPECT_NEAR(agreement.p95, 0, .04);
}

TEST(LoadModel, IsErlangsInEquilibrium) {
  const ServedWorkload workload{.name = "w", .slots = 4};
  LoadModel model(std::make_shared<const ServedApplication>(SingleStation(workload, 1000)));
  model.Advance(10'000, 3.2);
  EXPECT_NEAR(model.backlog(1), 3.2 * 1.745541, .02);
  EXPECT_NEAR(model.busy_slots(1), 3.2, 1e-3);
  LoadModel calm(std::make_shared<const ServedApplication>(SingleStation(workload, 10)));
  calm.Advance(5000, 320);
  EXPECT_NEAR(calm.outcome().mean_s() / .01745541, 1, .01);
  EXPECT_NEAR(calm.ResponseQuantileS(.95) / MmcResponseQuantileS({320, 100, 4}, .95), 1, .03);
}

TEST(LoadModel, CarriesABacklogOverUntilReplicasHaveServedIt) {
  ServedWorkload workload{.name = "w", .slots = 1, .start_low_s = 20, .start_high_s = 40};
  LoadModel model(std::make_shared<const ServedApplication>(SingleStation(workload, 100)));
  model.Advance(60, 15);
  EXPECT_NEAR(model.backlog(1), 300, 15);
  model.SetReplicas(1, 3);
  EXPECT_EQ(model.ready(1), 1);
  model.Advance(29, 15);
  EXPECT_EQ(model.ready(1), 1);
  model.Advance(2, 15);
  EXPECT_EQ(model.ready(1), 3);
  const double backlog = model.backlog(1);
  EXPECT_GT(backlog, 440);
  // The line is at the old pod, which now gets a third of the load: it shrinks by 5 a second.
  model.Advance(20, 15);
  EXPECT_NEAR(model.backlog(1), backlog - 100, 12);
  EXPECT_NEAR(model.outcome().pod_s, 60 + 51 * 3, 1e-6);
}

}  // namespace
}  // namespace rudderfish
