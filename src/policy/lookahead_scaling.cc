// SPDX-License-Identifier: Apache-2.0
#include "policy/lookahead_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "policy/shared_ladder.h"

namespace rudderfish {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr int kMostSteps = 200;  // Ahead.
constexpr int kSweeps = 2;
constexpr LoadModelOptions kNoResponses{.responses = LoadModelOptions::Responses::kNotKept};
// From so busy, at the highest rate ahead, plans are made before they are improved pod by pod.
constexpr std::array<double, 6> kUtilisations = {.3, .4, .5, .6, .7, .85};

// Requests per second, from the calls that came to workloads that clients call.
class RequestMeter {
 public:
  explicit RequestMeter(const ServedApplication& application)
      : called_(application.workloads.size(), false) {
    const CallGraph& graph = *application.calls;
    const std::vector<double> calls = application.CallsPerRequest();
    for (const Call& call : graph.calls) {
      if (call.caller == kNone || graph.calls[call.caller].caller != kNone) continue;
      if (!called_[call.workload]) per_request_ += calls[call.workload];
      called_[call.workload] = true;
    }
  }

  double RequestsPerS(std::span<const WorkloadSight> seen) const {
    double calls = 0;
    for (size_t w = 0; w < called_.size(); ++w) calls += called_[w] ? seen[w].calls_per_s : 0;
    return per_request_ > 0 ? calls / per_request_ : 0;
  }

 private:
  std::vector<bool> called_;  // [workload] By clients.
  double per_request_ = 0;
};

std::shared_ptr<const LoadLaws> LawsOf(const ServedApplication& application) {
  return std::make_shared<const LoadLaws>(std::make_shared<const ServedApplication>(application));
}

// Enough to be so busy at this rate, within the bounds.
int PodsFor(const ServedWorkload& workload, double demand_s, double rate, double utilisation) {
  const double pods = std::ceil(rate * demand_s / (workload.slots * utilisation) - 1e-9);
  return static_cast<int>(std::clamp<double>(pods, workload.replicas_min, workload.replicas_max));
}

// Calls of requests that wait: those who come next will be late for them.
double WaitingRequests(const LoadModel& model) {
  double most = 0;
  for (WorkloadId w = 0; w < model.laws()->crew_count(); ++w) {
    const CrewLaw& law = model.laws()->crew(w);
    if (law.service_s <= 0) continue;
    const double waiting = model.backlog(w) - law.slots * model.ready(w);
    most = std::max(most, waiting / law.calls_per_request);
  }
  return most;
}

struct ScalingLookaheadMemory final : ScalingMemory {
  explicit ScalingLookaheadMemory(const ServedApplication& application)
      : laws(LawsOf(application)),
        belief(laws, kNoResponses),
        now(laws, kNoResponses),
        trial(laws, kNoResponses),
        meter(application),
        demand_s(application.DemandS()),
        best(application.workloads.size()),
        plan(application.workloads.size()) {
    for (std::vector<double>& rates : ahead) rates.reserve(kMostSteps);
  }

  // What the replicas of `plan` cost and bring, from now on.
  double Cost(double price, double seconds) {
    double cost = 0;
    for (int s = 0; s < scenarios; ++s) {
      trial.CopyFrom(now);
      const LoadOutcome before = trial.outcome();
      for (WorkloadId w = 0; w < laws->crew_count(); ++w) {
        if (laws->crew(w).scaled) trial.SetReplicas(w, plan[w]);
      }
      for (const double rate : ahead[s]) trial.Advance(seconds, rate);
      const LoadOutcome passed = trial.outcome() - before;
      cost += passed.core_s + price * (passed.late + passed.failed + WaitingRequests(trial));
    }
    return cost / scenarios;
  }

  void Consider(double price, double seconds) {
    const double cost = Cost(price, seconds);
    if (cost >= best_cost - 1e-9) return;
    best_cost = cost;
    best = plan;
  }

  std::shared_ptr<const LoadLaws> laws;
  LoadModel belief;      // At the end of the window that samples are of,
  LoadModel now, trial;  // now, and later.
  RequestMeter meter;
  std::optional<Forecast> forecast;          // Made for the first interval's length.
  std::vector<double> demand_s;              // [workload]
  std::array<std::vector<double>, 2> ahead;  // [scenario] Rates of the coming intervals.
  int scenarios = 1;
  std::vector<int> best, plan;  // [workload]
  double best_cost = 0;
};

// The true rate of an interval; the last one goes on.
double TrueRate(std::span<const double> rates, int64_t interval) {
  return rates[std::clamp<int64_t>(interval, 0, static_cast<int64_t>(rates.size()) - 1)];
}

}  // namespace

std::unique_ptr<ScalingMemory> LookaheadScalingPolicy::NewMemory(
    const ServedApplication& application) const {
  return std::make_unique<ScalingLookaheadMemory>(application);
}

void LookaheadScalingPolicy::Decide(const ScalingQuestion& question, ScalingMemory* memory,
                                    std::span<int> replicas) const {
  if (!question.has_samples) return;
  auto* own = static_cast<ScalingLookaheadMemory*>(memory);
  const ServedApplication& application = *question.application;
  const double seconds = static_cast<double>(question.window_ns) / kNsPerSecond;
  const int64_t interval = question.at_ns / question.window_ns;
  const bool knows =
      options_.sight == LookaheadScalingOptions::Sight::kTruth && !question.true_rates.empty();
  const double measured = own->meter.RequestsPerS(question.workloads);
  const int steps =
      std::clamp(static_cast<int>(std::lround(options_.horizon_s / seconds)), 1, kMostSteps);
  if (!own->forecast.has_value()) {
    const int season = static_cast<int>(std::lround(options_.season_s / seconds));
    own->forecast.emplace(ForecastOptions{.horizon = steps + 1, .season = season});
  }
  own->forecast->Observe(measured);
  own->belief.Advance(seconds, measured);
  for (WorkloadId w = 0; w < own->laws->crew_count(); ++w) {
    if (application.workloads[w].scaled) own->belief.SetReplicas(w, question.workloads[w].replicas);
  }
  own->now.CopyFrom(own->belief);
  own->now.Advance(seconds,
                   knows ? TrueRate(question.true_rates, interval - 1) : own->forecast->At(1));
  own->scenarios = knows ? 1 : 2;
  double most = 0;
  for (int s = 0; s < own->scenarios; ++s) {
    own->ahead[s].clear();
    for (int step = 0; step < steps; ++step) {
      const int far = step + 2;  // The last interval has not been seen.
      const double share = s == 0 ? .5 : options_.headroom;
      const double rate = knows ? TrueRate(question.true_rates, interval + step)
                                : own->forecast->At(far) + own->forecast->ErrorQuantile(far, share);
      own->ahead[s].push_back(std::max(0.0, rate));
      most = std::max(most, rate);
    }
  }
  std::copy(replicas.begin(), replicas.end(), own->plan.begin());
  own->best = own->plan;
  own->best_cost = own->Cost(options_.price, seconds);
  for (const double utilisation : kUtilisations) {
    for (size_t w = 0; w < replicas.size(); ++w) {
      if (application.workloads[w].scaled)
        own->plan[w] = PodsFor(application.workloads[w], own->demand_s[w], most, utilisation);
    }
    own->Consider(options_.price, seconds);
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    const double before = own->best_cost;
    for (size_t w = 0; w < replicas.size(); ++w) {
      const ServedWorkload& workload = application.workloads[w];
      if (!workload.scaled) continue;
      for (const int change : {-1, 1}) {
        own->plan = own->best;
        own->plan[w] =
            std::clamp(own->plan[w] + change, workload.replicas_min, workload.replicas_max);
        if (own->plan[w] != own->best[w]) own->Consider(options_.price, seconds);
      }
    }
    if (own->best_cost >= before) break;
  }
  std::copy(own->best.begin(), own->best.end(), replicas.begin());
}

namespace {

// Rates by their share of time: what never changes need not know their order.
constexpr int kRateShares = 16;
constexpr double kShareS = 60;        // Long enough to be in equilibrium, or late for good:
constexpr double kOverloadStepS = 5;  // how that comes about matters little.
constexpr double kLeastLateMax = 1e-6, kMostLateMax = 0.999;  // Of a ladder.

struct StaticMemory final : ScalingMemory {
  std::vector<int> plan;  // [workload]
  bool has_plan = false;
};

// While a plan is found for true rates.
struct StaticSearch {
  explicit StaticSearch(const ServedApplication& application)
      : model(LawsOf(application),
              {.step_s = kOverloadStepS, .responses = LoadModelOptions::Responses::kNotKept}),
        plan(application.workloads.size()) {}

  double Violations() {
    model.Start();
    for (WorkloadId w = 0; w < model.laws()->crew_count(); ++w) {
      if (model.laws()->crew(w).scaled) model.SetReplicas(w, plan[w]);
    }
    // Pods that were made for this are there when it begins.
    model.Advance(start_s, 0);
    for (const double rate : rates) {
      model.Advance(kShareS, rate);
    }
    return model.outcome().violation_share();
  }

  LoadModel model;
  std::vector<int> plan;      // [workload]
  std::vector<double> rates;  // Rising.
  double start_s = 0;
};

void FindStaticPlan(const ServedApplication& application, double violations_max,
                    StaticSearch* own) {
  const std::vector<double> demand_s = application.DemandS();
  for (size_t w = 0; w < own->plan.size(); ++w) {
    const ServedWorkload& workload = application.workloads[w];
    own->start_s = std::max(own->start_s, workload.LongestStartS());
    own->plan[w] =
        !workload.scaled ? 0 : PodsFor(workload, demand_s[w], own->rates[own->rates.size() / 2], 1);
  }
  double violations = own->Violations();
  while (violations > violations_max) {
    int best = kNone;
    double best_gain = 0, best_violations = violations;
    for (size_t w = 0; w < own->plan.size(); ++w) {
      const ServedWorkload& workload = application.workloads[w];
      if (!workload.scaled || own->plan[w] >= workload.replicas_max) continue;
      ++own->plan[w];
      const double left = own->Violations();
      --own->plan[w];
      const double gain =
          (violations - left) / std::max(1.0, static_cast<double>(workload.cpu_millis));
      // Where one alone helps nothing, the next tightest is widened.
      if (best == kNone || gain > best_gain) {
        best = static_cast<int>(w);
        best_gain = gain;
        best_violations = left;
      }
    }
    if (best == kNone) break;  // All there can be.
    ++own->plan[best];
    violations = best_violations;
  }
}

}  // namespace

std::unique_ptr<ScalingMemory> StaticScalingPolicy::NewMemory(
    const ServedApplication& application) const {
  auto memory = std::make_unique<StaticMemory>();
  if (requests_per_s_ > 0) {
    const auto ladder =
        SharedLadder(application, std::clamp(violations_max_, kLeastLateMax, kMostLateMax));
    const std::span<const int> rung = ladder->Replicas(ladder->RungFor(requests_per_s_));
    memory->plan.assign(rung.begin(), rung.end());
    memory->has_plan = true;
  }
  return memory;
}

void StaticScalingPolicy::Decide(const ScalingQuestion& question, ScalingMemory* memory,
                                 std::span<int> replicas) const {
  auto* own = static_cast<StaticMemory*>(memory);
  if (!own->has_plan && !question.true_rates.empty()) {
    StaticSearch search(*question.application);
    search.rates.assign(question.true_rates.begin(), question.true_rates.end());
    std::sort(search.rates.begin(), search.rates.end());
    if (search.rates.size() > kRateShares) {
      for (size_t i = 0; i < kRateShares; ++i)
        search.rates[i] = search.rates[(2 * i + 1) * search.rates.size() / (2 * kRateShares)];
      search.rates.resize(kRateShares);
    }
    FindStaticPlan(*question.application, violations_max_, &search);
    own->plan = std::move(search.plan);
    own->has_plan = true;
  }
  if (!own->has_plan) return;
  for (size_t w = 0; w < replicas.size(); ++w) {
    if (question.application->workloads[w].scaled) replicas[w] = own->plan[w];
  }
}

}  // namespace rudderfish
