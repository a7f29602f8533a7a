// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "task/scaling.h"

// Every number of a scaling question, from what the ladder and the history say and the definitions
// in task/scaling.h; workloads from the call graph, counted by hand.

namespace rudderfish {
namespace {

// Three of four requests browse: front, then db. One of four buys: front, then cart, which asks
// db, and db again. `at`: where client, front, cart and db stand.
std::shared_ptr<const ServedApplication> Store(const std::vector<WorkloadId>& at = {0, 1, 2, 3}) {
  auto graph = std::make_shared<CallGraph>();
  graph->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 2},
                  {.workload = 3, .caller = 1, .first_group = 2, .last_group = 2},
                  {.workload = 0, .first_group = 2, .last_group = 3},
                  {.workload = 1, .caller = 3, .first_group = 3, .last_group = 4},
                  {.workload = 2, .caller = 4, .first_group = 4, .last_group = 5},
                  {.workload = 3, .caller = 5, .first_group = 5, .last_group = 5},
                  {.workload = 3, .caller = 4, .first_group = 5, .last_group = 5}};
  graph->groups = {{0, 1}, {1, 2}, {2, 3}, {3, 5}, {5, 6}};
  graph->sequence = {1, 2, 4, 5, 7, 6};
  graph->endpoints = {{.name = "browse", .root = 0, .end = 3, .rate_per_second = 3, .qos_ms = 400},
                      {.name = "buy", .root = 3, .end = 8, .rate_per_second = 1, .qos_ms = 1500}};
  for (Call& call : graph->calls) call.workload = at[call.workload];
  auto store = std::make_shared<ServedApplication>();
  store->calls = graph;
  const std::vector<ServedWorkload> workloads = {
      {.name = "client", .replicas = 1, .scaled = false},
      {.name = "front",
       .slots = 2,
       .replicas_max = 9,
       .start_low_s = 10,
       .start_high_s = 20,
       .cpu_millis = 200},
      {.name = "cart", .replicas_max = 5, .start_low_s = 30, .start_high_s = 50, .cpu_millis = 300},
      {.name = "db", .slots = 4, .replicas_max = 4, .start_high_s = 10, .cpu_millis = 500}};
  store->workloads.resize(4);
  for (int w = 0; w < 4; ++w) store->workloads[at[w]] = workloads[w];
  store->service_ms = {0, 20, 10, 0, 30, 40, 15, 25};
  return store;
}

std::shared_ptr<const CapacityLadder> StoreLadder() {
  static const auto ladder = std::make_shared<const CapacityLadder>(Store(), 0.01);
  return ladder;
}

constexpr double kStepS = 15;

// A run of the store in which rates, rungs and what is ready wander.
struct WanderingStore {
  explicit WanderingStore(uint64_t seed, const ScalingLimits& limits = {},
                          const std::shared_ptr<const CapacityLadder>& rungs = StoreLadder())
      : rng(seed),
        task(rungs, kStepS, limits, ScalingRows::kCallGraph),
        history(task.NewHistory()) {}

  void Step() {
    const int highest = ladder().rungs() - 1;
    asked = std::clamp(asked + rng.Between(-2, 2), 0, highest);
    const int ready = rng.Below(2) == 0 ? asked : std::max(0, asked - rng.Between(0, 3));
    const double most = ladder().CapacityPerS(highest);
    rate = rng.Below(5) == 0 ? rng.Uniform(0, 1.4 * most) : rate * rng.Uniform(0.8, 1.2);
    if (rng.Below(12) == 0) rate = 0;
    history.Observe({.has_samples = true,
                     .requests_per_s = rate,
                     .replicas = ladder().Replicas(asked),
                     .ready = ladder().Replicas(ready)});
    task.Space(history, price, &space);
    batch = GraphBatch{.widths = ScalingTask::Widths(ScalingRows::kCallGraph)};
    task.Encode(history, space, &batch);
    history.Decided(asked, asked + rng.Between(-1, 1));
  }
  const CapacityLadder& ladder() const { return task.ladder(); }

  Rng rng;
  ScalingTask task;
  ScalingHistory history;
  ScalingSpace space;
  GraphBatch batch;
  int asked = 3;
  double rate = 20, price = 30;
};

using Numbers = std::map<std::string_view, double>;

void ExpectNumbers(const float* row, const std::vector<FeatureDescription>& features,
                   const Numbers& numbers) {
  ASSERT_EQ(features.size(), numbers.size());
  for (size_t i = 0; i < features.size(); ++i) {
    ASSERT_TRUE(numbers.contains(features[i].name)) << features[i].name;
    const double value = std::clamp(numbers.at(features[i].name) / features[i].scale, -8.0, 8.0);
    EXPECT_NEAR(row[i], value, 1e-4 * (1 + std::abs(value))) << features[i].name;
  }
}

double LogOf(double rate) { return std::log(std::max(rate, 0.05)); }
double LateNumber(double share) { return 1 + std::log10(share + 1e-4) / 4; }

// The medians of the forecast count most; the peak of ten minutes is one in fifty.
double LateMean(const CapacityLadder& ladder, const ScalingHistory& h, int rung) {
  constexpr double kLikely[] = {0.25, 0.34, 0.2, 0.12, 0.07};
  const double far = std::max(h.far_per_s(), 0.05), near = std::max(h.near_per_s(), 0.05);
  double then = 0.02 * ladder.LateShare(rung, std::max(h.peak_10m_per_s(), 0.05));
  for (int s = 0; s < kScenarios; ++s)
    then += kLikely[s] * ladder.LateShare(rung, far * std::exp(h.error(s)));
  return (then + ladder.LateShare(std::min(rung, h.rung_ready()), near)) / 2;
}

TEST(ScalingFeatures, OfCandidatesAreWhatLadderAndHistorySay) {
  WanderingStore store(1);
  for (int step = 0; step < 150 && !::testing::Test::HasFailure(); ++step) {
    SCOPED_TRACE(step);
    store.Step();
    const CapacityLadder& ladder = store.ladder();
    const ScalingHistory& h = store.history;
    const int needed = ladder.RungFor(std::max(h.far_per_s(), 0.05)), asked = h.rung_asked();
    double least = 1e9;
    for (const ScalingCandidate& one : store.space.candidates)
      least = std::min(least, ladder.cores(one.rung) / ladder.cores(needed) +
                                  store.price * LateMean(ladder, h, one.rung));
    for (int i = 0; i < store.space.count(); ++i) {
      const int rung = store.space.candidates[i].rung;
      const double cost = ladder.cores(rung) / ladder.cores(needed);
      const double late_mean = LateMean(ladder, h, rung);
      const double serves = LogOf(ladder.ServesPerS(rung)), capacity = ladder.CapacityPerS(rung);
      const double far = std::max(h.far_per_s(), 0.05);
      const auto late_at = [&](int scenario) {
        return LateNumber(ladder.LateShare(rung, far * std::exp(h.error(scenario))));
      };
      const int more = ladder.pods(rung) - ladder.pods(asked);
      const double spare = capacity - h.near_per_s();
      const double drains = h.backlog_requests() <= 0 ? 0
                            : spare <= 0              ? 8
                                                      : h.backlog_requests() / spare / kStepS;
      ExpectNumbers(
          store.batch.candidates.data() + ptrdiff_t{i} * store.batch.widths.candidate,
          ScalingTask::Features().candidate,
          {{"regret", cost + store.price * late_mean - least},
           {"cost", std::log(cost)},
           {"cost_more", (ladder.cores(rung) - ladder.cores(asked)) / ladder.cores(needed)},
           {"serves_near", serves - LogOf(h.near_per_s())},
           {"serves_far", serves - LogOf(h.far_per_s())},
           {"serves_peak", serves - LogOf(h.peak_10m_per_s())},
           {"serves_peak_long", serves - LogOf(h.peak_30m_per_s())},
           {"serves_peak_short", serves - LogOf(h.peak_5m_per_s())},
           {"late_10", late_at(0)},
           {"late_50", late_at(1)},
           {"late_75", late_at(2)},
           {"late_90", late_at(3)},
           {"late_97", late_at(4)},
           {"late_peak", LateNumber(ladder.LateShare(rung, std::max(h.peak_10m_per_s(), 0.05)))},
           {"late_near", LateNumber(ladder.LateShare(std::min(rung, h.rung_ready()),
                                                     std::max(h.near_per_s(), 0.05)))},
           {"late_price", store.price * late_mean},
           {"use_near", h.near_per_s() / capacity},
           {"use_far", h.far_per_s() / capacity},
           {"drains", drains},
           {"holds", rung == asked},
           {"goes_up", rung > asked},
           {"goes_down", rung < asked},
           {"pods_more", std::copysign(std::log(1.0 + std::abs(more)), more)},
           {"is_needed", rung == needed},
           {"drops_starting", rung < asked && h.rung_ready() < asked},
           {"is_highest", rung == ladder.rungs() - 1},
           {"over_ready", std::log(capacity / h.capacity_per_s())}});
    }
  }
}

TEST(ScalingFeatures, OfTheLoadAreWhatTheHistorySays) {
  WanderingStore store(2);
  for (int step = 0; step < 150 && !::testing::Test::HasFailure(); ++step) {
    SCOPED_TRACE(step);
    const int since_up = store.history.steps_since_up() + 1,
              since_down = store.history.steps_since_down() + 1;
    const ScalingHistory& h = store.history;
    store.Step();
    const CapacityLadder& ladder = store.ladder();
    const int needed = ladder.RungFor(std::max(h.far_per_s(), 0.05)), asked = h.rung_asked();
    const double near = LogOf(h.near_per_s());
    ExpectNumbers(
        store.batch.context.data(), ScalingTask::Features().context,
        {{"price", std::log10(31)},
         {"trend", LogOf(h.far_per_s()) - near},
         {"error_10", h.error(0)},
         {"error_50", h.error(1)},
         {"error_75", h.error(2)},
         {"error_90", h.error(3)},
         {"error_97", h.error(4)},
         {"peak_short", LogOf(h.peak_5m_per_s()) - near},
         {"peak", LogOf(h.peak_10m_per_s()) - near},
         {"peak_long", LogOf(h.peak_30m_per_s()) - near},
         {"least", LogOf(h.least_30m_per_s()) - near},
         {"high_share", h.high_share()},
         {"rises", h.rises()},
         {"ready_over_near", LogOf(h.capacity_per_s()) - near},
         {"asked_over_near", LogOf(ladder.ServesPerS(asked)) - near},
         {"starting", std::log(ladder.CapacityPerS(asked) / ladder.CapacityPerS(h.rung_ready()))},
         {"backlog", h.backlog_requests() / (std::max(h.near_per_s(), 0.05) * kStepS)},
         {"since_up", std::log(1.0 + since_up)},
         {"since_down", std::log(1.0 + since_down)},
         {"grain",
          ladder.cores(std::min(needed + 1, ladder.rungs() - 1)) / ladder.cores(needed) - 1},
         {"lead", 2 + 2},  // Pods take 15, 40 and 5 s, 20 on average.
         {"samples", std::log(2.0 + step)},
         {"is_least", needed == 0},
         {"candidates", store.space.count()}});
  }
}

TEST(ScalingFeatures, OfWorkloadsAreThoseOfTheCallGraph) {
  WanderingStore store(3);
  // Computing of a request in ms: 22.5, 10 and 17.5; calls 1, 1/4 and 5/4.
  constexpr double kDemandMs[] = {22.5, 10, 17.5}, kCalls[] = {1, 0.25, 1.25};
  constexpr double kStartS[] = {15, 40, 5}, kCores[] = {0.2, 0.3, 0.5};
  constexpr int kSlots[] = {2, 1, 4}, kMost[] = {9, 5, 4};
  for (int step = 0; step < 100 && !::testing::Test::HasFailure(); ++step) {
    SCOPED_TRACE(step);
    store.Step();
    const CapacityLadder& ladder = store.ladder();
    const ScalingHistory& h = store.history;
    const int needed = ladder.RungFor(std::max(h.far_per_s(), 0.05));
    const int next = std::min(needed + 1, ladder.rungs() - 1);
    ASSERT_EQ(store.batch.workload_begin.back(), 3);
    for (int i = 0; i < 3; ++i) {
      const auto pods = [&](int rung) { return ladder.Replicas(rung)[i + 1]; };
      const auto use = [&](double per_s, int rung) {
        return per_s * kDemandMs[i] / 1000 / (kSlots[i] * pods(rung));
      };
      ExpectNumbers(store.batch.workloads.data() + ptrdiff_t{i} * 16,
                    ScalingTask::Features(ScalingRows::kCallGraph).workload,
                    {{"use_near", use(h.near_per_s(), h.rung_ready())},
                     {"use_far", use(h.far_per_s(), h.rung_asked())},
                     {"use_needed", use(h.far_per_s(), needed)},
                     {"pods_missing", std::log(1.0 * pods(needed) / pods(h.rung_asked()))},
                     {"starting", 1 - 1.0 * pods(h.rung_ready()) / pods(h.rung_asked())},
                     {"grain", 1.0 / pods(needed)},
                     {"cost_share", kCores[i] * pods(needed) / ladder.cores(needed)},
                     {"demand_share", kDemandMs[i] / 50},
                     {"calls", std::log(1 + kCalls[i])},
                     {"is_entry", i == 0},
                     {"start", kStartS[i] / kStepS},
                     {"slots", std::log(1 + kSlots[i])},
                     {"is_next", pods(next) > pods(needed)},
                     {"is_most", pods(h.rung_asked()) >= kMost[i]}});
    }
    // Who calls whom, and which share of the callee's calls that is.
    ASSERT_EQ(store.batch.calls.size(), 3u);
    const GraphEdge expected[] = {{0, 1, 1}, {0, 2, 0.8F}, {1, 2, 0.2F}};
    for (int e = 0; e < 3; ++e) {
      EXPECT_EQ(store.batch.calls[e].a, expected[e].a);
      EXPECT_EQ(store.batch.calls[e].b, expected[e].b);
      EXPECT_FLOAT_EQ(store.batch.calls[e].weight, expected[e].weight);
    }
  }
}

TEST(ScalingFeatures, TheClientNeedNotStandFirst) {
  const std::vector<WorkloadId> at = {3, 1, 2, 0};
  const auto moved_ladder = std::make_shared<const CapacityLadder>(Store(at), 0.01);
  WanderingStore plain(6), moved(6, {}, moved_ladder);
  ASSERT_EQ(plain.ladder().rungs(), moved.ladder().rungs());
  for (int step = 0; step < 60; ++step) {
    plain.Step();
    moved.Step();
    for (size_t i = 0; i < plain.batch.candidates.size(); ++i)
      ASSERT_NEAR(plain.batch.candidates[i], moved.batch.candidates[i], 1e-4) << step << " " << i;
    for (size_t i = 0; i < plain.batch.context.size(); ++i)
      ASSERT_NEAR(plain.batch.context[i], moved.batch.context[i], 1e-4) << step << " " << i;
    constexpr int kRowOf[] = {1, 2, 0};  // Front, cart and db.
    for (int row = 0; row < 3; ++row) {
      for (int i = 0; i < 16; ++i)
        ASSERT_NEAR(plain.batch.workloads[row * 16 + i],
                    moved.batch.workloads[kRowOf[row] * 16 + i], 1e-4);
    }
    std::vector<int> first(4, 1), second(4, 1);
    plain.task.Decode(plain.space, 0, first);
    moved.task.Decode(moved.space, 0, second);
    for (int w = 0; w < 4; ++w) ASSERT_EQ(first[w], second[at[w]]);
  }
  const ApplicationEntries entries(*Store(at));
  EXPECT_EQ(entries.is_entry, (std::vector<uint8_t>{0, 1, 0, 0}));
}

// The same, written out: a set of rungs.
std::vector<int> RungsOf(const WanderingStore& store, int highest, int held) {
  const double far = std::max(store.history.far_per_s(), 0.05);
  std::set<int> rungs = {held};
  if (held > 0) rungs.insert(std::min(held - 1, highest));
  if (held < highest) rungs.insert(held + 1);
  for (const double share :
       {0.6, 0.75, 0.87, 0.95, 1.02, 1.1, 1.2, 1.32, 1.5, 1.75, 2.1, 2.6, 3.3, 4.2, 5.4})
    rungs.insert(std::min(store.ladder().RungFor(far * share), highest));
  return {rungs.begin(), rungs.end()};
}

TEST(ScalingSpace, HoldsSharesOfWhatIsExpectedAndTheRungItStandsOnWithItsNeighbours) {
  for (const ScalingLimits& limits : {ScalingLimits{}, ScalingLimits{.cpu_millis_max = 2500}}) {
    WanderingStore store(4, limits);
    const int highest = store.ladder().HighestWithin(limits);
    EXPECT_EQ(highest == store.ladder().rungs() - 1, limits == ScalingLimits{});
    for (int step = 0; step < 200; ++step) {
      store.Step();
      const ScalingHistory& h = store.history;
      std::vector<int> rungs;
      for (const ScalingCandidate& one : store.space.candidates) rungs.push_back(one.rung);
      ASSERT_EQ(rungs, RungsOf(store, highest, h.rung_asked())) << step;
      EXPECT_EQ(rungs[store.space.hold], h.rung_asked());
      EXPECT_EQ(store.space.needed_rung,
                std::min(highest, store.ladder().RungFor(std::max(h.far_per_s(), 0.05))));
      EXPECT_EQ(store.space.peak_5m, std::max(h.peak_5m_per_s(), 0.05));
      EXPECT_EQ(store.space.peak_10m, std::max(h.peak_10m_per_s(), 0.05));
      EXPECT_EQ(store.space.peak_30m, std::max(h.peak_30m_per_s(), 0.05));
      EXPECT_EQ(store.space.least_30m, std::max(h.least_30m_per_s(), 0.05));
    }
  }
}

// A rule takes the rung nearest to that for its rate; of two as near the higher.
TEST(ScalingRule, TakesTheNearestRung) {
  WanderingStore store(5);
  const int highest = store.ladder().rungs() - 1;
  for (int step = 0; step < 150; ++step) {
    store.Step();
    const ScalingHistory& h = store.history;
    for (const ScalingRule& rule :
         {ScalingRule{1, 0}, ScalingRule{1.3, 300}, ScalingRule{0.8, 600}, ScalingRule{2, 0}}) {
      double rate = h.far_per_s();
      if (rule.window_s == 300) rate = std::max(rate, h.peak_5m_per_s());
      if (rule.window_s == 600) rate = std::max(rate, h.peak_10m_per_s());
      const int wanted = store.ladder().RungFor(rule.headroom * rate);
      const auto nearest = [&](const std::vector<int>& rungs) {
        int best = -100;
        for (const int rung : rungs)
          best = std::abs(rung - wanted) <= std::abs(best - wanted) ? rung : best;
        return best;
      };
      const int choice = ScalingTask::ChoiceOf(rule, h, store.space);
      EXPECT_EQ(store.space.candidates[choice].rung,
                nearest(RungsOf(store, highest, h.rung_asked())));
      const int held = (7 * step) % (highest + 1);
      EXPECT_EQ(store.task.RungOf(rule, h, store.space, held, 1),
                nearest(RungsOf(store, highest, held)));
    }
  }
}

TEST(ApplicationEntries, AreWhatClientsCallWithAllCallsThere) {
  ServedApplication store = *Store();
  const ApplicationEntries front(store);
  EXPECT_EQ(front.is_entry, (std::vector<uint8_t>{0, 1, 0, 0}));
  EXPECT_DOUBLE_EQ(front.calls_per_request, 1);
  // Were db called by clients too, its calls from front and cart would count.
  auto graph = std::make_shared<CallGraph>(*store.calls);
  graph->calls.push_back({.workload = 0, .first_group = 5, .last_group = 6});
  graph->calls.push_back({.workload = 3, .caller = 8, .first_group = 6, .last_group = 6});
  graph->groups.push_back({6, 7});
  graph->sequence.push_back(9);
  graph->endpoints.push_back(
      {.name = "query", .root = 8, .end = 10, .rate_per_second = 4, .qos_ms = 100});
  store.calls = graph;
  store.service_ms.insert(store.service_ms.end(), {0, 10});
  const ApplicationEntries both(store);
  EXPECT_EQ(both.is_entry, (std::vector<uint8_t>{0, 1, 0, 1}));
  EXPECT_DOUBLE_EQ(both.calls_per_request, 0.5 * 1 + 0.5 * 1.25 + 0.5 * 1);
  store.workloads[3].scaled = false;
  EXPECT_DOUBLE_EQ(ApplicationEntries(store).calls_per_request, 0.5);
}

}  // namespace
}  // namespace rudderfish
