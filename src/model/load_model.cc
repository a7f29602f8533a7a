// SPDX-License-Identifier: Apache-2.0
#include "model/load_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kNoTime = 1e-9;  // s

}  // namespace

LoadOutcome LoadOutcome::operator-(const LoadOutcome& other) const {
  return {.requests = requests - other.requests,
          .late = late - other.late,
          .failed = failed - other.failed,
          .response_sum_s = response_sum_s - other.response_sum_s,
          .pod_s = pod_s - other.pod_s,
          .core_s = core_s - other.core_s};
}

LoadModel::LoadModel(std::shared_ptr<const ServedApplication> application,
                     const LoadModelOptions& options)
    : LoadModel(std::make_shared<const LoadLaws>(std::move(application)), options) {}

LoadModel::LoadModel(std::shared_ptr<const LoadLaws> laws, const LoadModelOptions& options)
    : laws_(std::move(laws)), options_(options), gamma_(&GammaTable::Shared()) {
  CHECK(options.step_s > 0);
  const size_t calls = laws_->application().calls->calls.size();
  crews_.resize(laws_->crew_count());
  lately_.resize(crews_.size());
  arrivals_.resize(crews_.size());
  responses_.resize(laws_->endpoint_count());
  places_.resize(responses_.size());
  if (options.responses == LoadModelOptions::Responses::kKept)
    histogram_.resize(ResponseBuckets::kCount);
  flow_.resize(calls);
  below_.resize(calls);
  Start();
}

void LoadModel::Start(std::span<const int> replicas) {
  pods_ = cores_ = 0;
  for (size_t w = 0; w < crews_.size(); ++w) {
    const CrewLaw& law = laws_->crew(static_cast<WorkloadId>(w));
    crews_[w].Start(law,
                    replicas.empty() ? laws_->application().workloads[w].replicas : replicas[w]);
    pods_ += crews_[w].replicas();
    cores_ += crews_[w].replicas() * law.cores;
  }
  std::fill(lately_.begin(), lately_.end(), Lately());
  std::fill(responses_.begin(), responses_.end(), GammaLaw());
  std::fill(histogram_.begin(), histogram_.end(), 0.0);
  outcome_ = {};
  now_s_ = 0;
  attempts_ = 1;
  next_ready_s_ = NextReadyS();
  all_pass_ = true;
}

void LoadModel::CopyFrom(const LoadModel& other) {
  CHECK(laws_ == other.laws_ && histogram_.size() == other.histogram_.size());
  crews_ = other.crews_;
  lately_ = other.lately_;
  responses_ = other.responses_;
  histogram_ = other.histogram_;
  outcome_ = other.outcome_;
  now_s_ = other.now_s_;
  attempts_ = other.attempts_;
  next_ready_s_ = other.next_ready_s_;
  pods_ = other.pods_;
  cores_ = other.cores_;
  all_pass_ = other.all_pass_;
}

void LoadModel::SetReplicas(WorkloadId workload, int replicas) {
  const CrewLaw& law = laws_->crew(workload);
  PodCrew& crew = crews_[workload];
  const int change = replicas - crew.replicas();
  if (change == 0 || !law.scaled) return;
  // Those that go serve who is in their line first.
  outcome_.pod_s += crew.SetReplicas(law, replicas, now_s_);
  pods_ += change;
  cores_ += change * law.cores;
  next_ready_s_ = NextReadyS();
}

double LoadModel::NextReadyS() const {
  double next = std::numeric_limits<double>::infinity();
  for (const PodCrew& crew : crews_) next = std::min(next, crew.next_ready_s());
  return next;
}

void LoadModel::Join() {
  for (PodCrew& crew : crews_) {
    if (crew.next_ready_s() <= now_s_ + kNoTime) crew.Join(now_s_ + kNoTime);
  }
  next_ready_s_ = NextReadyS();
}

void LoadModel::Advance(double seconds, double requests_per_s) {
  CHECK(seconds >= 0 && requests_per_s >= 0);
  if (seconds <= kNoTime) return;
  for (Lately& one : lately_) one = {};
  double left = seconds;
  while (left > kNoTime) {
    if (next_ready_s_ <= now_s_ + kNoTime) Join();
    double step = std::min(left, next_ready_s_ - now_s_);
    Flow(requests_per_s * attempts_);
    PodCrew::Pace pace = PodCrew::Pace::kLong;
    for (size_t w = 0; w < crews_.size(); ++w) {
      if (!crews_[w].Aim(laws_->crew(static_cast<WorkloadId>(w)), arrivals_[w], step))
        pace = PodCrew::Pace::kShort;
    }
    if (pace == PodCrew::Pace::kShort) step = std::min(step, options_.step_s);
    Step(step, requests_per_s, pace);
    left -= step;
    for (size_t w = 0; w < crews_.size(); ++w) {
      lately_[w].calls_per_s += arrivals_[w] * step / seconds;
      lately_[w].busy += crews_[w].busy() * step / seconds;
    }
  }
}

void LoadModel::Step(double seconds, double requests_per_s, PodCrew::Pace pace) {
  now_s_ += seconds;
  outcome_.pod_s += pods_ * seconds;
  outcome_.core_s += cores_ * seconds;
  all_pass_ = true;
  some_refuse_ = false;
  for (size_t w = 0; w < crews_.size(); ++w) {
    crews_[w].Pass(laws_->crew(static_cast<WorkloadId>(w)), seconds, pace);
    all_pass_ = all_pass_ && crews_[w].passes() == 1;
    some_refuse_ = some_refuse_ || crews_[w].refused_share() > 0;
  }
  Count(seconds, requests_per_s);
}

// Calls per second, from callers to callees: who is held up upstream does not come yet.
void LoadModel::Flow(double requests_per_s) {
  if (!all_pass_) return FlowByCalls(requests_per_s);
  for (size_t w = 0; w < crews_.size(); ++w)
    arrivals_[w] = requests_per_s * laws_->crew(static_cast<WorkloadId>(w)).calls_per_request;
}

void LoadModel::FlowByCalls(double requests_per_s) {
  const CallGraph& graph = *laws_->application().calls;
  std::fill(arrivals_.begin(), arrivals_.end(), 0.0);
  for (size_t e = 0; e < responses_.size(); ++e) {
    const Endpoint& endpoint = graph.endpoints[e];
    flow_[endpoint.root] = requests_per_s * laws_->endpoint(e).share;
    for (CallId id = endpoint.root + 1; id < endpoint.end; ++id) {
      const WorkloadId workload = graph.calls[id].workload;
      const double comes = flow_[laws_->bringer(id)];
      arrivals_[workload] += comes;
      flow_[id] = comes * crews_[workload].passes();
    }
  }
}

void LoadModel::Count(double seconds, double requests_per_s) {
  for (size_t e = 0; e < responses_.size(); ++e) responses_[e] = ResponseOf(e);
  for (size_t e = 0; e < responses_.size(); ++e) places_[e] = gamma_->Find(responses_[e]);
  const int retries = laws_->application().retries;
  LoadOutcome sums = outcome_;
  double again = 0;
  for (size_t e = 0; e < responses_.size(); ++e) {
    const EndpointLaw& endpoint = laws_->endpoint(e);
    const double kept = some_refuse_ ? KeptOf(endpoint) : 1;
    const GammaTable::Place& place = places_[e];
    const double before_timeout = gamma_->Below(place, laws_->log_timeout());
    const double requests = requests_per_s * endpoint.share * seconds;
    const double answered = requests * kept;
    const double unanswered = 1 - before_timeout;
    double in_time = 1;
    double never = unanswered;  // In any attempt.
    for (int retry = 1; retry <= retries; ++retry) never *= unanswered;
    in_time -= never;
    sums.requests += requests;
    sums.response_sum_s += answered * responses_[e].mean;
    sums.failed += requests - answered * in_time;
    sums.late += answered *
                 std::max(0.0, in_time - std::min(in_time, gamma_->Below(place, endpoint.log_qos)));
    if (!histogram_.empty()) gamma_->Spread(place, answered, histogram_);
    const double late = 1 - kept * before_timeout;
    double power = late;
    for (int retry = 1; retry <= retries && power > 0; ++retry, power *= late)
      again += endpoint.share * power;
  }
  outcome_ = sums;
  attempts_ = 1 + again;
}

// The share of requests that no crew on their way refuses.
double LoadModel::KeptOf(const EndpointLaw& endpoint) const {
  double kept = 1;
  for (const EndpointLaw::Visit& visit : endpoint.visits)
    kept *= std::pow(1 - crews_[visit.workload].refused_share(), visit.count);
  for (const EndpointLaw::SharedVisit& visit : endpoint.shared_visits)
    kept *= std::pow(1 - crews_[visit.workload].refused_share(), visit.count);
  return kept;
}

GammaLaw LoadModel::ResponseOf(size_t e) {
  const EndpointLaw& law = laws_->endpoint(e);
  if (law.parallel) return ResponseByCalls(laws_->application().calls->endpoints[e]);
  GammaLaw response{law.mean_s, law.variance_s2};
  for (const EndpointLaw::Visit& visit : law.visits) {
    response.mean += visit.count * crews_[visit.workload].wait_s();
    response.variance += visit.count * crews_[visit.workload].wait_variance_s2();
  }
  for (const EndpointLaw::SharedVisit& visit : law.shared_visits) {
    const double service_s = laws_->crew(visit.workload).service_s;
    if (service_s <= 0) continue;  // No endpoint that has requests calls it.
    const double more = crews_[visit.workload].wait_s() / service_s;  // The stretch, less 1.
    response.mean += visit.service_s * more;
    response.variance +=
        visit.own_variance_s2 * more * (more + 2) +
        visit.square_s2 * crews_[visit.workload].wait_variance_s2() / (service_s * service_s);
  }
  return response;
}

// With its way over the network, without those it calls.
GammaLaw LoadModel::ResponseOfCall(CallId id) const {
  const ServedApplication& application = laws_->application();
  const WorkloadId workload = application.calls->calls[id].workload;
  const PodCrew& crew = crews_[workload];
  const double network_s = 2 * application.network_ms / 1000;
  const double service_s = application.service_ms[id] / 1000;
  const double scv = application.workloads[workload].service.scv;
  const CrewLaw& law = laws_->crew(workload);
  if (!law.shared || law.service_s <= 0) {
    return {network_s + crew.wait_s() + service_s,
            crew.wait_variance_s2() + scv * service_s * service_s};
  }
  const double share = service_s / law.service_s;
  const double stretch = 1 + crew.wait_s() / law.service_s;
  return {network_s + stretch * service_s, stretch * stretch * scv * service_s * service_s +
                                               (1 + scv) * share * share * crew.wait_variance_s2()};
}

GammaLaw LoadModel::ResponseByCalls(const Endpoint& endpoint) {
  const ServedApplication& application = laws_->application();
  const CallGraph& graph = *application.calls;
  for (CallId id = endpoint.end - 1; id >= endpoint.root; --id) {
    const Call& call = graph.calls[id];
    const GammaLaw own = call.caller == kNone ? GammaLaw() : ResponseOfCall(id);
    constexpr int kMostGroups = 64;
    std::array<GammaLaw, kMostGroups> groups;
    const int count = std::min(call.last_group - call.first_group, kMostGroups);
    for (int g = 0; g < count; ++g) {
      const CallGroup& group = graph.groups[call.first_group + g];
      for (int i = group.first; i < group.last; ++i) {
        groups[g].mean += below_[graph.sequence[i]].mean;
        groups[g].variance += below_[graph.sequence[i]].variance;
      }
    }
    const GammaLaw rest = count == 0   ? GammaLaw()
                          : count == 1 ? groups[0]
                                       : Slowest({groups.data(), static_cast<size_t>(count)});
    below_[id] = {own.mean + rest.mean, own.variance + rest.variance};
  }
  return below_[endpoint.root];
}

// Mean and variance of the slowest of independent gamma laws: integrals of 1 - prod F.
GammaLaw LoadModel::Slowest(std::span<const GammaLaw> groups) const {
  constexpr int kSteps = 48;
  static const std::array<double, kSteps> kLogs = [] {
    std::array<double, kSteps> logs;
    for (int i = 0; i < kSteps; ++i) logs[i] = std::log((i + 0.5) / kSteps);
    return logs;
  }();
  double end = 0;
  for (const GammaLaw& one : groups) end = std::max(end, one.mean + 8 * std::sqrt(one.variance));
  if (end <= 0) return {};
  std::array<double, kSteps> below;
  below.fill(1);
  const double log_end = std::log(end);
  for (const GammaLaw& one : groups) {
    const GammaTable::Place place = gamma_->Find(one);
    for (int i = 0; i < kSteps; ++i) below[i] *= gamma_->Below(place, log_end + kLogs[i]);
  }
  double mean = 0, square = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double t = (i + 0.5) * end / kSteps;
    mean += (1 - below[i]) * end / kSteps;
    square += 2 * t * (1 - below[i]) * end / kSteps;
  }
  return {mean, std::max(0.0, square - mean * mean)};
}

double LoadModel::ResponseQuantileS(double share) const {
  CHECK(!histogram_.empty());
  double all = 0, below = 0;
  for (const double count : histogram_) all += count;
  for (int i = 0; i < ResponseBuckets::kCount; ++i) {
    if (below + histogram_[i] >= share * all && histogram_[i] > 0) {
      const double high = ResponseBuckets::kLeastS * std::pow(ResponseBuckets::kRatio, i);
      const double low = i == 0 ? 0 : high / ResponseBuckets::kRatio;
      return low + (high - low) * (share * all - below) / histogram_[i];
    }
    below += histogram_[i];
  }
  return 0;
}

}  // namespace rudderfish
