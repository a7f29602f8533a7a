// SPDX-License-Identifier: Apache-2.0
#include "sim/region_simulator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kBilledHourS = 3600;
constexpr double kUsedTo = 1.2;  // Times what it is used to, a region serves warm.
constexpr double kWhole = 1e-9;  // Sums of parts of nodes that are whole but for rounding.

}  // namespace

RegionSimulator::RegionSimulator(std::shared_ptr<const RegionWorld> world, ServiceLaws laws)
    : world_(std::move(world)),
      unit_(world_->network->unit_dollars()),
      source_(world_),
      ahead_(world_),
      nodes_(world_) {
  const RegionNetwork& network = *world_->network;
  CHECK_EQ(laws.size(), std::max<size_t>(1, world_->services.size()));
  for (const Region& region : network.regions)
    mean_on_demand_per_h_ += region.on_demand_per_h / network.size();
  for (size_t s = 0; s < laws.size(); ++s) {
    CHECK_EQ(laws[s]->network().size(), network.size());
    services_.push_back(ServiceBy(laws[s]));
    if (!world_->services.empty())
      services_.back().per_node = world_->services[s].own.pods_per_node;
  }
  remainders_.resize(services_.size());
}

RegionSimulator::Service RegionSimulator::ServiceBy(
    const std::shared_ptr<const RegionLaws>& laws) const {
  const RegionNetwork& network = laws->network();
  const auto n = static_cast<size_t>(network.size());
  Service own{.laws = laws, .unit = laws->unit() / unit_};
  for (auto* pairs : {&own.shares, &own.flow, &own.warm}) pairs->resize(n * n);
  for (auto* regions : {&own.backlog, &own.load}) regions->resize(n);
  for (auto* counts : {&own.wanted, &own.ready, &own.held}) counts->resize(n * kNodePrices);
  own.sights.resize(n);
  const RegionService& service = network.service;
  for (int from = 0; from < network.size(); ++from) {
    for (int to = 0; to < network.size(); ++to) {
      const double left_s = service.deadline_s - network.TripS(from, to);
      own.served.push_back(std::exp(-service.pod_per_s * std::max(0.0, left_s)));
      own.served_cold.push_back(
          std::exp(-service.pod_per_s * std::max(0.0, left_s - world_->chance.cold_delay_s)));
    }
  }
  return own;
}

void RegionSimulator::Start(const RegionEpisode& episode, Foresight foresight) {
  variant_ = episode.variant;
  source_.Start(episode);
  for (Service& own : services_) {
    own.to_come.clear();
    if (foresight == Foresight::kDemand) own.to_come.resize(own.sights.size() * kForeseen);
  }
  if (foresight == Foresight::kDemand) {
    ahead_.Start(episode);
    for (int interval = 0; interval < kForeseen; ++interval) Foresee();
  }
  figures_ = {};
  step_ = 0;
  nodes_.Clear();
  for (int s = 0; s < services(); ++s) StartService(s);
  for (int r = 0; r < world_->network->size(); ++r) {
    double nodes = 0;
    for (const Service& own : services_)
      nodes += static_cast<double>(own.wanted[r * kNodePrices]) / own.per_node;
    nodes_.Give(r, kOnDemand, static_cast<int>(std::ceil(nodes - kWhole)));
    Fill(r, kOnDemand, nodes_.ready(r, kOnDemand), &Service::ready);
    Fill(r, kOnDemand, nodes_.ready(r, kOnDemand), &Service::held);
  }
  Look();
}

void RegionSimulator::StartService(int service) {
  Service& own = services_[static_cast<size_t>(service)];
  const RegionNetwork& network = own.laws->network();
  const double node_per_s = network.service.node_per_s() * kUnitUse;
  for (auto* all : {&own.shares, &own.flow, &own.warm, &own.backlog})
    std::fill(all->begin(), all->end(), 0);
  for (auto* all : {&own.wanted, &own.ready, &own.held}) std::fill(all->begin(), all->end(), 0);
  std::fill(own.sights.begin(), own.sights.end(), RegionSight{});
  for (int r = 0; r < network.size(); ++r) {
    const double demand = source_.DemandOf(service, r);
    own.shares[network.At(r, r)] = 1;
    own.warm[network.At(r, r)] = own.load[r] = demand;
    own.wanted[static_cast<size_t>(r) * kNodePrices] = std::clamp(
        static_cast<int>(std::ceil(demand / node_per_s)), 1, network.regions[r].nodes_max);
  }
}

RoutingQuestion RegionSimulator::Question(int service) const {
  const Service& own = services_[static_cast<size_t>(service)];
  return {.step = step_,
          .interval_s = world_->interval_s,
          .has_spot = variant_.Has(Disturbance::kSpot),
          .has_notices = variant_.Has(Disturbance::kSpot) && world_->chance.notice > 0,
          .laws = own.laws.get(),
          .regions = own.sights,
          .true_demand_per_s = own.to_come};
}

RoutingAnswer RegionSimulator::Answer(int service) {
  Service& own = services_[static_cast<size_t>(service)];
  return {.shares = own.shares, .nodes = own.wanted};
}

// One interval more, in place of the one that has come.
void RegionSimulator::Foresee() {
  ahead_.Step();
  const size_t n = ahead_.regions().size();
  for (int s = 0; s < services(); ++s) {
    std::vector<double>& to_come = services_[static_cast<size_t>(s)].to_come;
    std::copy(to_come.begin() + static_cast<std::ptrdiff_t>(n), to_come.end(), to_come.begin());
    for (size_t r = 0; r < n; ++r)
      to_come[to_come.size() - n + r] = ahead_.DemandOf(s, static_cast<int>(r));
  }
}

void RegionSimulator::Step() {
  const int n = world_->network->size();
  for (int r = 0; r < n; ++r) OrderNodes(r);
  source_.Step();
  if (!services_[0].to_come.empty()) Foresee();
  for (int r = 0; r < n; ++r) StartNodes(r);
  for (int s = 0; s < services(); ++s) Serve(s);
  for (int r = 0; r < n; ++r) Pay(r);
  figures_.hours += world_->interval_s / kBilledHourS;
  ++step_;
  Look();
}

void RegionSimulator::OrderNodes(int region) {
  int wanted[kNodePrices];
  for (int price = 0; price < kNodePrices; ++price) {
    double nodes = 0;
    for (Service& own : services_) {
      int& pods = own.wanted[static_cast<size_t>(region) * kNodePrices + price];
      pods = std::max(0, pods);
      nodes += static_cast<double>(pods) / own.per_node;
    }
    wanted[price] = static_cast<int>(std::ceil(nodes - kWhole));
  }
  figures_.changes +=
      nodes_.Order(region, wanted[kOnDemand], wanted[kSpot], source_.regions()[region]);
}

// Nodes that are ready, without those of a brown-out.
int RegionSimulator::Serving(int region, int price) const {
  const int ready = nodes_.ready(region, price);
  return ready - static_cast<int>(std::lround(source_.regions()[region].dark * ready));
}

void RegionSimulator::StartNodes(int region) {
  nodes_.Start(region);
  Fill(region, kOnDemand, Serving(region, kOnDemand), &Service::ready);
  Fill(region, kSpot, Serving(region, kSpot), &Service::ready);
  const size_t at = static_cast<size_t>(region) * kNodePrices + kSpot;
  for (Service& own : services_) own.sights[region].lost = own.ready[at];
  if (nodes_.Lose(region, source_.regions()[region]) > 0)
    Fill(region, kSpot, Serving(region, kSpot), &Service::ready);
  for (Service& own : services_)
    own.sights[region].lost = std::max(0, own.sights[region].lost - own.ready[at]);
  for (int price = 0; price < kNodePrices; ++price)
    Fill(region, price, nodes_.held(region, price), &Service::held);
}

// Which pods stand on so many nodes: all that are wanted, or of each service the same part of them,
// by largest remainder.
void RegionSimulator::Fill(int region, int price, int nodes, std::vector<int> Service::*to) {
  const size_t at = static_cast<size_t>(region) * kNodePrices + price;
  double wanted = 0;
  for (const Service& own : services_) wanted += static_cast<double>(own.wanted[at]) / own.per_node;
  const double part = wanted > nodes ? nodes / wanted : 1;
  double left = nodes;
  for (size_t s = 0; s < services_.size(); ++s) {
    Service& own = services_[s];
    const double pods = own.wanted[at] * part;
    const int whole = static_cast<int>(std::floor(pods + kWhole));
    (own.*to)[at] = whole;
    remainders_[s] = pods - whole;
    left -= static_cast<double>(whole) / own.per_node;
  }
  if (part == 1) return;
  for (;;) {
    size_t most = services_.size();
    for (size_t s = 0; s < services_.size(); ++s) {
      if (remainders_[s] < kWhole || left + kWhole < 1.0 / services_[s].per_node) continue;
      if (most == services_.size() || remainders_[s] > remainders_[most]) most = s;
    }
    if (most == services_.size()) return;
    ++(services_[most].*to)[at];
    left -= 1.0 / services_[most].per_node;
    remainders_[most] = 0;
  }
}

void RegionSimulator::Serve(int service) {
  Service& own = services_[static_cast<size_t>(service)];
  const RegionNetwork& network = own.laws->network();
  const int n = network.size();
  std::fill(own.load.begin(), own.load.end(), 0);
  for (int from = 0; from < n; ++from) {
    const double demand = source_.DemandOf(service, from);
    for (int to = 0; to < n; ++to) {
      const size_t at = network.At(from, to);
      own.flow[at] = demand * own.shares[at];
      own.load[to] += own.flow[at];
    }
  }
  for (int to = 0; to < n; ++to) {
    const int* ready = own.ready.data() + static_cast<size_t>(to) * kNodePrices;
    const int serving = source_.regions()[to].out ? 0 : ready[kOnDemand] + ready[kSpot];
    const QueueInterval queue =
        RunQueue(*own.laws, std::min(serving, own.laws->queue().nodes_max()), own.load[to],
                 world_->interval_s, &own.backlog[to]);
    own.sights[to].wait_s = queue.mean_wait_s;
    for (int from = 0; from < n; ++from) {
      if (own.flow[network.At(from, to)] > 0) ServePair(service, from, to, queue);
    }
  }
  if (!variant_.Has(Disturbance::kCache)) return;
  const double kept = std::exp(-world_->interval_s / world_->chance.cold_s);
  for (size_t i = 0; i < own.warm.size(); ++i)
    own.warm[i] = kept * own.warm[i] + (1 - kept) * own.flow[i];
}

void RegionSimulator::ServePair(int service, int from, int to, const QueueInterval& queue) {
  Service& own = services_[static_cast<size_t>(service)];
  const RegionNetwork& network = own.laws->network();
  const RegionService& law = network.service;
  const RoutingObjective& objective = network.objective;
  const RegionChance& chance = world_->chance;
  const size_t at = network.At(from, to);
  const double requests = own.flow[at] * world_->interval_s;
  const double trip_s = network.TripS(from, to), left_s = law.deadline_s - trip_s;
  double late = queue.LateShare(law.pod_per_s, left_s, own.served[at]);
  double cold = 0;
  if (variant_.Has(Disturbance::kCache) && own.flow[at] > kUsedTo * own.warm[at]) {
    cold = 1 - kUsedTo * own.warm[at] / own.flow[at];
    late +=
        cold *
        (queue.LateShare(law.pod_per_s, left_s - chance.cold_delay_s, own.served_cold[at]) - late);
  }
  // Who gives up has waited as long as patience lasts, unless nothing was there to wait for.
  const double gave_up_s = queue.spare_per_s > 0 ? law.patience_s : 0;
  const double queue_s = (1 - queue.gave_up) * queue.mean_wait_s + queue.gave_up * gave_up_s;
  const double response_s =
      trip_s + cold * chance.cold_delay_s + queue_s + (1 - queue.gave_up) / law.pod_per_s;
  double egress = network.EgressOf(to, from);
  if (cold > 0)
    egress += cold * (chance.cold_egress - 1) *
              std::max(egress, world_->egress_within * law.response_bytes * 1e-9);
  figures_.requests += requests;
  figures_.late_requests += requests * late;
  figures_.services[static_cast<size_t>(service)].requests += requests;
  figures_.services[static_cast<size_t>(service)].late_requests += requests * late;
  figures_.late += own.unit * requests * late * objective.late;
  figures_.wait +=
      own.unit * requests * (response_s * objective.wait_per_s + queue_s * objective.queue_per_s);
  figures_.egress += requests * egress / unit_;
  figures_.dollars += requests * egress;
  if (from != to) figures_.foreign += requests;
  figures_.of_provider[static_cast<size_t>(network.regions[to].provider)] += requests;
  if (tally_ != nullptr) Tally(law, requests, trip_s, cold, queue);
}

void RegionSimulator::Tally(const RegionService& service, double requests, double trip_s,
                            double cold, const QueueInterval& queue) {
  const double pod_per_s = service.pod_per_s;
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

void RegionSimulator::Pay(int region) {
  const RegionNetwork& network = *world_->network;
  const Region& place = network.regions[region];
  const RegionWeather& weather = source_.regions()[region];
  const double hours = world_->interval_s / kBilledHourS;
  const int on_demand = nodes_.held(region, kOnDemand), spot = nodes_.held(region, kSpot);
  const double dollars = hours * (on_demand * place.on_demand_per_h + spot * weather.spot_per_h);
  const int ready = nodes_.ready(region);
  double busy = 0;  // Nodes in full use.
  for (const Service& own : services_) {
    const int* pods = own.ready.data() + static_cast<size_t>(region) * kNodePrices;
    const double used = own.load[region] / own.laws->network().service.node_per_s();
    busy += std::min<double>(pods[kOnDemand] + pods[kSpot], used) / own.per_node;
  }
  const double use = weather.out || ready == 0 ? 0 : std::min(1.0, busy / ready);
  const RegionService& service = network.service;
  const double watts =
      ready * service.WattsAt(use) + (on_demand + spot - ready) * service.idle_watts;
  const double kg = watts * place.pue * hours / 1000 * weather.carbon_g_per_kwh / 1000;
  figures_.dollars += dollars;
  figures_.nodes += dollars / unit_;
  figures_.carbon_kg += kg;
  figures_.carbon += kg * network.objective.carbon_per_kg / unit_;
  figures_.node_hours += hours * (on_demand + spot);
  figures_.spot_hours += hours * spot;
}

void RegionSimulator::Look() {
  const RegionNetwork& network = *world_->network;
  for (int s = 0; s < services(); ++s) {
    Service& own = services_[static_cast<size_t>(s)];
    for (int r = 0; r < network.size(); ++r) {
      const RegionWeather& weather = source_.regions()[r];
      RegionSight& seen = own.sights[r];
      seen.demand_per_s = source_.DemandOf(s, r);
      seen.load_per_s = own.load[r];
      seen.backlog = own.backlog[r];
      for (int price = 0; price < kNodePrices; ++price) {
        const size_t at = static_cast<size_t>(r) * kNodePrices + price;
        seen.ready[price] = own.ready[at];
        seen.pending[price] = std::max(0, own.held[at] - own.ready[at]);
      }
      seen.node_per_h[kOnDemand] = network.regions[r].on_demand_per_h / own.per_node;
      seen.node_per_h[kSpot] = weather.spot_per_h / own.per_node;
      seen.carbon_g_per_kwh = weather.carbon_g_per_kwh;
      seen.notice = weather.notice;
      seen.reachable = !weather.out;
    }
  }
  figures_.change =
      figures_.changes * network.objective.change * mean_on_demand_per_h_ / 60 / unit_;
}

}  // namespace rudderfish
