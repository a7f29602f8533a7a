// SPDX-License-Identifier: Apache-2.0
#include "task/scaling.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

// Of the rate that is expected, candidates serve so much.
constexpr double kShares[] = {0.6, 0.75, 0.87, 0.95, 1.02, 1.1, 1.2, 1.32,
                              1.5, 1.75, 2.1,  2.6,  3.3,  4.2, 5.4};
// And the rung it stands on, the one above and the one below.
static_assert(std::size(kShares) + 3 <= ScalingTask::kMostCandidates);

// How likely each quantile of the forecast stands for what comes, and the peak of ten minutes.
constexpr double kChances[kScenarios] = {0.25, 0.34, 0.2, 0.12, 0.07};
constexpr double kPeakChance = 0.02;

constexpr double kLeastAskedPerS = 0.05;  // Requests per second.

}  // namespace

ApplicationEntries::ApplicationEntries(const ServedApplication& application)
    : is_entry(application.workloads.size(), 0) {
  const CallGraph& graph = *application.calls;
  const std::vector<double> shares = application.EndpointShares();
  for (size_t e = 0; e < shares.size(); ++e) {
    const Endpoint& endpoint = graph.endpoints[e];
    for (CallId id = endpoint.root + 1; id < endpoint.end; ++id) {
      if (graph.calls[id].caller == endpoint.root) is_entry[graph.calls[id].workload] = 1;
    }
  }
  // Calls that others make to such a workload are seen there too.
  const std::vector<double> calls = application.CallsPerRequest();
  for (size_t w = 0; w < calls.size(); ++w) {
    if (!application.workloads[w].scaled) is_entry[w] = 0;
    if (is_entry[w] != 0) calls_per_request += calls[w];
  }
}

ScalingTask::ScalingTask(std::shared_ptr<const CapacityLadder> ladder, double interval_s,
                         const ScalingLimits& limits, ScalingRows rows)
    : ladder_(std::move(ladder)), interval_s_(interval_s), limits_(limits) {
  int scaled = 0;
  for (const ServedWorkload& workload : ladder_->application().workloads) {
    if (!workload.scaled) continue;
    ready_s_ += (workload.start_low_s + workload.start_high_s) / 2;
    ++scaled;
  }
  ready_s_ /= std::max(1, scaled);
  highest_ = ladder_->rungs() - 1;
  while (highest_ > 0 &&
         ladder_->cores(highest_) * 1000 > static_cast<double>(limits.cpu_millis_max) + 0.5)
    --highest_;
  if (rows == ScalingRows::kCallGraph) workloads_.emplace(ladder_, interval_s);
}

void ScalingTask::Space(const ScalingHistory& history, double price, ScalingSpace* space) const {
  CHECK(history.has_samples());
  const CapacityLadder& ladder = *ladder_;
  const double far = std::max(history.far_per_s(), kLeastAskedPerS);
  const double near = std::max(history.near_per_s(), kLeastAskedPerS);
  space->price = price;
  space->peak_5m = std::max(history.PeakPerS(300), kLeastAskedPerS);
  space->peak_10m = std::max(history.PeakPerS(600), kLeastAskedPerS);
  space->peak_30m = std::max(history.PeakPerS(1800), kLeastAskedPerS);
  space->least_30m = std::max(history.LeastPerS(1800), kLeastAskedPerS);
  space->needed_rung = std::min(ladder.RungFor(far), highest_);
  space->candidates.clear();
  space->candidates.reserve(kMostCandidates);
  const int held = history.rung_asked();
  const bool may_change = history.steps_since_change() * interval_s_ > limits_.cool_down_s;
  int rungs[kMostCandidates] = {held};
  int count = 1;
  if (may_change) {
    for (const double share : kShares)
      rungs[count++] = std::min(ladder.RungFor(far * share), highest_);
    if (held > 0) rungs[count++] = std::min(held - 1, highest_);
    if (held < highest_) rungs[count++] = held + 1;
  }
  std::sort(rungs, rungs + count);
  for (int i = 0; i < count; ++i) {
    if (i > 0 && rungs[i] == rungs[i - 1]) continue;
    if (rungs[i] == held) space->hold = space->count();
    space->candidates.push_back({.rung = rungs[i]});
  }
  const double cost = ladder.cores(space->needed_rung);
  double rates[kScenarios];
  for (int s = 0; s < kScenarios; ++s) rates[s] = far * std::exp(history.error(s));
  double least = std::numeric_limits<double>::infinity();
  for (ScalingCandidate& one : space->candidates) {
    one.cost = ladder.cores(one.rung) / cost;
    for (int s = 0; s < kScenarios; ++s) {
      one.late[s] = ladder.LateShare(one.rung, rates[s]);
      one.late_mean += kChances[s] * one.late[s];
    }
    one.late_peak = ladder.LateShare(one.rung, space->peak_10m);
    one.late_near = ladder.LateShare(std::min(one.rung, history.rung_ready()), near);
    one.late_mean += kPeakChance * one.late_peak;
    one.late_mean = 0.5 * (one.late_mean + one.late_near);
    one.regret = one.cost + price * one.late_mean;
    least = std::min(least, one.regret);
  }
  for (ScalingCandidate& one : space->candidates) one.regret -= least;
}

void ScalingTask::Decode(const ScalingSpace& space, int choice, std::span<int> replicas) const {
  CHECK(choice >= 0 && choice < space.count());
  const int rung = std::min(space.candidates[choice].rung, highest_);
  if (choice == space.hold && rung == space.candidates[choice].rung) return;
  const std::span<const int> wanted = ladder_->Replicas(rung);
  const ServedApplication& application = ladder_->application();
  CHECK(replicas.size() == wanted.size());
  for (size_t w = 0; w < replicas.size(); ++w) {
    if (application.workloads[w].scaled) replicas[w] = wanted[w];
  }
}

int ScalingTask::ChoiceOf(const ScalingRule& rule, const ScalingHistory& history,
                          const ScalingSpace& space) {
  double rate = history.far_per_s();
  if (rule.window_s >= 300) rate = std::max(rate, space.peak_5m);
  if (rule.window_s >= 600) rate = std::max(rate, space.peak_10m);
  const int wanted = history.ladder().RungFor(rate * rule.headroom);
  int best = 0;
  for (int i = 1; i < space.count(); ++i) {
    if (std::abs(space.candidates[i].rung - wanted) <=
        std::abs(space.candidates[best].rung - wanted))
      best = i;
  }
  return best;
}

}  // namespace rudderfish
