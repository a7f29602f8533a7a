// SPDX-License-Identifier: Apache-2.0
#include "model/load_laws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "model/queueing.h"

namespace rudderfish {
namespace {

LoadLaws LawsOfStation(const ServedWorkload& workload, double service_ms = 50) {
  return LoadLaws(std::make_shared<ServedApplication>(SingleStation(workload, service_ms)));
}

ServedWorkload StationPods(Balancing balancing, int slots = 1, double scv = 1) {
  return {.name = "pods",
          .slots = slots,
          .service = ServiceLaw::OfScv(scv),
          .balancing = balancing,
          .replicas_max = 300};
}

// 0, then 22 equal ratios from 1e-4 to 1 - 10^(-1/40), then forty steps a decade of what is left.
TEST(PodEquilibria, PointsAreDenseAtBothEnds) {
  EXPECT_EQ(PodEquilibria::UtilisationAt(0), 0);
  const double first_high = 1 - std::pow(10, -1 / 40.0);
  for (int i = 1; i <= 23; ++i)
    EXPECT_NEAR(
        PodEquilibria::UtilisationAt(i) / (1e-4 * std::pow(first_high / 1e-4, (i - 1) / 22.0)), 1,
        1e-12);
  for (int i = 1; i <= 160; ++i)
    EXPECT_NEAR(1 - PodEquilibria::UtilisationAt(22 + i), std::pow(10, -i / 40.0), 1e-15) << i;
  EXPECT_EQ(PodEquilibria::kIntervals, 182);
  EXPECT_EQ(PodEquilibria::UtilisationAt(182), 0.9999);
}

TEST(PodEquilibria, PlacesAreFoundByUtilisationAndByWhoIsThere) {
  const LoadLaws laws = LawsOfStation(StationPods(Balancing::kRandom));
  const PodEquilibria& curve = laws.crew(1).EquilibriaOf(1);
  for (int i = 0; i < PodEquilibria::kIntervals; ++i) {
    const double low = PodEquilibria::UtilisationAt(i), high = PodEquilibria::UtilisationAt(i + 1);
    for (const double share : {0.001, 0.3, 0.999}) {
      const double utilisation = low + share * (high - low);
      const PodEquilibria::Place place = curve.AtUtilisation(utilisation);
      EXPECT_EQ(place.interval, i) << share;
      EXPECT_NEAR(place.share, share, 1e-9);
      EXPECT_FALSE(place.beyond());
      const PodPoint point = curve.At(place);
      EXPECT_NEAR(point.utilisation, utilisation, 1e-15);
      // Straight between its ends.
      const PodPoint begin = curve.At({i, 0}), end = curve.At({i, 1});
      EXPECT_NEAR(point.present, begin.present + share * (end.present - begin.present),
                  1e-11 * end.present + 1e-12);
      EXPECT_NEAR(point.variance / (begin.variance + share * (end.variance - begin.variance)), 1,
                  1e-6);
      EXPECT_NEAR(point.waits, begin.waits + share * (end.waits - begin.waits), 1e-12);
      EXPECT_NEAR(curve.UtilisationPerCall(place), (high - low) / (end.present - begin.present),
                  1e-9);
      for (const int near : {-3, 0, i - 1, i, i + 1, 181, 500}) {
        const PodEquilibria::Place same = curve.AtUtilisation(utilisation, near);
        EXPECT_EQ(same.interval, i) << near;
        EXPECT_EQ(same.share, place.share) << near;
        const PodEquilibria::Place found = curve.AtPresent(point.present, near);
        EXPECT_EQ(found.interval, i) << near;
        EXPECT_NEAR(found.share, share, 1e-6) << near;
      }
    }
  }
  for (int i = 0; i < PodEquilibria::kIntervals; ++i) {
    const double begin = curve.At({i, 0}).utilisation;
    for (const int near : {0, i - 1, i, i + 1, 181})
      EXPECT_EQ(curve.AtUtilisation(begin, near).interval, i) << near;
  }
  EXPECT_EQ(curve.AtPresent(0, 7).interval, 0);
  EXPECT_EQ(curve.AtPresent(-1, 7).share, 0);
  const double most = curve.At({181, 1}).present;
  EXPECT_FALSE(curve.AtPresent(most * (1 - 1e-9), 0).beyond());
  EXPECT_TRUE(curve.AtPresent(most, 0).beyond());
  EXPECT_TRUE(curve.AtPresent(2 * most, 181).beyond());
  EXPECT_EQ(curve.At(curve.AtPresent(2 * most, 0)).present, most);
  EXPECT_GT(curve.UtilisationPerCall({PodEquilibria::kIntervals}), 0);
  EXPECT_EQ(curve.UtilisationPerCall({PodEquilibria::kIntervals}), curve.UtilisationPerCall({181}));
}

// Calls at one pod: those in service and those in line, by Little's law from the formulas of
// queueing. A line is 0 with a probability, else as spread as an exponential.
void ExpectCurve(const PodEquilibria& curve, int slots, double line_of_wait_s,
                 const std::function<Wait(double utilisation)>& wait_at) {
  for (int i = 0; i <= PodEquilibria::kIntervals; i += 13) {
    const double utilisation = PodEquilibria::UtilisationAt(i);
    const PodPoint point = i == PodEquilibria::kIntervals ? curve.At({i}) : curve.At({i, 0});
    const Wait wait = wait_at(utilisation);
    const double line = wait.mean_s() * utilisation * line_of_wait_s;  // Calls a second times s.
    const double waits = std::max(wait.probability, 1e-9);
    EXPECT_NEAR(point.utilisation, utilisation, 1e-15);
    const double present = utilisation * slots + line;
    EXPECT_NEAR(point.present, present, 1e-7 * present) << utilisation;
    EXPECT_NEAR(point.waits, waits, 1e-12) << utilisation;
    EXPECT_NEAR(point.variance, point.present + line * line * (2 / waits - 1),
                1e-9 * (1 + point.variance))
        << utilisation;
  }
}

// As many calls are there as in M/M/c, whatever the law of service. With round robin, a call meets
// fewer others, and fewest where all take equally long.
TEST(LoadLaws, WhereSlotsAreSharedAsManyAreThereAsOfExponentialService) {
  for (const int slots : {1, 4}) {
    for (const double scv : {0.0, 0.5, 2.0}) {
      ServedWorkload pods = StationPods(Balancing::kRandom, slots, scv);
      pods.discipline = Discipline::kShared;
      const LoadLaws laws = LawsOfStation(pods);
      EXPECT_TRUE(laws.crew(1).shared);
      EXPECT_DOUBLE_EQ(laws.crew(1).turnover, 2 / (1 + scv));
      const PodEquilibria& curve = laws.crew(1).EquilibriaOf(3);
      for (int i = 3; i < PodEquilibria::kIntervals; i += 13) {
        const double use = PodEquilibria::UtilisationAt(i);
        const PodPoint point = curve.At({i, 0});
        const Station station{use * slots, 1, slots};
        const double stretch = SharingStretch(station);
        EXPECT_NEAR(point.present / (use * slots), stretch, 1e-9 * stretch);
        const double waits = std::max(1e-9, ErlangC(slots, use * slots));
        const double variation = SharingVariation(use, slots, waits, stretch, scv);
        EXPECT_NEAR((2 / point.waits - 1) / variation, 1, 1e-9) << use;
      }
      pods.balancing = Balancing::kRoundRobin;
      const LoadLaws regular = LawsOfStation(pods);
      const PodPoint point = regular.crew(1).EquilibriaOf(5).At({100, 0});
      const PodPoint random = curve.At({100, 0});
      const double computing = random.utilisation * slots;
      EXPECT_NEAR((point.present - computing) / (random.present - computing),
                  (.2 + scv) / (1 + scv), 1e-9);
    }
  }
}

TEST(LoadLaws, LinesOfPodsAreThoseOfTheirQueues) {
  for (const int slots : {1, 3}) {
    for (const double scv : {1.0, 0.25, 2.0}) {
      const LoadLaws random = LawsOfStation(StationPods(Balancing::kRandom, slots, scv));
      const LoadLaws regular = LawsOfStation(StationPods(Balancing::kRoundRobin, slots, scv));
      const double full = 20.0 * slots;  // Calls a second that keep one pod busy.
      for (const int pods : {1, 2, 7, 32}) {
        const auto at = [&](double arrivals_scv) {
          return [=](double utilisation) {
            return AllenCunneenQueue({full * utilisation, 20, slots}, arrivals_scv, scv).wait;
          };
        };
        ExpectCurve(random.crew(1).EquilibriaOf(pods), slots, full, at(1));
        // Every so many-th call: the variance of gaps is as many times less.
        ExpectCurve(regular.crew(1).EquilibriaOf(pods), slots, full, at(1.0 / pods));
      }
    }
  }
}

// The shorter of two lines: no longer than one's own, no shorter than one line for all.
Wait OfLeastRequests(double utilisation, int pods, int slots, int choices) {
  const double full = 20.0 * slots;
  const Wait own = MmcQueue({full * utilisation, 20, slots}).wait;
  const Wait pooled = MmcQueue({pods * full * utilisation, 20, pods * slots}).wait;
  if (pods == 1 || utilisation == 0) return own;
  const double many = utilisation * (ShortestOfChoicesResponse(utilisation, choices) - 1) *
                      std::pow(own.probability / utilisation, choices) / full / utilisation;
  Wait wait{std::min(own.probability, std::pow(own.probability, choices) + pooled.probability)};
  wait.mean_if_waiting =
      std::min(own.mean_s(), many + pooled.mean_s()) / std::max(1e-300, wait.probability);
  return wait;
}

TEST(LoadLaws, LinesOfLeastRequestsAreBetweenOwnAndPooled) {
  for (const int slots : {1, 2}) {
    for (const int choices : {2, 3}) {
      ServedWorkload workload = StationPods(Balancing::kLeastRequests, slots);
      workload.choices = choices;
      const LoadLaws laws = LawsOfStation(workload);
      // Beyond 32 pods tables are eight a doubling: 41, 64 and 256 are among them.
      const std::pair<int, int> tables[] = {{1, 1},     {2, 2},     {5, 5},    {31, 31}, {32, 32},
                                            {33, 32},   {35, 35},   {40, 41},  {64, 64}, {62, 64},
                                            {250, 256}, {300, 304}, {900, 304}};
      for (const auto& [pods, of] : tables) {
        SCOPED_TRACE(pods);
        ExpectCurve(laws.crew(1).EquilibriaOf(pods), slots, 20.0 * slots,
                    [&, of = of](double u) { return OfLeastRequests(u, of, slots, choices); });
      }
    }
  }
}

TEST(LoadLaws, OfCrewsAreThoseOfTheirWorkloads) {
  ServedWorkload workload = StationPods(Balancing::kRandom, 3, 0.5);
  workload.queue_limit = 9;
  workload.start_low_s = 4;
  workload.start_high_s = 10;
  workload.cpu_millis = 350;
  const LoadLaws laws = LawsOfStation(workload);
  const CrewLaw& law = laws.crew(1);
  EXPECT_DOUBLE_EQ(law.service_s, 0.05);
  EXPECT_DOUBLE_EQ(law.service_scv, 0.5);
  EXPECT_DOUBLE_EQ(law.capacity_per_s, 60);
  EXPECT_EQ(law.slots, 3);
  EXPECT_EQ(law.most_present, 12);
  EXPECT_EQ(law.passes_most, 20);
  EXPECT_EQ(law.start_delay_s, 7);
  EXPECT_DOUBLE_EQ(law.cores, 0.35);
  EXPECT_EQ(law.calls_per_request, 1);
  EXPECT_TRUE(law.scaled);
  EXPECT_FALSE(laws.crew(0).scaled);
  EXPECT_EQ(laws.log_timeout(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(laws.crew_count(), 2);
}

// "a" calls web, which calls db twice one after another; "b" calls web, which calls db and search
// at once. Rates 3 and 1.
std::shared_ptr<ServedApplication> TwoPages() {
  auto graph = std::make_shared<CallGraph>();
  graph->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 2},
                  {.workload = 2, .caller = 1, .first_group = 2, .last_group = 2},
                  {.workload = 2, .caller = 1, .first_group = 2, .last_group = 2},
                  {.workload = 0, .first_group = 2, .last_group = 3},
                  {.workload = 1, .caller = 4, .first_group = 3, .last_group = 5},
                  {.workload = 2, .caller = 5, .first_group = 5, .last_group = 5},
                  {.workload = 3, .caller = 5, .first_group = 5, .last_group = 5}};
  graph->groups = {{0, 1}, {1, 3}, {3, 4}, {4, 5}, {5, 6}};
  graph->sequence = {1, 2, 3, 5, 6, 7};
  graph->endpoints = {{.name = "a", .root = 0, .end = 4, .rate_per_second = 3, .qos_ms = 400},
                      {.name = "b", .root = 4, .end = 8, .rate_per_second = 1, .qos_ms = 700}};
  auto pages = std::make_shared<ServedApplication>();
  pages->calls = graph;
  pages->workloads = {{.name = "client", .scaled = false},
                      {.name = "web", .service = ServiceLaw::OfScv(0.5)},
                      {.name = "db", .service = ServiceLaw::OfScv(2)},
                      {.name = "search", .service = ServiceLaw::OfScv(0)}};
  pages->service_ms = {0, 20, 10, 30, 0, 40, 60, 80};
  pages->network_ms = 2;
  pages->timeout_s = 3;
  return pages;
}

TEST(LoadLaws, MixServiceTimesByWhoCallsHowOften) {
  const LoadLaws laws(TwoPages());
  // Web: 20 ms in three of four calls, 40 ms in one. Mean 25, mean square 1.5 (300 + 400).
  EXPECT_NEAR(laws.crew(1).service_s, 0.025, 1e-15);
  EXPECT_NEAR(laws.crew(1).service_scv, 1.5 * (0.75 * 400 + 0.25 * 1600) / 625 - 1, 1e-12);
  EXPECT_EQ(laws.crew(1).passes_most, 20);
  // Db: 7/4 calls a request; of seven three of 10 ms, three of 30 ms, one of 60 ms.
  EXPECT_DOUBLE_EQ(laws.crew(2).calls_per_request, 1.75);
  EXPECT_NEAR(laws.crew(2).service_s, 0.18 / 7, 1e-15);
  EXPECT_NEAR(laws.crew(2).service_scv,
              3 * (3 * 100 + 3 * 900 + 3600) / 7.0 / std::pow(180 / 7.0, 2) - 1, 1e-12);
  EXPECT_EQ(laws.crew(2).passes_most, 1);  // One request calls it twice.
  EXPECT_NEAR(laws.crew(3).service_scv, 0, 1e-12);
  EXPECT_DOUBLE_EQ(laws.log_timeout(), std::log(3));
}

TEST(LoadLaws, OfEndpointsAreSumsOverTheirCalls) {
  const LoadLaws laws(TwoPages());
  ASSERT_EQ(laws.endpoint_count(), 2u);
  const EndpointLaw& a = laws.endpoint(0);
  EXPECT_DOUBLE_EQ(a.share, 0.75);
  EXPECT_DOUBLE_EQ(a.log_qos, std::log(0.4));
  EXPECT_NEAR(a.mean_s, 0.060 + 3 * 0.004, 1e-15);
  EXPECT_NEAR(a.variance_s2, 0.5 * 4e-4 + 2 * (1e-4 + 9e-4), 1e-15);
  EXPECT_FALSE(a.parallel);
  ASSERT_EQ(a.visits.size(), 2u);
  EXPECT_EQ(a.visits[0].workload, 1);
  EXPECT_EQ(a.visits[0].count, 1);
  EXPECT_EQ(a.visits[1].workload, 2);
  EXPECT_EQ(a.visits[1].count, 2);
  EXPECT_TRUE(laws.endpoint(1).parallel);
  EXPECT_EQ(laws.endpoint(1).visits.size(), 3u);
}

}  // namespace
}  // namespace rudderfish
