// SPDX-License-Identifier: Apache-2.0
#include "sim/region_simulator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kBilledHourS = 3600;
constexpr double kUsedTo = 1.2;  // Times what it is used to, a region serves warm.

}  // namespace

int RegionSimulator::Crew::pending() const {
  return std::accumulate(std::begin(starting), std::end(starting), 0);
}

RegionSimulator::RegionSimulator(std::shared_ptr<const RegionWorld> world,
                                 std::shared_ptr<const RegionLaws> laws)
    : world_(std::move(world)), laws_(std::move(laws)), source_(world_), ahead_(world_) {
  const RegionNetwork& network = laws_->network();
  const auto n = static_cast<size_t>(network.size());
  CHECK_EQ(network.size(), world_->network->size());
  for (auto* pairs : {&shares_, &flow_, &warm_}) pairs->resize(n * n);
  for (auto* regions : {&backlog_, &load_}) regions->resize(n);
  nodes_.resize(n * kNodePrices);
  crews_.resize(n * kNodePrices);
  sights_.resize(n);
  const RegionService& service = network.service;
  for (int from = 0; from < network.size(); ++from) {
    for (int to = 0; to < network.size(); ++to) {
      const double left_s = service.deadline_s - network.TripS(from, to);
      served_.push_back(std::exp(-service.pod_per_s * std::max(0.0, left_s)));
      served_cold_.push_back(
          std::exp(-service.pod_per_s * std::max(0.0, left_s - world_->chance.cold_delay_s)));
    }
  }
}

void RegionSimulator::Start(const RegionEpisode& episode, Foresight foresight) {
  variant_ = episode.variant;
  source_.Start(episode);
  demand_to_come_.clear();
  if (foresight == Foresight::kDemand) {
    demand_to_come_.resize(source_.regions().size() * kForeseen);
    ahead_.Start(episode);
    for (int interval = 0; interval < kForeseen; ++interval) Foresee();
  }
  figures_ = {};
  step_ = 0;
  const RegionNetwork& network = laws_->network();
  const double node_per_s = network.service.node_per_s() * kUnitUse;
  std::fill(shares_.begin(), shares_.end(), 0);
  std::fill(flow_.begin(), flow_.end(), 0);
  std::fill(warm_.begin(), warm_.end(), 0);
  std::fill(backlog_.begin(), backlog_.end(), 0);
  std::fill(crews_.begin(), crews_.end(), Crew{});
  std::fill(nodes_.begin(), nodes_.end(), 0);
  std::fill(sights_.begin(), sights_.end(), RegionSight{});
  for (int r = 0; r < network.size(); ++r) {
    const double demand = source_.regions()[r].demand_per_s;
    shares_[network.At(r, r)] = 1;
    warm_[network.At(r, r)] = load_[r] = demand;
    const int most = network.regions[r].nodes_max;
    crew(r, kOnDemand).ready =
        std::clamp(static_cast<int>(std::ceil(demand / node_per_s)), 1, most);
    nodes_[static_cast<size_t>(r) * kNodePrices] = crew(r, kOnDemand).ready;
  }
  Look();
}

RoutingQuestion RegionSimulator::Question() const {
  return {.step = step_,
          .interval_s = world_->interval_s,
          .has_spot = variant_.Has(Disturbance::kSpot),
          .has_notices = variant_.Has(Disturbance::kSpot) && world_->chance.notice > 0,
          .laws = laws_.get(),
          .regions = sights_,
          .true_demand_per_s = demand_to_come_};
}

// One interval more, in place of the one that has come.
void RegionSimulator::Foresee() {
  ahead_.Step();
  const size_t n = ahead_.regions().size();
  std::copy(demand_to_come_.begin() + static_cast<std::ptrdiff_t>(n), demand_to_come_.end(),
            demand_to_come_.begin());
  for (size_t r = 0; r < n; ++r)
    demand_to_come_[demand_to_come_.size() - n + r] = ahead_.regions()[r].demand_per_s;
}

void RegionSimulator::Step() {
  for (int r = 0; r < laws_->network().size(); ++r) {
    const int most = laws_->network().regions[r].nodes_max;
    const int on_demand = std::clamp(nodes_[static_cast<size_t>(r) * kNodePrices], 0, most);
    const int spot =
        std::clamp(nodes_[static_cast<size_t>(r) * kNodePrices + 1], 0, most - on_demand);
    Order(r, kOnDemand, on_demand);
    Order(r, kSpot, spot);
  }
  source_.Step();
  if (!demand_to_come_.empty()) Foresee();
  for (int r = 0; r < laws_->network().size(); ++r) StartNodes(r);
  Serve();
  figures_.hours += world_->interval_s / kBilledHourS;
  ++step_;
  Look();
}

void RegionSimulator::Order(int region, NodePrice price, int wanted) {
  Crew& own = crew(region, price);
  const RegionWeather& weather = source_.regions()[region];
  const int now = own.ready + own.pending();
  if (wanted > now) {
    int granted = wanted - now;
    if (price == kSpot) granted = static_cast<int>(std::lround(granted * weather.spot_granted));
    const int steps = std::clamp(
        static_cast<int>(std::lround(weather.start_s / world_->interval_s)), 0, kStartStepsMax - 1);
    own.starting[steps] += granted;
    figures_.changes += granted;
    return;
  }
  int surplus = now - wanted;
  figures_.changes += surplus;
  for (int steps = kStartStepsMax - 1; steps >= 0 && surplus > 0; --steps) {
    const int cancelled = std::min(surplus, own.starting[steps]);
    own.starting[steps] -= cancelled;
    surplus -= cancelled;
  }
  own.ready -= surplus;
}

void RegionSimulator::StartNodes(int region) {
  const RegionWeather& weather = source_.regions()[region];
  for (int price = 0; price < kNodePrices; ++price) {
    Crew& own = crew(region, price);
    own.ready += own.starting[0];
    std::copy(std::begin(own.starting) + 1, std::end(own.starting), std::begin(own.starting));
    own.starting[kStartStepsMax - 1] = 0;
  }
  Crew& spot = crew(region, kSpot);
  const int lost =
      std::min(spot.ready, static_cast<int>(std::ceil(spot.ready * weather.reclaimed)));
  spot.ready -= lost;
  sights_[region].lost = lost;
}

void RegionSimulator::Serve() {
  const RegionNetwork& network = laws_->network();
  const int n = network.size();
  std::fill(load_.begin(), load_.end(), 0);
  for (int from = 0; from < n; ++from) {
    const double demand = source_.regions()[from].demand_per_s;
    for (int to = 0; to < n; ++to) {
      const double flow = flow_[network.At(from, to)] = demand * shares_[network.At(from, to)];
      load_[to] += flow;
    }
  }
  for (int to = 0; to < n; ++to) {
    const int ready = crew(to, kOnDemand).ready + crew(to, kSpot).ready;
    const int serving = source_.regions()[to].out ? 0 : ready;
    const QueueInterval queue = RunQueue(*laws_, std::min(serving, laws_->queue().nodes_max()),
                                         load_[to], world_->interval_s, &backlog_[to]);
    sights_[to].wait_s = queue.mean_wait_s;
    for (int from = 0; from < n; ++from) {
      if (flow_[network.At(from, to)] > 0) ServePair(from, to, queue);
    }
    Pay(to, serving > 0 ? std::min(1.0, load_[to] / (serving * network.service.node_per_s())) : 0);
  }
  if (!variant_.Has(Disturbance::kCache)) return;
  const double kept = std::exp(-world_->interval_s / world_->chance.cold_s);
  for (size_t i = 0; i < warm_.size(); ++i) warm_[i] = kept * warm_[i] + (1 - kept) * flow_[i];
}

void RegionSimulator::ServePair(int from, int to, const QueueInterval& queue) {
  const RegionNetwork& network = laws_->network();
  const RegionService& service = network.service;
  const RoutingObjective& objective = network.objective;
  const RegionChance& chance = world_->chance;
  const size_t at = network.At(from, to);
  const double requests = flow_[at] * world_->interval_s;
  const double trip_s = network.TripS(from, to), left_s = service.deadline_s - trip_s;
  double late = queue.LateShare(service.pod_per_s, left_s, served_[at]);
  double cold = 0;
  if (variant_.Has(Disturbance::kCache) && flow_[at] > kUsedTo * warm_[at]) {
    cold = 1 - kUsedTo * warm_[at] / flow_[at];
    late +=
        cold *
        (queue.LateShare(service.pod_per_s, left_s - chance.cold_delay_s, served_cold_[at]) - late);
  }
  // Who gives up has waited as long as patience lasts, unless nobody was there to wait for.
  const double gave_up_s = queue.spare_per_s > 0 ? service.patience_s : 0;
  const double queue_s = (1 - queue.gave_up) * queue.mean_wait_s + queue.gave_up * gave_up_s;
  const double response_s =
      trip_s + cold * chance.cold_delay_s + queue_s + (1 - queue.gave_up) / service.pod_per_s;
  double egress = network.EgressOf(to, from);
  if (cold > 0)
    egress += cold * (chance.cold_egress - 1) *
              std::max(egress, world_->egress_within * service.response_bytes * 1e-9);
  figures_.requests += requests;
  figures_.late_requests += requests * late;
  figures_.late += requests * late * objective.late;
  figures_.wait += requests * (response_s * objective.wait_per_s + queue_s * objective.queue_per_s);
  figures_.egress += requests * egress / laws_->unit();
  figures_.dollars += requests * egress;
  if (from != to) figures_.foreign += requests;
  if (tally_ != nullptr) Tally(requests, trip_s, cold, queue);
}

void RegionSimulator::Tally(double requests, double trip_s, double cold,
                            const QueueInterval& queue) {
  const double pod_per_s = laws_->network().service.pod_per_s;
  const auto late = [&](double left_s) {
    return queue.LateShare(pod_per_s, left_s, std::exp(-pod_per_s * std::max(0.0, left_s)));
  };
  tally_->requests += requests;
  for (size_t i = 0; i < tally_->times_s.size(); ++i) {
    const double left_s = tally_->times_s[i] - trip_s, warm = late(left_s);
    tally_->later[i] +=
        requests *
        (cold > 0 ? warm + cold * (late(left_s - world_->chance.cold_delay_s) - warm) : warm);
  }
}

void RegionSimulator::Pay(int region, double use) {
  const RegionNetwork& network = laws_->network();
  const Region& place = network.regions[region];
  const RegionWeather& weather = source_.regions()[region];
  const double hours = world_->interval_s / kBilledHourS;
  const auto held = [&](int price) {
    const Crew& own = crew(region, price);
    return own.ready + own.pending();
  };
  const int on_demand = held(kOnDemand), spot = held(kSpot);
  const double dollars = hours * (on_demand * place.on_demand_per_h + spot * weather.spot_per_h);
  const int ready = crew(region, kOnDemand).ready + crew(region, kSpot).ready;
  const RegionService& service = network.service;
  const double watts =
      ready * service.WattsAt(use) + (on_demand + spot - ready) * service.idle_watts;
  const double kg = watts * place.pue * hours / 1000 * weather.carbon_g_per_kwh / 1000;
  figures_.dollars += dollars;
  figures_.nodes += dollars / laws_->unit();
  figures_.carbon_kg += kg;
  figures_.carbon += kg * network.objective.carbon_per_kg / laws_->unit();
  figures_.node_hours += hours * (on_demand + spot);
  figures_.spot_hours += hours * spot;
}

void RegionSimulator::Look() {
  const RegionNetwork& network = laws_->network();
  for (int r = 0; r < network.size(); ++r) {
    const RegionWeather& weather = source_.regions()[r];
    RegionSight& seen = sights_[r];
    seen.demand_per_s = weather.demand_per_s;
    seen.load_per_s = load_[r];
    seen.backlog = backlog_[r];
    for (int price = 0; price < kNodePrices; ++price) {
      seen.ready[price] = crew(r, price).ready;
      seen.pending[price] = crew(r, price).pending();
    }
    seen.node_per_h[kOnDemand] = network.regions[r].on_demand_per_h;
    seen.node_per_h[kSpot] = weather.spot_per_h;
    seen.carbon_g_per_kwh = weather.carbon_g_per_kwh;
    seen.notice = weather.notice;
    seen.reachable = !weather.out;
  }
  figures_.change = figures_.changes * network.objective.change * laws_->mean_on_demand_per_h() /
                    60 / laws_->unit();
}

}  // namespace rudderfish
