// SPDX-License-Identifier: Apache-2.0
#include "sim/routing_story.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/routing_evaluation.h"

namespace rudderfish {
namespace {

constexpr double kMovedShare = 0.005;  // Less is not told: policies answer in steps of that size.

// A policy, and what it answers: one service after another, interval by interval.
class WitnessedRouting final : public RoutingPolicy {
 public:
  explicit WitnessedRouting(const RoutingPolicy& policy) : policy_(policy) {}

  std::unique_ptr<RoutingMemory> NewMemory(
      const std::shared_ptr<const RegionLaws>& laws) const override {
    return policy_.NewMemory(laws);
  }

  void Decide(const RoutingQuestion& question, RoutingMemory* memory,
              const RoutingAnswer& answer) const override {
    const std::vector<double> shares(answer.shares.begin(), answer.shares.end());
    const std::vector<int> nodes(answer.nodes.begin(), answer.nodes.end());
    policy_.Decide(question, memory, answer);
    RoutedService service;
    for (const RegionSight& seen : question.regions) service.demand_per_s += seen.demand_per_s;
    service.shares.assign(answer.shares.begin(), answer.shares.end());
    ListMoved(question, shares, &service);
    ListResized(nodes, answer.nodes, &service);
    services_.push_back(std::move(service));
  }

  bool foresees() const override { return policy_.foresees(); }

  std::vector<RoutedService> Take() const { return std::exchange(services_, {}); }

 private:
  static void ListMoved(const RoutingQuestion& question, std::span<const double> before,
                        RoutedService* service) {
    const int regions = question.laws->network().size();
    for (int origin = 0; origin < regions; ++origin) {
      for (int to = 0; to < regions; ++to) {
        const size_t at = question.laws->network().At(origin, to);
        const double after = service->shares[at];
        if (std::abs(after - before[at]) < kMovedShare) continue;
        service->moved.push_back(
            {.origin = origin,
             .to = to,
             .before = before[at],
             .after = after,
             .per_s = question.regions[static_cast<size_t>(origin)].demand_per_s,
             .one_more = PredictOneMore(question, service->shares, origin, to)});
      }
    }
    std::ranges::stable_sort(service->moved, [](const MovedShare& a, const MovedShare& b) {
      return std::abs(a.after - a.before) * a.per_s > std::abs(b.after - b.before) * b.per_s;
    });
  }

  static void ListResized(std::span<const int> before, std::span<const int> after,
                          RoutedService* service) {
    for (size_t region = 0; region * kNodePrices < before.size(); ++region) {
      ResizedRegion one{.region = static_cast<int>(region)};
      for (size_t price = 0; price < kNodePrices; ++price) {
        one.before[price] = before[region * kNodePrices + price];
        one.after[price] = after[region * kNodePrices + price];
      }
      if (!std::ranges::equal(one.before, one.after)) service->resized.push_back(one);
    }
  }

  const RoutingPolicy& policy_;
  mutable std::vector<RoutedService> services_;  // Of the interval.
};

RoutingFigures Difference(const RoutingFigures& now, const RoutingFigures& before) {
  RoutingFigures passed;
  for (double RoutingFigures::*sum :
       {&RoutingFigures::requests, &RoutingFigures::hours, &RoutingFigures::nodes,
        &RoutingFigures::egress, &RoutingFigures::carbon, &RoutingFigures::late,
        &RoutingFigures::wait, &RoutingFigures::change, &RoutingFigures::late_requests,
        &RoutingFigures::node_hours, &RoutingFigures::spot_hours, &RoutingFigures::carbon_kg,
        &RoutingFigures::dollars, &RoutingFigures::changes, &RoutingFigures::foreign}) {
    passed.*sum = now.*sum - before.*sum;
  }
  return passed;
}

}  // namespace

RoutingEpisodeStory TellRouting(const RoutingPolicy& policy, const RegionEpisode& episode,
                                const std::shared_ptr<const RegionWorld>& world) {
  const WitnessedRouting witnessed(policy);
  RegionSimulator simulator(world, LawsOf(*world));
  RoutingRun run(witnessed, episode, &simulator);
  RoutingEpisodeStory story;
  for (int step = 0; step < world->steps(); ++step) {
    const RoutingFigures before = simulator.figures();
    run.Step();
    story.steps.push_back({.at_s = step * world->interval_s,
                           .services = witnessed.Take(),
                           .after = Difference(simulator.figures(), before)});
  }
  story.figures = simulator.figures();
  return story;
}

}  // namespace rudderfish
