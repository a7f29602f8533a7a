// SPDX-License-Identifier: Apache-2.0
#include "policy/routing_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "model/forecast.h"
#include "model/traffic_split.h"

namespace rudderfish {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// What all rules remember: their autoscaler, and sums by target.
struct RuleMemory : RoutingMemory {
  RuleMemory(const RegionAutoscaling& below, std::shared_ptr<const RegionLaws> shared)
      : laws(std::move(shared)), autoscaler(below, laws->network().size()) {
    const auto n = static_cast<size_t>(laws->network().size());
    for (auto* one : {&demand, &wanted, &routed, &load, &room}) one->resize(n);
    order.resize(n);
    score.resize(n);
  }

  void See(const RoutingQuestion& question) {
    for (size_t r = 0; r < demand.size(); ++r) demand[r] = question.regions[r].demand_per_s;
    std::fill(wanted.begin(), wanted.end(), 0);
  }

  // `load`: what should come and what comes, whichever is more.
  void Add(const RoutingAnswer& answer) {
    const size_t n = demand.size();
    std::fill(routed.begin(), routed.end(), 0);
    for (size_t from = 0; from < n; ++from) {
      for (size_t to = 0; to < n; ++to) routed[to] += demand[from] * answer.shares[from * n + to];
    }
    for (size_t to = 0; to < n; ++to) load[to] = std::max(wanted[to], routed[to]);
  }

  std::shared_ptr<const RegionLaws> laws;
  RegionAutoscaler autoscaler;
  std::vector<double> demand, wanted, routed, load;  // [region] Requests per second.
  std::vector<double> room, score;
  std::vector<int> order;
};

// Rules that look at no more than now: they split, and the autoscaler follows.
class RulePolicy : public RoutingPolicy {
 public:
  explicit RulePolicy(const RegionAutoscaling& below) : below_(below) {}

  std::unique_ptr<RoutingMemory> NewMemory(
      const std::shared_ptr<const RegionLaws>& laws) const override {
    return std::make_unique<RuleMemory>(below_, laws);
  }

  void Decide(const RoutingQuestion& question, RoutingMemory* memory,
              const RoutingAnswer& answer) const override {
    auto* own = static_cast<RuleMemory*>(memory);
    own->See(question);
    Split(question, own, answer);
    KeepAllowed(question.laws->network(), answer.shares);
    own->Add(answer);
    own->autoscaler.Decide(question, own->load, answer.nodes);
  }

 protected:
  // Sets the shares, and what is `wanted` beyond them. What is not allowed is taken out afterwards.
  virtual void Split(const RoutingQuestion& question, RuleMemory* own,
                     const RoutingAnswer& answer) const = 0;

  RegionAutoscaling below_;
};

class StaticPolicy final : public RulePolicy {
 public:
  StaticPolicy(const StaticRouting& rule, const RegionAutoscaling& below)
      : RulePolicy(below), rule_(rule) {}

 private:
  void Split(const RoutingQuestion& question, RuleMemory* /*own*/,
             const RoutingAnswer& answer) const override {
    const std::vector<Region>& regions = question.laws->network().regions;
    const size_t n = regions.size();
    double peaks = 0;
    for (const Region& region : regions) peaks += region.peak_per_s;
    for (size_t from = 0; from < n; ++from) {
      for (size_t to = 0; to < n; ++to) {
        const double part = peaks > 0 && !rule_.evenly ? regions[to].peak_per_s / peaks
                                                       : 1 / static_cast<double>(n);
        answer.shares[from * n + to] = (from == to ? rule_.home : 0) + (1 - rule_.home) * part;
      }
    }
  }

  StaticRouting rule_;
};

class RankedPolicy final : public RulePolicy {
 public:
  RankedPolicy(const RankedRouting& rule, const RegionAutoscaling& below)
      : RulePolicy(below), rule_(rule) {}

 private:
  void Split(const RoutingQuestion& question, RuleMemory* own,
             const RoutingAnswer& answer) const override {
    const RegionNetwork& network = question.laws->network();
    const double node_per_s = network.service.node_per_s();
    for (int to = 0; to < network.size(); ++to) {
      const RegionSight& seen = question.regions[to];
      own->room[to] = seen.reachable ? seen.ready_nodes() * node_per_s * rule_.full : 0;
    }
    // Those whose own region comes first take it before others spill over into it.
    for (const bool homes : {true, false}) {
      for (int from = 0; from < network.size(); ++from) {
        Rank(question, from, own);
        if ((own->order[0] == from) == homes) Route(question, from, own, answer);
      }
    }
  }

  double ScoreOf(const RoutingQuestion& question, int from, int to) const {
    const RegionLaws& laws = *question.laws;
    const RegionNetwork& network = laws.network();
    const RegionSight& seen = question.regions[to];
    const double trip_s = network.TripS(from, to);
    if (!seen.reachable || !network.Allows(from, to)) return kInfinite;
    if (from != to && network.rtt_s[network.At(from, to)] > rule_.within_s)
      return kMostNear + trip_s;  // Only where nothing near has room.
    switch (rule_.by) {
      case RankedRouting::By::kDistance:
        break;
      case RankedRouting::By::kPrice: {
        const double spot = question.has_spot ? below_.spot_share : 0;
        const double node_per_h = seen.node_per_h[0] * (1 - spot) + seen.node_per_h[1] * spot;
        return node_per_h / (3600 * network.service.node_per_s() * below_.use) / laws.unit() +
               network.EgressOf(to, from) / laws.unit();
      }
      case RankedRouting::By::kCarbon:
        return seen.carbon_g_per_kwh * network.regions[to].pue / kMostCarbon;
      case RankedRouting::By::kLatency:
        return trip_s + seen.wait_s;
    }
    return trip_s;
  }

  void Rank(const RoutingQuestion& question, int from, RuleMemory* own) const {
    std::iota(own->order.begin(), own->order.end(), 0);
    for (size_t to = 0; to < own->score.size(); ++to)
      own->score[to] = ScoreOf(question, from, static_cast<int>(to));
    std::sort(own->order.begin(), own->order.end(), [&](int a, int b) {
      return std::pair(own->score[a], a) < std::pair(own->score[b], b);
    });
  }

  void Route(const RoutingQuestion& question, int from, RuleMemory* own,
             const RoutingAnswer& answer) const {
    const size_t n = own->demand.size();
    const std::span<double> shares = answer.shares.subspan(static_cast<size_t>(from) * n, n);
    const double demand = own->demand[from];
    const int best = own->order[0];
    if (own->score[best] == kInfinite) return;
    // Nodes are for the best target with quota left, not for where requests spill over now.
    double unplaced = demand;
    for (const int to : own->order) {
      if (unplaced <= 0 || own->score[to] == kInfinite) break;
      const Region& region = question.laws->network().regions[to];
      const double quota =
          region.nodes_max * question.laws->network().service.node_per_s() * below_.use -
          own->wanted[to];
      const double taken = std::clamp(quota, 0.0, unplaced);
      own->wanted[to] += taken;
      unplaced -= taken;
    }
    std::fill(shares.begin(), shares.end(), 0);
    double left = demand;
    for (const int to : own->order) {
      if (left <= 0 || own->score[to] == kInfinite) break;
      const double taken = std::min(left, own->room[to]);
      own->room[to] -= taken;
      shares[to] = demand > 0 ? taken / demand : 0;
      left -= taken;
    }
    // Where all are full, the best one is the most overloaded.
    shares[best] += demand > 0 ? std::max(0.0, left) / demand : 1;
  }

  // Beyond all scores of targets within the limit of distance.
  static constexpr double kMostNear = 1e6, kMostCarbon = 1e6;

  RankedRouting rule_;
};

// Of many requests each probes regions of its own, so that shares follow from ranks: the region of
// rank k (from 0) of n is the best of d that are drawn in C(n - 1 - k, d - 1) of C(n, d) cases.
class ProbedPolicy final : public RulePolicy {
 public:
  ProbedPolicy(const ProbedRouting& rule, const RegionAutoscaling& below)
      : RulePolicy(below), rule_(rule) {}

 private:
  void Split(const RoutingQuestion& question, RuleMemory* own,
             const RoutingAnswer& answer) const override {
    const RegionNetwork& network = question.laws->network();
    const int n = network.size();
    int reachable = 0;
    for (int to = 0; to < n; ++to) {
      const RegionSight& seen = question.regions[to];
      const double served_s = seen.wait_s + 1 / network.service.pod_per_s;
      own->room[to] = seen.reachable ? (seen.load_per_s * served_s + seen.backlog) /
                                           std::max(1, seen.ready_nodes())
                                     : kInfinite;
      reachable += seen.reachable ? 1 : 0;
    }
    if (reachable == 0) return;
    const double hot = HotAbove(reachable, own);
    for (int from = 0; from < n; ++from) {
      std::iota(own->order.begin(), own->order.end(), 0);
      for (int to = 0; to < n; ++to) {
        const double in_flight = own->room[to];
        const bool is_hot = in_flight > hot;
        own->score[to] = !question.regions[to].reachable ? kInfinite
                         : is_hot                        ? kHot + in_flight
                                  : network.TripS(from, to) + question.regions[to].wait_s;
      }
      std::sort(own->order.begin(), own->order.end(), [&](int a, int b) {
        return std::pair(own->score[a], a) < std::pair(own->score[b], b);
      });
      const int probes = std::min(rule_.probes, reachable);
      double chosen = static_cast<double>(probes) / reachable;  // The best one, if it is probed.
      for (int rank = 0; rank < n; ++rank) {
        answer.shares[network.At(from, own->order[rank])] = rank <= reachable - probes ? chosen : 0;
        // C(m - 1, d - 1) / C(m, d - 1) = (m - d + 1) / m.
        const int behind = reachable - 1 - rank;
        if (behind > 0) chosen *= static_cast<double>(behind - probes + 1) / behind;
      }
    }
  }

  // Requests in flight beyond which a region is hot; infinite by latency alone.
  double HotAbove(int reachable, RuleMemory* own) const {
    if (rule_.by == ProbedRouting::By::kLatency) return kInfinite;
    std::copy(own->room.begin(), own->room.end(), own->score.begin());
    const auto at =
        own->score.begin() + std::min(reachable - 1, static_cast<int>(rule_.hot * reachable));
    std::nth_element(own->score.begin(), at, own->score.end());
    return *at;
  }

  static constexpr double kHot = 1e6;  // Beyond all latencies, in seconds.

  ProbedRouting rule_;
};

struct SplitMemory final : RuleMemory {
  static constexpr int kHorizon = 16;

  SplitMemory(const RegionAutoscaling& below, const std::shared_ptr<const RegionLaws>& shared,
              const std::shared_ptr<const RegionPlanning>& planning)
      : RuleMemory(below, shared), solver(laws) {
    if (planning != nullptr) planner.emplace(planning, shared->network().size());
    const auto n = static_cast<size_t>(shared->network().size());
    // One by one: a copy would lack the memory that it is to grow into.
    forecasts.reserve(n);
    for (size_t r = 0; r < n; ++r) forecasts.emplace_back(ForecastOptions{.horizon = kHorizon});
    expected.resize(n);
    standing.resize(n);
    errors.resize(n);
    pair.resize(n * n);
    quota.resize(n * n);
    for (size_t i = 0; i < n; ++i) quota[i * n + i] = 1;
    nodes.resize(n);
  }

  // Forecasts are asked for so many steps on, and one.
  void LookAhead(int steps) {
    if (steps == lead) return;
    lead = steps;
    for (Forecast& forecast : forecasts) forecast.Only(std::array{1, lead});
  }

  // Demand so many steps on, with headroom for errors; `truth` is what is known of it.
  std::span<const double> Expect(int steps, double headroom, std::span<const double> truth) {
    const size_t n = expected.size();
    if (const size_t known = truth.size() / n; known > 0) {
      const size_t interval = std::min(static_cast<size_t>(steps), known) - 1;
      std::ranges::copy(truth.subspan(interval * n, n), expected.begin());
      return expected;
    }
    for (size_t r = 0; r < n; ++r) {
      const double error = forecasts[r].ErrorQuantile(steps, headroom);
      expected[r] = std::max(0.0, forecasts[r].At(steps) + error);
    }
    return expected;
  }

  TrafficSplitSolver solver;
  std::vector<Forecast> forecasts;  // [origin]
  int lead = 0;
  std::vector<double> expected, standing;
  std::vector<double> errors;  // [target] Of forecasts of its load, relative.
  std::optional<RegionPlanner> planner;
  std::vector<double> pair, quota;                       // [origin][target]
  std::array<double, kMostProviders> provider_prices{};  // Of a request, in units.
  std::vector<int> nodes;
};

class SplitPolicy final : public RoutingPolicy {
 public:
  SplitPolicy(const SplitRouting& rule, const RegionAutoscaling& below,
              std::shared_ptr<const RegionPlanning> planning)
      : rule_(rule), below_(below), planning_(std::move(planning)) {}

  std::unique_ptr<RoutingMemory> NewMemory(
      const std::shared_ptr<const RegionLaws>& laws) const override {
    const RoutingPrices& prices = rule_.prices;
    return std::make_unique<SplitMemory>(
        below_, prices.any() ? std::make_shared<const RegionLaws>(*laws, prices) : laws, planning_);
  }

  void Decide(const RoutingQuestion& asked, RoutingMemory* memory,
              const RoutingAnswer& answer) const override {
    auto* own = static_cast<SplitMemory*>(memory);
    RoutingQuestion question = asked;
    question.laws = own->laws.get();  // By its own prices.
    own->See(question);
    const RegionNetwork& network = question.laws->network();
    const int n = network.size();
    const int lead = LeadOf(network, question.interval_s);
    own->LookAhead(lead);
    for (int from = 0; from < n; ++from) own->forecasts[from].Observe(own->demand[from]);
    Price(question, own);
    const std::span<const double> truth =
        rule_.foresees ? question.true_demand_per_s : std::span<const double>();
    // Where requests should go: any region may have all nodes of its quota, not in full use.
    for (int to = 0; to < n; ++to) own->nodes[to] = network.regions[to].nodes_max;
    TrafficSplitSolver::Problem problem{.per_s = own->Expect(lead, rule_.headroom, truth),
                                        .pair_cost = own->pair,
                                        .nodes = own->nodes,
                                        .moving_cost = rule_.moving};
    own->solver.Solve(problem, own->quota);
    std::ranges::copy(own->solver.load_per_s(), own->wanted.begin());
    // Where they go now.
    problem.per_s = own->Expect(1, rule_.headroom, truth);
    // A reserve, for what no forecast tells: flash crowds, and nodes that are taken away.
    for (double& per_s : own->expected) per_s /= rule_.full;
    for (int to = 0; to < n; ++to)
      own->standing[to] = question.regions[to].backlog / question.interval_s / rule_.full;
    problem.standing_per_s = own->standing;
    for (int to = 0; to < n; ++to) own->nodes[to] = question.regions[to].ready_nodes();
    own->solver.Solve(problem, answer.shares);
    own->Add(answer);
    if (own->planner) Plan(question, truth.empty() ? lead : 0, own, answer.nodes);
    own->autoscaler.Decide(question, own->load, answer.nodes);
  }

  bool foresees() const override { return rule_.foresees; }

 private:
  // How many intervals ahead nodes are to be ordered: until the slowest of them serves.
  static int LeadOf(const RegionNetwork& network, double interval_s) {
    double start_s = 0;
    for (const Region& region : network.regions) start_s = std::max(start_s, region.start_high_s);
    return std::clamp(static_cast<int>(std::ceil(start_s / interval_s)) + 1, 1,
                      SplitMemory::kHorizon);
  }

  // Errors of origins are taken as independent of each other; there are none `lead` 0 ahead.
  void Plan(const RoutingQuestion& question, int lead, SplitMemory* own,
            std::span<const int> asked) const {
    const size_t n = own->demand.size();
    std::fill(own->errors.begin(), own->errors.end(), 0);
    for (size_t from = 0; from < n; ++from) {
      const double rms = lead == 0 ? 0 : own->forecasts[from].ErrorRms(lead);
      for (size_t to = 0; to < n; ++to) {
        const double part = rms * own->quota[from * n + to];
        own->errors[to] += part * part;
      }
    }
    for (size_t to = 0; to < n; ++to)
      own->errors[to] = std::sqrt(own->errors[to]) / std::max(1.0, own->load[to]);
    own->planner->Plan(question, {.load_per_s = own->load, .error = own->errors}, asked,
                       &own->autoscaler);
  }

  // The price of a provider's requests rises while it serves more than its limit, and falls while
  // it serves less: dual ascent.
  void PriceProviders(const RoutingQuestion& question, SplitMemory* own) const {
    // It aims a little below the limit: until the price is found, more is served.
    constexpr double kFullStepAt = 0.1, kAim = 0.98;
    const RegionNetwork& network = question.laws->network();
    if (rule_.prices.provider <= 0 || network.limits.provider_percent == RoutingLimits::kNone)
      return;
    std::array<double, kMostProviders> load{};
    double all = 0;
    for (int to = 0; to < network.size(); ++to) {
      const double per_s = question.regions[to].load_per_s;
      load[static_cast<size_t>(network.regions[to].provider)] += per_s;
      all += per_s;
    }
    if (all <= 0) return;
    const double most = kAim * network.limits.provider_percent / 100;
    for (size_t p = 0; p < load.size(); ++p) {
      double& price = own->provider_prices[p];
      price = std::max(0.0, price + rule_.prices.provider * (load[p] / all - most) / kFullStepAt);
    }
  }

  void Price(const RoutingQuestion& question, SplitMemory* own) const {
    const RegionLaws& laws = *question.laws;
    const RegionNetwork& network = laws.network();
    const double spot = question.has_spot ? below_.spot_share : 0;
    PriceProviders(question, own);
    for (int to = 0; to < network.size(); ++to) {
      const RegionSight& seen = question.regions[to];
      const double node_per_h = seen.node_per_h[0] * (1 - spot) + seen.node_per_h[1] * spot;
      const double serving =
          laws.ServingCost(to, rule_.use, node_per_h, seen.carbon_g_per_kwh) +
          own->provider_prices[static_cast<size_t>(network.regions[to].provider)];
      for (int from = 0; from < network.size(); ++from) {
        own->pair[network.At(from, to)] =
            seen.reachable && network.Allows(from, to)
                ? serving + laws.DistanceCost(from, to) +
                      network.objective.late * laws.BaseLate(from, to) +
                      (from == to ? 0 : rule_.foreign)
                : kInfinite;
      }
    }
    if (own->planner && own->planner->looks_at_pairs())
      own->planner->PricePairs(question, own->pair);
  }

  SplitRouting rule_;
  RegionAutoscaling below_;
  std::shared_ptr<const RegionPlanning> planning_;  // May be none.
};

}  // namespace

std::unique_ptr<RoutingPolicy> MakeRankedRouting(const RankedRouting& rule,
                                                 const RegionAutoscaling& below) {
  return std::make_unique<RankedPolicy>(rule, below);
}

std::unique_ptr<RoutingPolicy> MakeStaticRouting(const StaticRouting& rule,
                                                 const RegionAutoscaling& below) {
  return std::make_unique<StaticPolicy>(rule, below);
}

std::unique_ptr<RoutingPolicy> MakeProbedRouting(const ProbedRouting& rule,
                                                 const RegionAutoscaling& below) {
  return std::make_unique<ProbedPolicy>(rule, below);
}

std::unique_ptr<RoutingPolicy> MakeSplitRouting(const SplitRouting& rule,
                                                const RegionAutoscaling& below) {
  return std::make_unique<SplitPolicy>(rule, below, nullptr);
}

std::unique_ptr<RoutingPolicy> MakePlannedRouting(const PlannedRouting& rule) {
  return std::make_unique<SplitPolicy>(rule.split, rule.below,
                                       std::make_shared<const RegionPlanning>(rule.planning));
}

}  // namespace rudderfish
