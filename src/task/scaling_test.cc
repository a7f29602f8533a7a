// SPDX-License-Identifier: Apache-2.0
#include "task/scaling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/rng.h"

namespace rudderfish {
namespace {

// A chain of `order.size()` workloads that differ; `order` says at which place each one stands.
std::shared_ptr<const ServedApplication> ChainOf(const std::vector<int>& order) {
  const auto count = static_cast<int>(order.size());
  auto graph = std::make_shared<CallGraph>();
  auto chain = std::make_shared<ServedApplication>();
  chain->workloads.resize(count + 1);
  chain->workloads[0] = {.name = "client", .replicas = 1, .scaled = false};
  graph->calls.push_back({.workload = 0, .first_group = 0, .last_group = 1});
  graph->groups.push_back({0, 1});
  chain->service_ms.push_back(0);
  for (int i = 0; i < count; ++i) {
    const WorkloadId w = 1 + order[i];
    const bool last = i + 1 == count;
    graph->sequence.push_back(i + 1);
    graph->calls.push_back(
        {.workload = w, .caller = i, .first_group = i + 1, .last_group = last ? i + 1 : i + 2});
    if (!last) graph->groups.push_back({i + 1, i + 2});
    chain->service_ms.push_back(20 + 13 * i);
    chain->workloads[w] = {.name = std::string(1, static_cast<char>('a' + i)),
                           .slots = 1 + i % 3,
                           .service = ServiceLaw::OfScv(0.5),
                           .replicas = 3,
                           .replicas_max = 8 + i,
                           .start_low_s = 10,
                           .start_high_s = 20,
                           .cpu_millis = 100 + 70 * i};
  }
  graph->endpoints = {
      {.name = "page", .root = 0, .end = count + 1, .rate_per_second = 1, .qos_ms = 900}};
  chain->calls = graph;
  return chain;
}

std::shared_ptr<const CapacityLadder> LadderOf(const std::vector<int>& order = {0, 1, 2, 3}) {
  return std::make_shared<const CapacityLadder>(ChainOf(order), 0.01);
}

// A task that has seen so many requests per second, an interval each.
struct Running {
  explicit Running(std::shared_ptr<const CapacityLadder> ladder, const std::vector<double>& rates,
                   const ScalingLimits& limits = {}, ScalingRows rows = ScalingRows::kRungs)
      : task(std::move(ladder), 15, limits, rows),
        history(task.NewHistory()),
        replicas(task.ladder().workloads(), 3) {
    for (const double rate : rates) See(rate);
  }

  void See(double rate) {
    history.Observe(
        {.has_samples = true, .requests_per_s = rate, .replicas = replicas, .ready = replicas});
    task.Space(history, price, &space);
  }

  GraphBatch Encoded() const {
    GraphBatch batch{.widths = ScalingTask::Widths(task.rows())};
    task.Encode(history, space, &batch);
    return batch;
  }

  ScalingTask task;
  ScalingHistory history;
  ScalingSpace space;
  std::vector<int> replicas;
  double price = 20;
};

int FeatureAt(const std::vector<FeatureDescription>& features, std::string_view name) {
  for (size_t i = 0; i < features.size(); ++i) {
    if (features[i].name == name) return static_cast<int>(i);
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(ScalingTask, CandidatesReachFromTooFewToTooManyAndHoldIsAmongThem) {
  const Running running(LadderOf(), {40, 41, 42});
  const CapacityLadder& ladder = running.task.ladder();
  const std::vector<ScalingCandidate>& list = running.space.candidates;
  ASSERT_GT(list.size(), 3u);
  for (size_t i = 1; i < list.size(); ++i) EXPECT_GT(list[i].rung, list[i - 1].rung);
  EXPECT_LT(ladder.ServesPerS(list.front().rung), running.history.far_per_s());
  EXPECT_GT(ladder.ServesPerS(list.back().rung), running.history.far_per_s());
  EXPECT_EQ(list[running.space.hold].rung, running.history.rung_asked());
  EXPECT_LE(running.space.count(), ScalingTask::kMostCandidates);
}

TEST(ScalingTask, FeaturesAreWhatTheModelPredicts) {
  const Running running(LadderOf(), {40, 42, 44, 47, 51, 54});
  const CapacityLadder& ladder = running.task.ladder();
  const GraphBatch batch = running.Encoded();
  const auto& features = ScalingTask::Features().candidate;
  const int use = FeatureAt(features, "use_far"), late = FeatureAt(features, "late_90"),
            cost = FeatureAt(features, "cost"), regret = FeatureAt(features, "regret");
  double least = 1e9;
  for (const ScalingCandidate& one : running.space.candidates)
    least = std::min(least, one.cost + running.price * one.late_mean);
  const auto seen = [&](double value, int feature) {
    return std::clamp(value / features[feature].scale, -8.0, 8.0);
  };
  for (int i = 0; i < running.space.count(); ++i) {
    const ScalingCandidate& one = running.space.candidates[i];
    const float* row = batch.candidates.data() + static_cast<ptrdiff_t>(i) * batch.widths.candidate;
    const double far = running.history.far_per_s();
    EXPECT_NEAR(row[use], seen(far / ladder.CapacityPerS(one.rung), use), 1e-4);
    const double share = ladder.LateShare(one.rung, far * std::exp(running.history.error(3)));
    EXPECT_NEAR(row[late], seen(1 + std::log10(share + 1e-4) / 4, late), 1e-4);
    EXPECT_NEAR(
        row[cost],
        seen(std::log(ladder.cores(one.rung) / ladder.cores(running.space.needed_rung)), cost),
        1e-4);
    EXPECT_NEAR(row[regret], seen(one.cost + running.price * one.late_mean - least, regret), 1e-4);
    EXPECT_GE(row[regret], 0);
  }
}

TEST(ScalingTask, LateRequestsFallAndCostGrowsFromRungToRung) {
  const Running running(LadderOf(), {60, 60, 60});
  const std::vector<ScalingCandidate>& list = running.space.candidates;
  for (size_t i = 1; i < list.size(); ++i) {
    EXPECT_GT(list[i].cost, list[i - 1].cost);
    for (int s = 0; s < kScenarios; ++s) EXPECT_LE(list[i].late[s], list[i - 1].late[s] + 0.01);
  }
}

TEST(ScalingTask, RelabellingWorkloadsRelabelsTheAnswer) {
  const std::vector<int> order = {2, 0, 3, 1};
  const std::vector<double> rates = {30, 34, 38, 43, 41, 55};
  Running plain(LadderOf({0, 1, 2, 3}), rates);
  Running moved(LadderOf(order), rates);
  const GraphBatch a = plain.Encoded(), b = moved.Encoded();
  ASSERT_EQ(a.candidates.size(), b.candidates.size());
  for (size_t i = 0; i < a.candidates.size(); ++i)
    EXPECT_NEAR(a.candidates[i], b.candidates[i], 1e-4) << i;
  for (size_t i = 0; i < a.context.size(); ++i) EXPECT_NEAR(a.context[i], b.context[i], 1e-4) << i;
  for (int choice = 0; choice < plain.space.count(); ++choice) {
    std::vector<int> first = plain.replicas, second = moved.replicas;
    plain.task.Decode(plain.space, choice, first);
    moved.task.Decode(moved.space, choice, second);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(first[1 + i], second[1 + order[i]]);
  }
}

// A row a workload that is scaled, in the order of the application, and who calls whom.
TEST(ScalingTask, CallGraphShowsWhatTheModelBelievesOfEachWorkload) {
  const Running running(LadderOf(), {40, 42, 44, 47}, {}, ScalingRows::kCallGraph);
  const CapacityLadder& ladder = running.task.ladder();
  const ServedApplication& application = ladder.application();
  const GraphBatch batch = running.Encoded();
  const auto& features = ScalingTask::Features(ScalingRows::kCallGraph).workload;
  ASSERT_EQ(batch.workload_begin, (std::vector<int32_t>{0, 4}));
  ASSERT_EQ(batch.calls.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(batch.calls[i].a, i);
    EXPECT_EQ(batch.calls[i].b, i + 1);
    EXPECT_FLOAT_EQ(batch.calls[i].weight, 1);  // All calls of the callee come from there.
  }
  const std::vector<double> demand_s = application.DemandS();
  double shares = 0;
  for (int w = 1; w <= 4; ++w) {
    const float* row = batch.workloads.data() + static_cast<ptrdiff_t>(w - 1) * 16;
    const auto seen = [&](std::string_view name) {
      const int feature = FeatureAt(features, name);
      return row[feature] * features[feature].scale;
    };
    const int needed = ladder.Replicas(running.space.needed_rung)[w];
    EXPECT_NEAR(
        seen("use_needed"),
        running.history.far_per_s() * demand_s[w] / (application.workloads[w].slots * needed),
        1e-4);
    EXPECT_NEAR(seen("grain"), 1.0 / needed, 1e-5);
    EXPECT_EQ(seen("is_entry"), w == 1);
    shares += seen("cost_share");
  }
  EXPECT_GT(shares, 0.9);  // The client has a pod that is not scaled.
  EXPECT_LE(shares, 1.0001);
}

TEST(ScalingTask, RelabellingWorkloadsRelabelsTheCallGraph) {
  const std::vector<int> order = {2, 0, 3, 1};
  const std::vector<double> rates = {30, 34, 38, 43};
  const GraphBatch a = Running(LadderOf(), rates, {}, ScalingRows::kCallGraph).Encoded();
  const GraphBatch b = Running(LadderOf(order), rates, {}, ScalingRows::kCallGraph).Encoded();
  for (int i = 0; i < 4; ++i) {
    for (int c = 0; c < 16; ++c)
      EXPECT_NEAR(a.workloads[i * 16 + c], b.workloads[order[i] * 16 + c], 1e-4) << i << " " << c;
  }
  std::set<std::pair<int, int>> calls;
  for (const GraphEdge& edge : b.calls) calls.insert({edge.a, edge.b});
  for (const GraphEdge& edge : a.calls) EXPECT_TRUE(calls.contains({order[edge.a], order[edge.b]}));
}

TEST(ScalingTask, RungsAloneAreTheSameWhetherTheCallGraphIsShown) {
  const GraphBatch with = Running(LadderOf(), {40, 41}, {}, ScalingRows::kCallGraph).Encoded();
  const GraphBatch without = Running(LadderOf(), {40, 41}).Encoded();
  EXPECT_TRUE(with.candidates == without.candidates);
  EXPECT_TRUE(with.context == without.context);
  EXPECT_TRUE(without.workloads.empty());
  EXPECT_TRUE(without.calls.empty());
  EXPECT_NE(ScalingTask::FeatureHash(), ScalingTask::FeatureHash(ScalingRows::kCallGraph));
}

TEST(ScalingTask, DecodeStaysWithinBoundsAndQuota) {
  const ScalingLimits limits{.cpu_millis_max = 4200};
  Running running(LadderOf(), {20, 90, 150, 400, 2000}, limits);
  const ServedApplication& application = running.task.ladder().application();
  for (int choice = 0; choice < running.space.count(); ++choice) {
    if (choice == running.space.hold) continue;
    std::vector<int> replicas = running.replicas;
    running.task.Decode(running.space, choice, replicas);
    int64_t cpu_millis = 0;
    for (size_t w = 1; w < replicas.size(); ++w) {
      EXPECT_GE(replicas[w], application.workloads[w].replicas_min);
      EXPECT_LE(replicas[w], application.workloads[w].replicas_max);
      cpu_millis += replicas[w] * application.workloads[w].cpu_millis;
    }
    EXPECT_LE(cpu_millis, limits.cpu_millis_max);
    EXPECT_EQ(replicas[0], 3);  // The client is not scaled.
  }
}

TEST(ScalingTask, HoldingChangesNothingEvenBesideTheLadder) {
  Running running(LadderOf(), {40, 40});
  running.replicas = {0, 5, 3, 4, 6};
  running.See(40);
  std::vector<int> replicas = running.replicas;
  running.task.Decode(running.space, running.space.hold, replicas);
  EXPECT_EQ(replicas, running.replicas);
}

TEST(ScalingTask, WhileItCoolsDownOnlyHoldingIsLeft) {
  Running running(LadderOf(), {40, 40}, {.cool_down_s = 60});
  EXPECT_GT(running.space.count(), 1);
  running.history.Decided(running.history.rung_asked(), running.history.rung_asked() + 1);
  for (int interval = 1; interval <= 6; ++interval) {
    running.See(40);
    EXPECT_EQ(running.space.count() == 1, interval <= 4) << interval;
  }
}

TEST(ScalingTask, ARuleTakesTheRungForItsRate) {
  Running running(LadderOf(), {40, 40, 40, 80, 40, 40, 40, 40, 40});
  const CapacityLadder& ladder = running.task.ladder();
  const auto rate_of = [&](const ScalingRule& rule) {
    return ladder.ServesPerS(
        running.space.candidates[ScalingTask::ChoiceOf(rule, running.history, running.space)].rung);
  };
  EXPECT_GE(rate_of({1.15, 0}), running.history.far_per_s());
  EXPECT_LT(rate_of({1.15, 0}), 80);
  EXPECT_GE(rate_of({1.15, 300}), 80);
}

TEST(ScalingHistory, SeesPeaksAndHowOftenTheyCame) {
  std::vector<double> rates;
  for (int burst = 0; burst < 3; ++burst) {
    rates.insert(rates.end(), 12, 20.0);
    rates.insert(rates.end(), 4, 90.0);
  }
  rates.insert(rates.end(), 24, 20.0);
  const Running running(LadderOf(), rates);
  EXPECT_EQ(running.history.peak_30m_per_s(), 90);
  EXPECT_EQ(running.history.peak_10m_per_s(), 90);
  EXPECT_EQ(running.history.peak_5m_per_s(), 20);
  EXPECT_EQ(running.history.least_30m_per_s(), 20);
  EXPECT_EQ(running.history.rises(), 3);
  EXPECT_NEAR(running.history.high_share(), 12.0 / 72, 1e-9);
}

TEST(ScalingHistory, ForgetsWhatIsLongPast) {
  Running running(LadderOf(), {90});
  Rng rng(1);
  std::vector<double> rates;
  for (int i = 0; i < 700; ++i) {
    rates.push_back(rng.Uniform(10, 60));
    running.See(rates.back());
    const auto last = [&](size_t count) {
      return std::span(rates).last(std::min(count, rates.size()));
    };
    EXPECT_EQ(running.history.peak_5m_per_s(), i < 19 ? 90 : std::ranges::max(last(20)));
    EXPECT_EQ(running.history.peak_10m_per_s(), i < 39 ? 90 : std::ranges::max(last(40)));
    EXPECT_EQ(running.history.peak_30m_per_s(), i < 119 ? 90 : std::ranges::max(last(120)));
    EXPECT_EQ(running.history.least_30m_per_s(), std::ranges::min(last(120)));
  }
}

TEST(ScalingHistory, WhatCannotBeServedWaitsUntilThereIsRoom) {
  Running running(LadderOf(), {20, 20, 20});
  EXPECT_EQ(running.history.backlog_requests(), 0);
  const double capacity = running.history.capacity_per_s();
  for (int i = 0; i < 3; ++i) running.See(capacity + 10);
  EXPECT_NEAR(running.history.backlog_requests(), 3 * 10 * 15, 1e-6);
  running.See(capacity - 20);
  EXPECT_NEAR(running.history.backlog_requests(), 10 * 15, 1e-6);
  running.See(capacity - 20);
  EXPECT_EQ(running.history.backlog_requests(), 0);
}

}  // namespace
}  // namespace rudderfish
