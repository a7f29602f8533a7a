// SPDX-License-Identifier: Apache-2.0
#include "model/load_laws.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "model/queueing.h"

namespace rudderfish {
namespace {

constexpr double kMostPasses = 20;
constexpr double kLeastWaits = 1e-9;
constexpr int kExactPods = 32;       // Each number of pods up to here has a table of its own;
constexpr int kTablesADoubling = 8;  // from there on, so many a doubling.

constexpr double kHighPerDecade = PodEquilibria::kHighIntervals / 4.0;

double HighUtilisation(int i) { return 1 - std::pow(10, -i / kHighPerDecade); }

// Intervals of low utilisation in one e-fold of it.
double LowPerLog() {
  static const double per_log =
      (PodEquilibria::kLowIntervals - 1) / std::log(HighUtilisation(1) / PodEquilibria::kLeast);
  return per_log;
}

// The number of pods that table `index` is of, and the table nearest to a number of pods.
int PodsOfTable(int index) {
  if (index < kExactPods) return index + 1;
  return static_cast<int>(
      std::lround(kExactPods * std::pow(2, (index - kExactPods + 1.0) / kTablesADoubling)));
}

int TableOfPods(int pods) {
  if (pods <= kExactPods) return pods - 1;
  const double doublings = std::log2(static_cast<double>(pods) / kExactPods);
  return kExactPods - 1 + static_cast<int>(std::lround(kTablesADoubling * doublings));
}

// Calls in line at one of several equal pods, at one utilisation.
struct InLine {
  double length = 0, waits = 0;
};

// What does not depend on how many they are.
struct SingleLine {
  double utilisation = 0, waits = 0;
  double length = 0;  // Where calls are exponential.
  double many = 0;    // The shortest of d of very many.
};

SingleLine SingleAt(const ServedWorkload& workload, double utilisation) {
  SingleLine line{.utilisation = utilisation};
  line.waits = ErlangC(workload.slots, utilisation * workload.slots);
  line.length = line.waits * utilisation / (1 - utilisation);
  if (workload.balancing != Balancing::kLeastRequests) return line;
  const double shortest =
      ShortestOfChoicesResponse(utilisation, workload.choices) * utilisation - utilisation;
  line.many = shortest * std::pow(utilisation > 0 ? line.waits / utilisation : 0, workload.choices);
  return line;
}

InLine LineAt(const ServedWorkload& workload, int pods, const SingleLine& single,
              double service_scv) {
  const double spread = (1 + service_scv) / 2;
  if (pods == 1 || workload.balancing == Balancing::kRandom)
    return {single.length * spread, single.waits};
  if (workload.balancing == Balancing::kRoundRobin)
    return {single.length * (1.0 / pods + service_scv) / 2, single.waits};
  // Between the shortest of d of very many queues and one queue for all of these.
  const double utilisation = single.utilisation;
  const int all = pods * workload.slots;
  const double pooled_waits = ErlangC(all, utilisation * all);
  const double pooled = pooled_waits * utilisation / (1 - utilisation) / pods;
  return {std::min(single.length, single.many + pooled) * spread,
          std::min(single.waits, std::pow(single.waits, workload.choices) + pooled_waits)};
}

// CrewLaw::turnover.
double TurnoverOfShared(double service_scv) { return 2 / (1 + service_scv); }

// PodPoint::waits of calls that share the slots of a pod.
double WaitsWhereShared(const ServedWorkload& workload, double utilisation, double present,
                        double waits, double service_scv) {
  const double offered = utilisation * workload.slots;
  const double stretch = offered > 0 ? present / offered : 1;
  return 2 / (1 + SharingVariation(utilisation, workload.slots, waits, stretch, service_scv));
}

std::vector<PodEquilibria> EquilibriaFor(const ServedWorkload& workload, double service_scv) {
  const bool shared = workload.discipline == Discipline::kShared;
  std::vector<SingleLine> singles;
  for (int i = 0; i <= PodEquilibria::kIntervals; ++i)
    singles.push_back(SingleAt(workload, PodEquilibria::UtilisationAt(i)));
  const int most = std::max({workload.replicas, workload.replicas_max, 1});
  const int tables = workload.balancing == Balancing::kRandom ? 1 : TableOfPods(most) + 1;
  std::vector<PodEquilibria> made;
  for (int table = 0; table < tables; ++table) {
    std::vector<PodPoint> points;
    for (int i = 0; i <= PodEquilibria::kIntervals; ++i) {
      InLine line = LineAt(workload, PodsOfTable(table), singles[i], service_scv);
      // As much work is left as in a line, of calls that have less left each.
      if (shared) line.length *= TurnoverOfShared(service_scv);
      const double utilisation = singles[i].utilisation;
      const double present = utilisation * workload.slots + line.length;
      const double waits = std::max(line.waits, kLeastWaits);
      points.push_back(
          {.utilisation = utilisation,
           .present = present,
           .variance = present + line.length * line.length * (2 / waits - 1),
           .waits = shared ? WaitsWhereShared(workload, utilisation, present, waits, service_scv)
                           : waits});
    }
    made.emplace_back(std::move(points));
  }
  return made;
}

}  // namespace

PodEquilibria::PodEquilibria(std::vector<PodPoint> points) : points_(std::move(points)) {
  CHECK_EQ(points_.size(), static_cast<size_t>(kIntervals + 1));
}

double PodEquilibria::UtilisationAt(int interval) {
  if (interval >= kLowIntervals)
    return std::min(HighUtilisation(interval - kLowIntervals + 1), kFull);
  return interval == 0 ? 0 : kLeast * std::exp((interval - 1) / LowPerLog());
}

// By the formula of UtilisationAt; next to a bound that may be one off.
int PodEquilibria::IntervalOfUtilisation(double utilisation) const {
  int interval = 0;
  if (utilisation >= points_[kLowIntervals].utilisation) {
    const int high = static_cast<int>(-std::log10(1 - utilisation) * kHighPerDecade);
    interval = std::clamp(high + kLowIntervals - 1, kLowIntervals, kIntervals - 1);
  } else if (utilisation > kLeast) {
    const int low = 1 + static_cast<int>(std::log(utilisation / kLeast) * LowPerLog());
    interval = std::min(low, kLowIntervals - 1);
  }
  if (utilisation < points_[interval].utilisation) return std::max(interval - 1, 0);
  if (utilisation < points_[interval + 1].utilisation) return interval;
  return std::min(interval + 1, kIntervals - 1);
}

int PodEquilibria::IntervalOfPresent(double present) const {
  const auto above =
      std::upper_bound(points_.begin(), points_.end(), present,
                       [](double wanted, const PodPoint& point) { return wanted < point.present; });
  return static_cast<int>(above - points_.begin()) - 1;
}

const PodEquilibria& CrewLaw::EquilibriaOf(int pods) const {
  if (equilibria.size() == 1) return equilibria[0];
  return equilibria[std::min<size_t>(TableOfPods(pods), equilibria.size() - 1)];
}

LoadLaws::LoadLaws(std::shared_ptr<const ServedApplication> application)
    : application_(std::move(application)) {
  const std::vector<double> shares = application_->EndpointShares();
  for (size_t e = 0; e < shares.size(); ++e) endpoints_.push_back(EndpointOf(e, shares[e]));
  const std::vector<double> calls = application_->CallsPerRequest();
  const std::vector<double> demand = application_->DemandS();
  for (WorkloadId w = 0; w < application_->workload_count(); ++w)
    crews_.push_back(CrewOf(w, calls[w], demand[w]));
  const CallGraph& graph = *application_->calls;
  bringers_.assign(graph.calls.size(), kNone);
  for (CallId id = 0; id < graph.call_count(); ++id) {
    for (int g = graph.calls[id].first_group; g < graph.calls[id].last_group; ++g) {
      CallId bringer = id;
      for (int i = graph.groups[g].first; i < graph.groups[g].last; ++i) {
        CHECK(bringer < graph.sequence[i]);  // In preorder.
        bringers_[graph.sequence[i]] = bringer;
        bringer = graph.sequence[i];
      }
    }
  }
  log_timeout_ = application_->timeout_s > 0 ? std::log(application_->timeout_s)
                                             : std::numeric_limits<double>::infinity();
}

CrewLaw LoadLaws::CrewOf(WorkloadId w, double calls, double demand_s) const {
  const ServedWorkload& workload = application_->workloads[w];
  const CallGraph& graph = *application_->calls;
  CrewLaw law{.slots = static_cast<double>(workload.slots),
              .most_present = workload.slots + static_cast<double>(workload.queue_limit),
              .shared = workload.discipline == Discipline::kShared,
              .passes_most = kMostPasses,
              .calls_per_request = calls,
              .start_delay_s = workload.MeanStartS(),
              .pull_s = (workload.pull_low_s + workload.pull_high_s) / 2,
              .image_nodes = workload.image_nodes,
              .cores = static_cast<double>(workload.cpu_millis) / 1000,
              .scaled = workload.scaled};
  if (!workload.scaled || calls <= 0 || demand_s <= 0) return law;
  law.service_s = demand_s / calls;
  law.capacity_per_s = law.slots / law.service_s;
  double squares = 0;
  for (size_t e = 0; e < endpoints_.size(); ++e) {
    int visits = 0;
    for (CallId call = graph.endpoints[e].root + 1; call < graph.endpoints[e].end; ++call) {
      if (graph.calls[call].workload != w) continue;
      ++visits;
      const double service_s = application_->service_ms[call] / 1000;
      squares += endpoints_[e].share / calls * service_s * service_s * (1 + workload.service.scv);
    }
    // What leaves a line faster than it came comes again where a request calls it again; that
    // would feed on itself.
    if (visits > 1) law.passes_most = 1;
  }
  law.service_scv = squares / (law.service_s * law.service_s) - 1;
  if (law.shared) law.turnover = TurnoverOfShared(law.service_scv);
  law.equilibria = EquilibriaFor(workload, law.service_scv);
  return law;
}

EndpointLaw LoadLaws::EndpointOf(size_t e, double share) const {
  const CallGraph& graph = *application_->calls;
  const Endpoint& endpoint = graph.endpoints[e];
  EndpointLaw law{.share = share, .log_qos = std::log(endpoint.qos_ms / 1000)};
  std::vector<EndpointLaw::SharedVisit> visits(application_->workloads.size());
  for (CallId id = endpoint.root; id < endpoint.end; ++id) {
    const Call& call = graph.calls[id];
    if (call.last_group - call.first_group > 1) law.parallel = true;
    if (call.caller == kNone) continue;
    const double service_s = application_->service_ms[id] / 1000;
    law.mean_s += 2 * application_->network_ms / 1000 + service_s;
    const double variance_s2 =
        application_->workloads[call.workload].service.scv * service_s * service_s;
    law.variance_s2 += variance_s2;
    EndpointLaw::SharedVisit& visit = visits[call.workload];
    visit.workload = call.workload;
    visit.count += 1;
    visit.service_s += service_s;
    visit.square_s2 += service_s * service_s + variance_s2;
    visit.own_variance_s2 += variance_s2;
  }
  for (const EndpointLaw::SharedVisit& visit : visits) {
    if (visit.count == 0) continue;
    if (application_->workloads[visit.workload].discipline == Discipline::kInLine) {
      law.visits.push_back({visit.workload, visit.count});
    } else if (visit.service_s > 0) {
      law.shared_visits.push_back(visit);
    }
  }
  return law;
}

}  // namespace rudderfish
