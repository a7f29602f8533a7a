// SPDX-License-Identifier: Apache-2.0
#include "model/load_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "model/queueing.h"

namespace rudderfish {
namespace {

// Equilibria are kept at utilisations 1 - 10^(-4 i / kPoints).
constexpr int kPoints = 160;
constexpr double kDecades = 4;
constexpr double kFull = 0.9999;
constexpr double kMostPasses = 20;

// Buckets of responses: from 0.1 ms on, each 8 % wider; up to some minutes.
constexpr int kResponseBuckets = 200;
constexpr double kLeastResponseS = 1e-4, kResponseRatio = 1.08;

double UtilisationAt(double point) { return 1 - std::pow(10, -kDecades * point / kPoints); }

double PointAt(double utilisation) {
  return -std::log10(std::max(1 - utilisation, 1e-5)) * kPoints / kDecades;
}

double Interpolate(const std::vector<double>& values, double point) {
  const double bounded = std::clamp(point, 0.0, static_cast<double>(kPoints));
  const auto below = std::min<size_t>(static_cast<size_t>(bounded), kPoints - 1);
  const double share = bounded - static_cast<double>(below);
  return values[below] + share * (values[below + 1] - values[below]);
}

// The point at which so many are present, between 0 and kPoints.
double PointOf(const std::vector<double>& present, double wanted) {
  if (wanted <= 0) return 0;
  const auto at = std::upper_bound(present.begin(), present.end(), wanted);
  if (at == present.end()) return kPoints;
  const auto above = static_cast<double>(at - present.begin());
  const double low = *(at - 1), high = *at;
  return above - 1 + (high > low ? (wanted - low) / (high - low) : 0);
}

// Calls in line at one of `pods` equal pods.
struct InLine {
  double length = 0, waits = 0;
};

InLine LineAt(const ServedWorkload& workload, int pods, double utilisation, double service_scv) {
  const double load = utilisation * workload.slots;
  const double waits = ErlangC(workload.slots, load);
  const double single = waits * utilisation / (1 - utilisation);
  const double spread = (1 + service_scv) / 2;
  if (pods == 1 || workload.balancing == Balancing::kRandom) return {single * spread, waits};
  if (workload.balancing == Balancing::kRoundRobin)
    return {single * (1.0 / pods + service_scv) / 2, waits};
  // Between the shortest of d of very many queues and one queue for all of these.
  const int all = pods * workload.slots;
  const double pooled_waits = ErlangC(all, utilisation * all);
  const double pooled = pooled_waits * utilisation / (1 - utilisation) / pods;
  const double many =
      ShortestOfChoicesResponse(utilisation, workload.choices) * utilisation - utilisation;
  const double fewer = std::pow(utilisation > 0 ? waits / utilisation : 0, workload.choices);
  const double length = std::min(single, many * fewer + pooled);
  return {length * spread, std::min(waits, std::pow(waits, workload.choices) + pooled_waits)};
}

}  // namespace

LoadModel::LoadModel(std::shared_ptr<const ServedApplication> application)
    : application_(std::move(application)), shares_(application_->EndpointShares()) {
  Start();
}

void LoadModel::Start() {
  const CallGraph& graph = *application_->calls;
  crews_.assign(application_->workloads.size(), Crew());
  flow_.assign(graph.calls.size(), 0);
  below_.assign(graph.calls.size(), Moments());
  histogram_.assign(kResponseBuckets + 1, 0);
  now_s_ = 0;
  attempts_ = 1;
  outcome_ = {};
  const std::vector<double> calls = application_->CallsPerRequest();
  const std::vector<double> demand = application_->DemandS();
  for (size_t w = 0; w < crews_.size(); ++w) {
    const ServedWorkload& workload = application_->workloads[w];
    if (!workload.scaled || calls[w] <= 0) continue;
    Crew& crew = crews_[w];
    crew.service_s = demand[w] / calls[w];
    // What leaves a line faster than it came comes again where a request calls it again; that
    // would feed on itself.
    double squares = 0;
    crew.passes_most = kMostPasses;
    for (size_t e = 0; e < shares_.size(); ++e) {
      const Endpoint& endpoint = graph.endpoints[e];
      int visits = 0;
      for (CallId call = endpoint.root + 1; call < endpoint.end; ++call) {
        visits += graph.calls[call].workload == static_cast<WorkloadId>(w) ? 1 : 0;
        const double service_s = application_->service_ms[call] / 1000;
        if (graph.calls[call].workload == static_cast<WorkloadId>(w))
          squares += shares_[e] / calls[w] * service_s * service_s * (1 + workload.service.scv);
      }
      if (visits > 1) crew.passes_most = 1;
    }
    crew.service_scv = squares / (crew.service_s * crew.service_s) - 1;
    if (workload.replicas > 0) crew.ready.push_back({.pods = workload.replicas});
  }
}

int LoadModel::ready(WorkloadId workload) const {
  int pods = 0;
  for (const Cohort& cohort : crews_[workload].ready) pods += cohort.pods;
  return pods;
}

int LoadModel::replicas(WorkloadId workload) const {
  int pods = ready(workload);
  for (const Starting& starting : crews_[workload].starting) pods += starting.pods;
  return pods;
}

double LoadModel::backlog(WorkloadId workload) const {
  double calls = 0;
  for (const Cohort& cohort : crews_[workload].ready) calls += cohort.pods * cohort.present;
  return calls;
}

double LoadModel::calls_per_s(WorkloadId workload) const { return crews_[workload].arrivals_per_s; }

double LoadModel::busy_slots(WorkloadId workload) const { return crews_[workload].busy; }

void LoadModel::SetReplicas(WorkloadId workload, int replicas) {
  const ServedWorkload& served = application_->workloads[workload];
  Crew& crew = crews_[workload];
  int now = this->replicas(workload);
  if (replicas > now) {
    const double delay_s = (served.start_low_s + served.start_high_s) / 2;
    crew.starting.push_back({.pods = replicas - now, .ready_s = now_s_ + delay_s});
  }
  while (now > replicas && !crew.starting.empty()) {
    Starting& last = crew.starting.back();
    const int gone = std::min(last.pods, now - replicas);
    last.pods -= gone;
    now -= gone;
    if (last.pods == 0) crew.starting.pop_back();
  }
  while (now > replicas && !crew.ready.empty()) {
    Cohort& last = crew.ready.back();
    const int gone = std::min(last.pods, now - replicas);
    // They serve who is in their line before they go.
    outcome_.pod_s += gone * last.present * crew.service_s / served.slots;
    last.pods -= gone;
    now -= gone;
    if (last.pods == 0) crew.ready.pop_back();
  }
}

void LoadModel::Advance(double seconds, double requests_per_s) {
  CHECK(seconds >= 0 && requests_per_s >= 0);
  while (seconds > 1e-9) {
    const double step = std::min(seconds, kStepS);
    Step(step, requests_per_s);
    seconds -= step;
  }
}

void LoadModel::Step(double seconds, double requests_per_s) {
  now_s_ += seconds;
  Flow(requests_per_s * attempts_);
  for (WorkloadId w = 0; w < application_->workload_count(); ++w) {
    Crew& crew = crews_[w];
    const ServedWorkload& workload = application_->workloads[w];
    if (!workload.scaled) continue;
    const double pods = replicas(w);
    outcome_.pod_s += pods * seconds;
    outcome_.core_s += pods * seconds * static_cast<double>(workload.cpu_millis) / 1000;
    for (const Starting& starting : crew.starting) {
      if (starting.ready_s <= now_s_) crew.ready.push_back({.pods = starting.pods});
    }
    std::erase_if(crew.starting, [&](const Starting& one) { return one.ready_s <= now_s_; });
    if (crew.service_s > 0) Pass(workload, seconds, &crew);
  }
  double again = 0;
  for (size_t e = 0; e < shares_.size(); ++e) {
    const Endpoint& endpoint = application_->calls->endpoints[e];
    const Moments response = ResponseOf(endpoint);
    double kept = 1;
    for (CallId call = endpoint.root + 1; call < endpoint.end; ++call)
      kept *= 1 - crews_[application_->calls->calls[call].workload].refused_share;
    Count(requests_per_s * shares_[e] * seconds, response, 1 - kept, endpoint.qos_ms / 1000);
    double late = 1 - kept;
    if (application_->timeout_s > 0) {
      const GammaLaw law{response.mean, response.variance};
      late = 1 - kept * law.Below(application_->timeout_s);
    }
    for (int retry = 1; retry <= application_->retries; ++retry)
      again += shares_[e] * std::pow(late, retry);
  }
  attempts_ = 1 + again;
}

// Calls per second, from callers to callees: who is held up upstream does not come yet.
void LoadModel::Flow(double requests_per_s) {
  const CallGraph& graph = *application_->calls;
  for (Crew& crew : crews_) crew.arrivals_per_s = 0;
  for (size_t e = 0; e < shares_.size(); ++e)
    flow_[graph.endpoints[e].root] = requests_per_s * shares_[e];
  for (CallId id = 0; id < graph.call_count(); ++id) {
    const Call& call = graph.calls[id];
    Crew& crew = crews_[call.workload];
    if (call.caller != kNone) crew.arrivals_per_s += flow_[id];
    const double leaves = call.caller == kNone ? flow_[id] : flow_[id] * crew.passes;
    for (int g = call.first_group; g < call.last_group; ++g) {
      double next = leaves;
      for (int i = graph.groups[g].first; i < graph.groups[g].last; ++i) {
        const CallId callee = graph.sequence[i];
        flow_[callee] = next;
        next *= crews_[graph.calls[callee].workload].passes;
      }
    }
  }
}

void LoadModel::MakeEquilibria(const ServedWorkload& workload, Crew* crew) const {
  int pods = 0;
  for (const Cohort& cohort : crew->ready) pods += cohort.pods;
  if (crew->equilibria.pods == pods) return;
  Equilibria& made = crew->equilibria;
  made.pods = pods;
  made.present.resize(kPoints + 1);
  made.variance.resize(kPoints + 1);
  made.waits.resize(kPoints + 1);
  for (int i = 0; i <= kPoints; ++i) {
    const double utilisation = std::min(UtilisationAt(i), kFull);
    const InLine line = LineAt(workload, pods, utilisation, crew->service_scv);
    made.present[i] = utilisation * workload.slots + line.length;
    made.waits[i] = std::max(line.waits, 1e-9);
    made.variance[i] = utilisation * workload.slots + line.length +
                       line.length * line.length * (2 / made.waits[i] - 1);
  }
}

// One step of all cohorts of a workload.
void LoadModel::Pass(const ServedWorkload& workload, double seconds, Crew* crew) const {
  MakeEquilibria(workload, crew);
  const Equilibria& known = crew->equilibria;
  crew->busy = crew->wait_s = crew->wait_variance_s2 = 0;
  crew->refused_share = known.pods == 0 ? 1 : 0;
  crew->passes = 1;
  if (known.pods == 0) return;
  const double capacity = workload.slots / crew->service_s;
  const double arrivals = crew->arrivals_per_s / known.pods;
  const double load = arrivals / capacity;
  double second_moment = 0, refused = 0, grown = 0;
  for (Cohort& cohort : crew->ready) {
    const double before = cohort.present;
    const double calm = load < kFull ? Interpolate(known.present, PointAt(load)) : 0;
    constexpr int kParts = 4;
    double busy = 0;
    for (int part = 0; part < kParts; ++part) {
      const double point = PointOf(known.present, cohort.present);
      const double use = std::min(1.0, UtilisationAt(point));
      busy += use / kParts;
      const double dt = seconds / kParts;
      const double gap = cohort.present - calm;
      if (load < kFull && std::abs(gap) > 1e-9) {
        const double rate = std::max(1e-9, capacity * (use - load) / gap);
        cohort.present = calm + gap * std::exp(-rate * dt);
      } else if (load >= kFull) {
        cohort.present = std::max(0.0, cohort.present + (arrivals - capacity * use) * dt);
      }
      const double next = std::min<double>(point + 1, kPoints), last = std::max(next - 1, 0.0);
      const double slope =
          (UtilisationAt(next) - UtilisationAt(last)) /
          std::max(1e-12, Interpolate(known.present, next) - Interpolate(known.present, last));
      // Beyond the table calls only add up: the noise of arrivals and services.
      const double still = Interpolate(known.variance, point);
      cohort.variance += point >= kPoints
                             ? (arrivals + capacity * crew->service_scv) * dt
                             : (still - cohort.variance) * -std::expm1(-2 * capacity * slope * dt);
    }
    const double most = workload.slots + static_cast<double>(workload.queue_limit);
    if (cohort.present > most) {
      cohort.present = most;
      refused += cohort.pods * std::max(0.0, 1 - 1 / std::max(load, 1e-9)) / known.pods;
    }
    grown += cohort.pods * (cohort.present - before);
    const double present = (before + cohort.present) / 2;
    const double point = PointOf(known.present, present);
    const double use = std::max(std::min(1.0, UtilisationAt(point)), 1e-9);
    const double wait = std::max(0.0, present / (capacity * use) - crew->service_s);
    const double waits = std::min(1.0, Interpolate(known.waits, point));
    const double still = std::max(Interpolate(known.variance, point), 1e-12);
    const double spread =
        point >= kPoints ? cohort.variance / (capacity * capacity)
                         : wait * wait * (2 / waits - 1) * std::min(cohort.variance / still, 2.0);
    const double share = static_cast<double>(cohort.pods) / known.pods;
    crew->wait_s += share * wait;
    second_moment += share * (wait * wait + spread);
    crew->busy += cohort.pods * workload.slots * busy;
  }
  crew->wait_variance_s2 = std::max(0.0, second_moment - crew->wait_s * crew->wait_s);
  crew->refused_share = refused;
  if (crew->arrivals_per_s > 0)
    crew->passes = std::clamp(1 - grown / (crew->arrivals_per_s * seconds), 0.0, crew->passes_most);
}

// Mean and variance of the slowest of independent gamma laws: integrals of 1 - prod F.
LoadModel::Moments LoadModel::Slowest(std::span<const Moments> groups) {
  double end = 0;
  for (const Moments& one : groups) end = std::max(end, one.mean + 8 * std::sqrt(one.variance));
  constexpr int kSteps = 48;
  double mean = 0, square = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double t = (i + 0.5) * end / kSteps;
    double below = 1;
    for (const Moments& one : groups) below *= GammaLaw{one.mean, one.variance}.Below(t);
    mean += (1 - below) * end / kSteps;
    square += 2 * t * (1 - below) * end / kSteps;
  }
  return {mean, std::max(0.0, square - mean * mean)};
}

LoadModel::Moments LoadModel::ResponseOf(const Endpoint& endpoint) {
  const CallGraph& graph = *application_->calls;
  const double network_s = 2 * application_->network_ms / 1000;
  for (CallId id = endpoint.end - 1; id >= endpoint.root; --id) {
    const Call& call = graph.calls[id];
    Moments own;
    if (call.caller != kNone) {
      const Crew& crew = crews_[call.workload];
      const double service_s = application_->service_ms[id] / 1000;
      const double scv = application_->workloads[call.workload].service.scv;
      own = {network_s + crew.wait_s + service_s,
             crew.wait_variance_s2 + scv * service_s * service_s};
    }
    constexpr int kMostGroups = 64;
    std::array<Moments, kMostGroups> groups;
    const int count = std::min(call.last_group - call.first_group, kMostGroups);
    for (int g = 0; g < count; ++g) {
      const CallGroup& group = graph.groups[call.first_group + g];
      groups[g] = {};
      for (int i = group.first; i < group.last; ++i) {
        groups[g].mean += below_[graph.sequence[i]].mean;
        groups[g].variance += below_[graph.sequence[i]].variance;
      }
    }
    const Moments rest = count == 0   ? Moments()
                         : count == 1 ? groups[0]
                                      : Slowest({groups.data(), size_t(count)});
    below_[id] = {own.mean + rest.mean, own.variance + rest.variance};
  }
  return below_[endpoint.root];
}

void LoadModel::Count(double requests, const Moments& response, double refused, double qos_s) {
  const GammaLaw law{response.mean, response.variance};
  const double answered = requests * (1 - refused);
  outcome_.requests += requests;
  outcome_.response_sum_s += answered * response.mean;
  double in_time = 1;
  if (application_->timeout_s > 0)
    in_time = 1 - std::pow(1 - law.Below(application_->timeout_s), application_->retries + 1);
  outcome_.failed += requests - answered * in_time;
  outcome_.late += answered * std::max(0.0, in_time - std::min(in_time, law.BelowNearly(qos_s)));
  // Only where the law has anything.
  const double spread = std::sqrt(response.variance);
  double before = 0;
  double bound = kLeastResponseS;
  for (int i = 0; i < kResponseBuckets; ++i, bound *= kResponseRatio) {
    if (bound * kResponseRatio < response.mean - 8 * spread) continue;
    const double below = bound > response.mean + 30 * spread ? 1 : law.BelowNearly(bound);
    histogram_[i] += answered * (below - before);
    before = below;
    if (below >= 1 - 1e-12) return;
  }
  histogram_[kResponseBuckets] += answered * (1 - before);
}

double LoadModel::ResponseQuantileS(double share) const {
  double all = 0, below = 0;
  for (const double count : histogram_) all += count;
  for (int i = 0; i <= kResponseBuckets; ++i) {
    if (below + histogram_[i] >= share * all && histogram_[i] > 0) {
      const double high = kLeastResponseS * std::pow(kResponseRatio, i);
      const double low = i == 0 ? 0 : high / kResponseRatio;
      return low + (high - low) * (share * all - below) / histogram_[i];
    }
    below += histogram_[i];
  }
  return 0;
}

}  // namespace rudderfish
